package metadata

import "testing"

// What can be told of a file is told where it cannot be read.
func TestFileThatCannotBeRead(t *testing.T) {
	r := call(t, "/proc/self", `{"sources": ["mem"]}`)[0]
	if r.Failed() {
		t.Fatalf("%s: %s", r.ErrorCode, r.ErrorMessage)
	}
	if m := r.Metadata; m.Name != "mem" || m.EntryType != "file" || m.MIMEType != "" || m.Permissions != "rw-------" {
		t.Errorf("%+v", m)
	}
}

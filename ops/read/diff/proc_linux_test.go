package diff

import (
	"testing"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// The files of /proc say size 0 and hold something all the same; one of them
// cannot be read at its beginning.
func TestFilesWithoutASize(t *testing.T) {
	if r, err := call(t.Context(), t, "/proc/self", `{"sources": ["status", "limits"]}`); err != nil || r.Content.Size() < 100 {
		t.Errorf("%v, %v", r.Content, err)
	}
	_, err := call(t.Context(), t, "/proc/self", `{"sources": ["status", "mem"]}`)
	if code, message := fault.Of(err); code != fault.FSReadFailed || message != "reading mem failed" {
		t.Errorf("%s %q, want %s", code, message, fault.FSReadFailed)
	}
}

package content

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/roots"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// countOpen is how many files of dir this process holds open.
func countOpen(t *testing.T, dir string) (n int) {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if target, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(target, dir+"/") {
			n++
		}
	}
	return n
}

func TestCancelledCallLeavesNoFileOpen(t *testing.T) {
	files := map[string]string{}
	var names []string
	for i := range 20 {
		name := fmt.Sprint(i)
		files[name], names = strings.Repeat("text\n", 100_000), append(names, name)
	}
	d := newDesk(t, files, nil)
	args, err := json.Marshal(map[string]any{"sources": names})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	// The first progress comes while other sources are still to be read.
	ctx = registry.WithProgress(ctx, func(int64, int64, string) { cancel() })
	if _, err := d.call(ctx, string(args)); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want that of the context", err)
	}
	if n := countOpen(t, d.dir); n != 0 {
		t.Errorf("%d files are still open after a cancelled call", n)
	}
	list, err := d.call(t.Context(), string(args))
	if err != nil {
		t.Fatal(err)
	}
	if n := countOpen(t, d.dir); n != 20 {
		t.Errorf("%d files are open for 20 texts under way", n)
	}
	registry.Texts(list, func(text *registry.Text) { text.Body().Close() })
	if n := countOpen(t, d.dir); n != 0 {
		t.Errorf("%d files are still open after their texts are closed", n)
	}
	for _, args := range []string{
		`{"sources": ["1"], "max_chars": 2}`, `{"sources": ["1"], "format": "checksum"}`, `{"sources": ["1"], "length": 3}`,
		`{"sources": ["1"], "format": "checksum", "offset": 600000}`,
	} {
		d.one(t, args)
		if n := countOpen(t, d.dir); n != 0 {
			t.Errorf("%s: %d files are still open", args, n)
		}
	}
}

// The files of /proc say size 0 and hold something all the same; one of them
// cannot be read at its beginning.
func TestFilesWithoutASize(t *testing.T) {
	d := newDesk(t, nil, map[string]string{"CONDUIT_MAX_FILE_READ_BYTES": "2000"})
	r, _, err := roots.New(roots.Config{Allowed: []string{"/proc/self"}, Project: "/proc/self"})
	if err != nil {
		t.Fatal(err)
	}
	d.roots = r
	pid := fmt.Sprintf("\nPid:\t%d\n", os.Getpid())
	if r := d.one(t, `{"sources": ["status"]}`); r.Content == nil || !strings.Contains(r.Content.String(), pid) || r.Format != "text" {
		t.Errorf("status: %s %s", r.ErrorCode, r.ErrorMessage)
	}
	if r := d.one(t, `{"sources": ["status"], "start_line": 1, "end_line": 1}`); !strings.HasPrefix(r.Content.String(), "Name:") || strings.Count(r.Content.String(), "\n") != 1 {
		t.Errorf("first line of status: %q", r.Content)
	}
	if r := d.one(t, `{"sources": ["smaps"], "end_line": 1}`); r.ErrorCode != fault.LimitExceeded || !strings.Contains(r.ErrorMessage, "CONDUIT_MAX_FILE_READ_BYTES") {
		t.Errorf("smaps: %s %s, want %s", r.ErrorCode, r.ErrorMessage, fault.LimitExceeded)
	}
	if r := d.one(t, `{"sources": ["mem"]}`); r.ErrorCode != fault.FSReadFailed || r.ErrorMessage != "reading mem failed" {
		t.Errorf("mem: %s %q, want %s", r.ErrorCode, r.ErrorMessage, fault.FSReadFailed)
	}
	if r := d.one(t, `{"sources": ["mem"], "format": "checksum"}`); r.ErrorCode != fault.ChecksumFailed || r.Checksum != "" || r.Format != "" {
		t.Errorf("checksum of mem: %s %q, want %s", r.ErrorCode, r.ErrorMessage, fault.ChecksumFailed)
	}
}

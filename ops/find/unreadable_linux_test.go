package find

import (
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/roots"
	"github.com/conduit-mcp/conduit-mcp/internal/walk"
)

// TestFilesThatCannotBeRead takes a file that even root can open but not read:
// the memory of this process, where nothing is at 0.
func TestFilesThatCannotBeRead(t *testing.T) {
	r, _, err := roots.New(roots.Config{Allowed: []string{"/proc/self"}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := r.Resolve("/proc/self")
	if err != nil {
		t.Fatal(err)
	}
	d, err := walk.Open(p)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	q, err := compile(params{EntryType: "any", Criteria: []criterion{{Type: "content_pattern", Pattern: "x"}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := q.evaluate(t.Context(), walk.NodeAt(d, walk.Entry{Name: "mem"})); got.err == nil || got.hit != nil {
		t.Errorf("a file that cannot be read gave %+v", got)
	}
	if got := q.evaluate(t.Context(), walk.NodeAt(d, walk.Entry{Name: "gone"})); got.err != nil || got.hit != nil {
		t.Errorf("a file that vanished gave %+v", got)
	}
}

package metadata

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/roots"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func call(t *testing.T, dir, args string) results {
	t.Helper()
	r, _, err := roots.New(roots.Config{Allowed: []string{dir}, Project: dir})
	if err != nil {
		t.Fatal(err)
	}
	op := registry.New(desc, build)
	in, err := op.Decode(json.RawMessage(args))
	if err != nil {
		t.Fatal(err)
	}
	registry.Paths(in, func(p *registry.Path) { p.Vet(r.Resolve) })
	handle, err := op.Bind(&registry.Env{Lookup: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	a, err := handle(t.Context(), &registry.Call{Op: op, Input: in})
	if err != nil {
		t.Fatal(err)
	}
	return a.Value.(results)
}

func TestTimes(t *testing.T) {
	dir := t.TempDir()
	begun := time.Now().Truncate(time.Millisecond)
	name := filepath.Join(dir, "a.txt")
	if err := os.WriteFile(name, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	modified := time.Date(2030, 5, 1, 12, 0, 0, 123e6, time.FixedZone("", 7200))
	if err := os.Chtimes(name, time.Time{}, modified); err != nil {
		t.Fatal(err)
	}
	m := call(t, dir, `{"sources": ["a.txt"]}`)[0].Metadata
	if m.Modified != "2030-05-01T10:00:00.123Z" {
		t.Errorf("modified_at_iso = %s", m.Modified)
	}
	// The clocks of file systems tick more slowly than ours.
	created, err := time.Parse(time.RFC3339, m.Created)
	if err != nil || created.Before(begun.Add(-time.Second)) || created.After(time.Now()) {
		t.Errorf("created_at_iso = %s, %v; the file was made at %s", m.Created, err, begun)
	}
}

func TestShed(t *testing.T) {
	r := call(t, t.TempDir(), `{"sources": ["."]}`)[0]
	r.Trim(fault.New(fault.LimitExceeded, "too large"))
	got, err := json.Marshal(r)
	want := `{"source":".","source_type":"file","status":"error","error_code":"ERR_RESOURCE_LIMIT_EXCEEDED","error_message":"too large"}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v\nwant %s", got, err, want)
	}
}

func TestLeanViewKeepsTheWritersError(t *testing.T) {
	gone := errors.New("gone")
	r, w := io.Pipe()
	r.CloseWithError(gone)
	if err := call(t, t.TempDir(), `{"sources": ["."]}`).Lean(w); !errors.Is(err, gone) {
		t.Errorf("%v, want that of the writer", err)
	}
}

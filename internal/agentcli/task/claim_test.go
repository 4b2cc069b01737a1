package task_test

import (
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/task"
)

func claims(t *testing.T) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

func TestAClaimIsHeldByOne(t *testing.T) {
	root := claims(t)
	var inside atomic.Int32
	var g sync.WaitGroup
	for range 8 {
		g.Go(func() {
			for done := 0; done < 50; {
				release, ok, err := task.Claim(root, "/a")
				if err != nil {
					t.Error(err)
					return
				}
				if !ok {
					continue
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d hold it", n)
				}
				inside.Add(-1)
				release()
				done++
			}
		})
	}
	g.Wait()
}

func TestClaimsOfTrees(t *testing.T) {
	abs := func(p string) string { return filepath.Join(t.TempDir(), "..", "000", filepath.FromSlash(p)) }
	for _, c := range []struct {
		held, wanted string
		ok           bool
	}{
		{abs("a"), abs("a"), false}, {abs("a"), abs("a/b"), false}, {abs("a/b/c"), abs("a"), false}, {abs("a"), abs("ab"), true}, {abs("a/b"), abs("a/c"), true},
		{"worktrees " + abs("a"), abs("a"), true}, {abs("a"), "worktrees " + abs("a/b"), true}, {"worktrees " + abs("a"), "worktrees " + abs("a"), false}, {string(filepath.Separator), abs("a"), false},
	} {
		root := claims(t)
		release, ok, err := task.Claim(root, c.held)
		if !ok || err != nil {
			t.Fatal(err)
		}
		other, ok, err := task.Claim(root, c.wanted)
		if ok != c.ok || err != nil {
			t.Errorf("%s while %s is held: %t, %v", c.wanted, c.held, ok, err)
		}
		if ok {
			other()
		}
		release()
		if other, ok, err = task.Claim(root, c.wanted); !ok || err != nil {
			t.Errorf("%s afterwards: %v", c.wanted, err)
		} else {
			other()
		}
	}
}

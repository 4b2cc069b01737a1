package walk_test

import (
	"fmt"
	"io/fs"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/walk"
)

func TestParts(t *testing.T) {
	for in, want := range map[string]string{"": "[]", "f": "[1]", "ffff": "[3 1]", "fdff": "[2 2]", "dd": "[1 1]", "fffd": "[3 1]"} {
		var list []walk.Entry
		for _, kind := range in {
			e := walk.Entry{Name: string(kind)}
			if kind == 'd' {
				e.Type = fs.ModeDir
			}
			list = append(list, e)
		}
		sizes := []int{}
		for part := range walk.Parts(list, 3) {
			sizes = append(sizes, len(part))
		}
		if got := fmt.Sprint(sizes); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

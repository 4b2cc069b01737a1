package cmd

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestVersion(t *testing.T) {
	for _, c := range []struct {
		build build
		want  string
	}{
		{build{Version: "1.2.3", Go: "go1.26"}, "conduit-mcp 1.2.3, go1.26"},
		{build{Version: "1.2.3", Revision: "0123456789abcdef", Date: "2026-01-02T03:04:05Z", Modified: true, Go: "go1.26"},
			"conduit-mcp 1.2.3, revision 0123456789ab of 2026-01-02T03:04:05Z, modified, go1.26"},
	} {
		if got := c.build.String(); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
	for _, args := range [][]string{{"version", "--json"}, {"--json", "-v"}} {
		var out strings.Builder
		var got build
		if code := Run(args, nil, nil, &out, &out); code != 0 || json.Unmarshal([]byte(out.String()), &got) != nil || got != thisBuild() || got.Go == "" {
			t.Errorf("%q: %d, %s", args, code, out.String())
		}
	}
}

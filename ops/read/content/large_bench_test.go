package content_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/conduit-mcp/conduit-mcp/ops/read/content"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/optest"
)

// BenchmarkReadLarge reads 8 MB of text, written out in memory, and parts of it.
func BenchmarkReadLarge(b *testing.B) {
	set, err := registry.Registered()
	if err != nil {
		b.Fatal(err)
	}
	var op *registry.Op
	for _, o := range set.AllOps() {
		if o.ID() == "read.content" {
			op = o
		}
	}
	bench := optest.New(b, op, nil)
	const size = 8 << 20
	text := bytes.Repeat([]byte("a line of a log with \"quotes\" in it\n"), size/36+1)[:size]
	text[size-1] = '\n'
	if err := os.WriteFile(filepath.Join(bench.Dir, "large.log"), text, 0o600); err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name, args string
		bytes      int64
		least      int
	}{
		{"text", `"format": "text"`, size, size},
		{"base64", `"format": "base64"`, size, size * 4 / 3},
		{"checksum", `"format": "checksum"`, size, 200},
		{"64 kB at its end", fmt.Sprintf(`"offset": %d, "length": 65536`, size-65536), 65536, 65536},
		{"last 20 lines", `"start_line": -20`, 0, 700},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(c.bytes)
			b.ReportAllocs()
			for b.Loop() {
				if got := bench.Text(b, `{"sources": ["large.log"], `+c.args+`}`); len(got) < c.least || strings.LastIndex(got, `"status":"success"`) < 0 {
					b.Fatalf("%d bytes: %.300s", len(got), got)
				}
			}
		})
	}
}

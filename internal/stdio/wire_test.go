package stdio_test

import (
	"io"
	"strconv"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/stdio"
	"github.com/conduit-mcp/conduit-mcp/internal/stdio/transcript"
)

func TestWire(t *testing.T) {
	transcript.Run(t, "../../testdata/wire", func(t *testing.T, env map[string]string) (io.WriteCloser, io.Reader) {
		var o stdio.Options
		if v, ok := env["CONDUIT_MAX_PAYLOAD_SIZE_BYTES"]; ok {
			var err error
			if o.MaxRequest, err = strconv.ParseInt(v, 10, 64); err != nil {
				t.Fatal(err)
			}
		}
		s := start(t, o, nil)
		return s.feed, s.out
	})
}

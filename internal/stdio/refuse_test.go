package stdio_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/stdio"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func TestRefuse(t *testing.T) {
	why := fault.Object{Status: "error", Code: fault.ConfigInvalid, Message: "X is wrong; make it right"}
	const data = `"message":"ERR_CONFIG_INVALID: X is wrong; make it right","data":{"status":"error","error_code":"ERR_CONFIG_INVALID","error_message":"X is wrong; make it right"}}}`
	for _, c := range []struct{ name, in, want string }{
		{"a request", `{"jsonrpc":"2.0","id":7,"method":"initialize","params":{}}` + "\n", `{"jsonrpc":"2.0","id":7,"error":{"code":-32603,` + data + "\n"},
		{"after blanks and notifications", "\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" + `{"jsonrpc":"2.0","id":"a","method":"ping"}` + "\n", `{"jsonrpc":"2.0","id":"a","error":{"code":-32603,` + data + "\n"},
		{"no request", "hello\n", `{"jsonrpc":"2.0","error":{"code":-32600,` + data + "\n"},
		{"a batch", `[{"jsonrpc":"2.0","id":7,"method":"ping"}]` + "\n", `{"jsonrpc":"2.0","error":{"code":-32600,` + data + "\n"},
		{"without a line end", `{"jsonrpc":"2.0","id":7,"method":"initialize"}`, `{"jsonrpc":"2.0","id":7,"error":{"code":-32603,` + data + "\n"},
		{"framed", "Content-Length: 46\r\n\r\n" + `{"jsonrpc":"2.0","id":7,"method":"initialize"}`, "Content-Length: 210\r\n\r\n" + `{"jsonrpc":"2.0","id":7,"error":{"code":-32603,` + data},
	} {
		var out strings.Builder
		if err := stdio.Refuse(t.Context(), strings.NewReader(c.in), &out, why); err != nil || out.String() != c.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", c.name, err, out.String(), c.want)
		}
	}
	for _, in := range []string{"", "\n\n", `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"} {
		var out strings.Builder
		if err := stdio.Refuse(t.Context(), strings.NewReader(in), &out, why); err != io.EOF || out.Len() > 0 {
			t.Errorf("%q: %v, %s", in, err, out.String())
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	silent, w := io.Pipe()
	defer w.Close()
	cancel()
	var out strings.Builder
	if err := stdio.Refuse(ctx, silent, &out, why); !errors.Is(err, context.Canceled) || out.Len() > 0 {
		t.Errorf("%v, %s", err, out.String())
	}
}

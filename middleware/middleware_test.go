package middleware_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"

	"github.com/conduit-mcp/conduit-mcp/registry"
)

type none struct{}

type params struct {
	Path  registry.Path     `json:"path"`
	More  []registry.Source `json:"more,omitempty"`
	Count int               `json:"count,omitempty"`
	Long  string            `json:"long,omitempty"`

	Content string  `json:"content,omitempty" log:"content"`
	Token   *string `json:"key,omitempty" log:"secret"`
	Any     any     `json:"any,omitempty" log:"secret"`
	Entries []entry `json:"entries,omitempty"`
}

type entry struct {
	Path registry.Path `json:"path"`
	Text string        `json:"text" log:"content"`
	N    int           `json:"n"`
	B    bool          `json:"b"`
}

var op = registry.New(registry.Desc{Tool: "t", Name: "a", Summary: "S.", Effect: registry.ReadOnly},
	func(none, *registry.Env) (registry.Func[params, string], error) { return nil, nil })

func newCall(args string) *registry.Call {
	return &registry.Call{Tool: registry.Tool{Name: "t", Discriminator: "operation", Notices: true, Echo: true}, Op: op, Args: json.RawMessage(args)}
}

func answer(a registry.Answer, err error) registry.Handler {
	return func(context.Context, *registry.Call) (registry.Answer, error) { return a, err }
}

// records collects a log.
func records(level slog.Level) (*slog.Logger, *bytes.Buffer) {
	var b bytes.Buffer
	return slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: level})), &b
}

package middleware_test

import (
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/middleware"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func TestPayloadLimit(t *testing.T) {
	h := middleware.PayloadLimit(10)(answer(registry.Answer{Value: "v"}, nil))
	if a, err := h(t.Context(), newCall(`{"a":"bcd"}`[:10])); err != nil || a.Value != "v" {
		t.Errorf("10 bytes: %v", err)
	}
	_, err := h(t.Context(), newCall(`{"a":"bcd"}`))
	if code, message := fault.Of(err); code != fault.LimitExceeded || !strings.HasPrefix(message, "Incoming MCP request payload exceeds CONDUIT_MAX_PAYLOAD_SIZE_BYTES") {
		t.Errorf("11 bytes: %v", err)
	}
}

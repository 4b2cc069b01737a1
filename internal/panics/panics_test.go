package panics_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/panics"
)

func TestTry(t *testing.T) {
	failure := errors.New("failure")
	if err := panics.Try(func() error { return failure }); err != failure {
		t.Errorf("%v, want what the function returned", err)
	}
	err := panics.Try(func() error { panic("overboard") })
	if err == nil || !strings.Contains(err.Error(), "overboard") || !strings.Contains(err.Error(), "panics_test.go") {
		t.Errorf("%v, want the panic and its stack", err)
	}
}

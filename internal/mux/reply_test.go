package mux_test

import (
	"context"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/body"
	"github.com/conduit-mcp/conduit-mcp/internal/mux"
	"github.com/conduit-mcp/conduit-mcp/registry"
)

// A sealed item has a late text that its lean view does not show.
type sealed struct {
	Text *registry.Text `json:"text,omitempty"`
	registry.Outcome
	Seal *registry.Text `json:"seal,omitempty"`
}

func (s *sealed) Trim(err error) {
	*s = sealed{}
	s.Settle(err)
}

type sealedItems []sealed

func (list sealedItems) Lean(w io.Writer) error {
	for _, s := range list {
		if s.Failed() {
			io.WriteString(w, s.ErrorMessage)
		} else if _, err := s.Text.WriteTo(w); err != nil {
			return err
		}
	}
	return nil
}

// A sealedWhole is an answer that is no batch.
type sealedWhole sealed

func (s sealedWhole) Lean(w io.Writer) error {
	_, err := s.Text.WriteTo(w)
	return err
}

// What the lean view does not show is closed when the reply is made; what it
// shows, once that is written.
func TestTextsThatAreNotShownAreClosed(t *testing.T) {
	for _, view := range []string{"full", "lean"} {
		for _, limit := range []int64{0, 1200} {
			var texts, seals [3]atomic.Int32
			closed := func() (n [6]int32) {
				for i := range texts {
					n[i], n[3+i] = texts[i].Load(), seals[i].Load()
				}
				return n
			}
			one := func(i, size int) sealed {
				s := sealed{Text: registry.TextFrom(source{strings.Repeat("x", size), false, &texts[i]}),
					Seal: registry.TextFrom(source{"seal", false, &seals[i]})}
				s.Settle(nil)
				return s
			}
			store := body.NewStore()
			m := served(t, mux.Options{Bodies: store, MaxResponse: limit}, func(context.Context) (sealedItems, error) {
				return sealedItems{one(0, 10), one(1, 5000), one(2, 20)}, nil
			})
			res := ask(t, m, `{"operation":"run","view":"`+view+`"}`)
			want := [6]int32{}
			if limit > 0 {
				want[1], want[4] = 1, 1 // of the item that is too large
			}
			if view == "lean" {
				want[3], want[4], want[5] = 1, 1, 1
			}
			if got := closed(); got != want {
				t.Errorf("%s, limit %d: closed %d times before the reply is written, want %d", view, limit, got, want)
			}
			line := string(expanded(t, store, res))
			if got, all := closed(), [6]int32{1, 1, 1, 1, 1, 1}; got != all {
				t.Errorf("%s, limit %d: closed %d times, want %d", view, limit, got, all)
			}
			if n, shown := strings.Count(line, "seal\\\":"), 3; view == "full" {
				if limit > 0 {
					shown = 2
				}
				if n != shown {
					t.Errorf("%d seals, want %d: %.3000s", n, shown, line)
				}
			} else if n != 0 {
				t.Errorf("a lean view with %d seals: %.3000s", n, line)
			}
		}
	}
}

func TestTextOfOneAnswerThatIsNotShownIsClosed(t *testing.T) {
	var text, seal atomic.Int32
	store := body.NewStore()
	m := served(t, mux.Options{Bodies: store}, func(context.Context) (sealedWhole, error) {
		return sealedWhole{Text: registry.TextFrom(source{"a text", false, &text}), Seal: registry.TextFrom(source{"seal", false, &seal})}, nil
	})
	res := ask(t, m, `{"operation":"run","view":"lean"}`)
	if text.Load() != 0 || seal.Load() != 1 {
		t.Errorf("the text was closed %d times, the seal %d", text.Load(), seal.Load())
	}
	if line := expanded(t, store, res); !strings.Contains(string(line), `"a text"`) || text.Load() != 1 {
		t.Errorf("closed %d times: %s", text.Load(), line)
	}
}

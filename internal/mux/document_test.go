package mux_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/body"
	"github.com/conduit-mcp/conduit-mcp/internal/longtest"
	"github.com/conduit-mcp/conduit-mcp/internal/mux"
	"github.com/conduit-mcp/conduit-mcp/middleware"
	"github.com/conduit-mcp/conduit-mcp/registry"
)

// rows write their own JSON, a row at a time.
type rows []object

func (list rows) WriteJSON(w io.Writer) error {
	for i, o := range list {
		before := ","
		if i == 0 {
			before = "["
		}
		if _, err := fmt.Fprintf(w, `%s{"a":"%s"}`, before, o.A); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, "]")
	return err
}

// What writes its own JSON, in many pieces, arrives like what is encoded.
func TestWrittenJSONEqualsEncoded(t *testing.T) {
	var list rows
	for i := range 20_000 {
		list = append(list, object{strings.Repeat("é", i%20)})
	}
	for _, structured := range []bool{false, true} {
		for _, noticed := range []bool{false, true} {
			for _, store := range []*body.Store{nil, body.NewStore()} {
				notice := func() (mw []registry.Middleware) { // it comes once
					if noticed {
						mw = append(mw, middleware.Notice("n"))
					}
					return mw
				}
				o := mux.Options{Bodies: store, Structured: structured}
				got := expanded(t, store, ask(t, served(t, o, value(list), notice()...), run))
				want := expanded(t, store, ask(t, served(t, o, value([]object(list)), notice()...), run))
				if !bytes.Equal(got, want) || len(got) < 400_000 {
					t.Errorf("structured %t, notice %t, store %t: %d bytes, want the %d of the encoder", structured, noticed, store != nil, len(got), len(want))
				}
				o.MaxResponse = int64(len(got)) - 2000
				if res := ask(t, served(t, o, value(list), notice()...), run); !res.IsError {
					t.Errorf("%d bytes where %d are allowed", len(got), o.MaxResponse)
				}
			}
		}
	}
}

type unwritable struct{ object }

func (unwritable) WriteJSON(io.Writer) error { return errors.New("no") }

func TestJSONThatCannotBeWritten(t *testing.T) {
	res := ask(t, served(t, mux.Options{}, value(unwritable{})), run)
	if !res.IsError || !strings.Contains(text(t, res, 0), `"error_code":"ERR_INTERNAL_SERVER_ERROR"`) {
		t.Errorf("%s", text(t, res, 0))
	}
}

// Items on both sides of the ends of pieces, some of them too large.
func TestBatchesOfAllSizes(t *testing.T) {
	for _, most := range []int{10, 300, 5000, longtest.Count(40_000, 100_000)} {
		list := func(context.Context) ([]item, error) {
			var items []item
			for i := range 60 {
				items = append(items, good(fmt.Sprint(i), strings.Repeat("\"x", (i*7919)%most)))
			}
			return items, nil
		}
		store := body.NewStore()
		whole := expanded(t, store, ask(t, served(t, mux.Options{Bodies: store}, list), run))
		for _, limit := range []int{0, len(whole) * 2 / 3, len(whole) / 10} {
			o := mux.Options{Bodies: store, MaxResponse: int64(limit)}
			line := expanded(t, store, ask(t, served(t, o, list), run))
			var got struct {
				Content []struct{ Text string }
			}
			if err := json.Unmarshal(line, &got); err != nil {
				t.Fatal(err)
			}
			var items []struct{ Name, Text, Status string }
			if err := json.Unmarshal([]byte(got.Content[0].Text), &items); err != nil || len(items) != 60 {
				t.Fatalf("%d items, %v", len(items), err)
			}
			for i, it := range items {
				if n := (i * 7919) % most; it.Name != fmt.Sprint(i) || it.Status == "success" && it.Text != strings.Repeat("\"x", n) || limit == 0 && it.Status != "success" {
					t.Errorf("item %d: %s, %d bytes, %s", i, it.Name, len(it.Text), it.Status)
				}
			}
		}
	}
}

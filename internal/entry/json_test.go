package entry_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/entry"
)

// encode is what encoding/json makes of v without HTML escapes.
func encode(t testing.TB, v any) string {
	t.Helper()
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// same fails where list is not written as encoding/json writes it.
func same(t testing.TB, list []entry.Info) {
	t.Helper()
	var b bytes.Buffer
	if err := entry.WriteJSON(&b, list); err != nil {
		t.Fatal(err)
	}
	if want := encode(t, list); b.String() != want {
		t.Errorf("got  %.2000s\nwant %.2000s", b.String(), want)
	}
	// Members stand in an object of something else.
	type other struct {
		entry.Info
		More int `json:"more"`
	}
	var others []other
	for k, i := range list {
		others = append(others, other{i, k})
	}
	b.Reset()
	err := entry.WriteList(&b, others, func(b []byte, o *other) []byte {
		return fmt.Appendf(o.AppendMembers(append(b, '{')), `,"more":%d}`, o.More)
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := encode(t, others); b.String() != want {
		t.Errorf("got  %.2000s\nwant %.2000s", b.String(), want)
	}
}

// infos are made of every field at once and of each alone, so that one that is
// added is noticed.
func infos(text string, size entry.Size) []entry.Info {
	var list []entry.Info
	var all entry.Info
	fill := func(i *entry.Info, field int) {
		switch f := reflect.ValueOf(i).Elem().Field(field); f.Interface().(type) {
		case string:
			f.SetString(text)
		case bool:
			f.SetBool(true)
		case entry.Size:
			f.SetInt(int64(size))
		case *[]entry.Info:
			f.Set(reflect.ValueOf(&[]entry.Info{{Name: text, Size: size}, {Children: new([]entry.Info)}, {Children: &[]entry.Info{}}}))
		default:
			panic(f.Type())
		}
	}
	for field := range reflect.TypeFor[entry.Info]().NumField() {
		var one entry.Info
		fill(&one, field)
		fill(&all, field)
		list = append(list, one, all)
	}
	return list
}

func TestJSONIsThatOfTheEncoder(t *testing.T) {
	for _, text := range []string{"", "a", "plain text of some length", "quote\" slash\\ <html>&", "\x00\x01\b\t\n\f\r\x1f\x7f",
		"\u2028\u2029\u2027", "häßlich 日本 😀", "bad \xff\xc3 \xed\xa0\x80 end\xe2\x80", "\uFFFD"} {
		for _, size := range []entry.Size{0, 1, 1<<63 - 1, entry.Unknown, entry.Untold, -3} {
			same(t, infos(text, size))
		}
	}
	same(t, nil)
	same(t, []entry.Info{})
}

// A list longer than a piece, with trees in trees.
func TestJSONOfALargeTree(t *testing.T) {
	var grow func(depth int) []entry.Info
	grow = func(depth int) []entry.Info {
		list := []entry.Info{}
		for range 1 + rand.IntN(12) {
			i := entry.Info{Name: strings.Repeat("né\"", rand.IntN(20)), Path: strings.Repeat("p", rand.IntN(300)), Type: "file", Size: entry.Size(rand.IntN(1e6))}
			if depth > 0 {
				below := grow(depth - 1)
				i.Children, i.SizeNote = &below, "note"
			}
			list = append(list, i)
		}
		return list
	}
	list := grow(4)
	same(t, list)
	most := 0
	n := writer(func(b []byte) (int, error) {
		most = max(most, len(b))
		return len(b), nil
	})
	if err := entry.WriteJSON(n, list); err != nil || most > 40<<10 {
		t.Errorf("%v; the largest piece has %d bytes", err, most)
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

func TestJSONKeepsTheWritersFirstError(t *testing.T) {
	gone := errors.New("gone")
	for _, n := range []int{1, 10_000} {
		calls := 0
		w := writer(func(b []byte) (int, error) {
			if calls++; calls > 1 {
				return len(b), nil
			}
			return 0, gone
		})
		if err := entry.WriteJSON(w, make([]entry.Info, n)); !errors.Is(err, gone) || calls != 1 {
			t.Errorf("%v after %d writes, want that of the first one", err, calls)
		}
	}
}

func FuzzJSON(f *testing.F) {
	f.Add("name", "text/plain", int64(3))
	f.Add("a\xffb\u2028", "\"\\", int64(-1))
	f.Fuzz(func(t *testing.T, name, other string, size int64) {
		list := infos(name, entry.Size(size))
		for i := range list {
			list[i].Path, list[i].Created = other, name+other
		}
		same(t, list)
	})
}

func BenchmarkJSON20000(b *testing.B) {
	list := make([]entry.Info, 20000)
	for k := range list {
		list[k] = entry.Info{Name: fmt.Sprintf("f%05d.txt", k), Path: fmt.Sprintf("/home/someone/project/dir%03d/f%05d.txt", k/100, k), Type: "file",
			Size: 1234, MIMEType: "text/plain", Created: "2026-03-01T12:00:00.123Z", Modified: "2026-03-01T12:00:00.123Z", Octal: "0644", Permissions: "rw-r--r--"}
	}
	b.Run("ours", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			entry.WriteJSON(io.Discard, list)
		}
	})
	b.Run("encoding json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			enc := json.NewEncoder(io.Discard)
			enc.SetEscapeHTML(false)
			enc.Encode(list)
		}
	})
}

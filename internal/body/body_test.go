package body_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/body"
)

// A fake is a text that arrives in pieces, and may fail after them.
type fake struct {
	pieces []string
	err    error
	closed int
}

func (f *fake) WriteTo(w io.Writer) (n int64, err error) {
	for _, p := range f.pieces {
		k, err := io.WriteString(w, p)
		if n += int64(k); err != nil {
			return n, err
		}
	}
	return n, f.err
}

func (f *fake) Close() error { f.closed++; return nil }

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

// inside is s as it stands inside strings, so many layers deep.
func inside(t testing.TB, s string, layers int) string {
	for range layers {
		s = encode(t, s)
		s = s[1 : len(s)-1]
	}
	return s
}

// pieces cuts s into n parts at arbitrary bytes.
func pieces(s string, n int) []string {
	var out []string
	for ; n > 1; n-- {
		i := rand.IntN(len(s) + 1)
		out = append(out, s[:i])
		s = s[i:]
	}
	return append(out, s)
}

func texts() []string {
	var ascii, all strings.Builder
	for c := range rune(256) {
		ascii.WriteRune(c)
		all.WriteString(strings.Repeat("x", int(c)%11))
		all.WriteRune(c)
	}
	out := []string{"", "plain", `"`, `\`, ascii.String(), all.String(), "\u2028", "\u2029\u2027\u2030“quoted” – €", "日本語\u2028\n", "<&>\x7f", "😀\"😀"}
	// Longer than what is counted or written at once.
	out = append(out, strings.Repeat(all.String(), 100), strings.Repeat("a", 70_000), strings.Repeat("\n\x00\"", 30_000), strings.Repeat("é", 3000))
	alphabet := []rune("ab\"\\\n\x00\x1f é\u2028\u2029“€😀")
	for range 200 {
		var b strings.Builder
		for range rand.IntN(100) {
			b.WriteRune(alphabet[rand.IntN(len(alphabet))])
		}
		out = append(out, b.String())
	}
	return out
}

func TestTextsAreWrittenAsAnEncoderWould(t *testing.T) {
	for _, text := range texts() {
		for layers, form := range map[int]func(body.Token) string{1: body.Token.Plain, 2: body.Token.Nested} {
			s := body.NewStore()
			f := &fake{pieces: pieces(text, 1+rand.IntN(4))}
			line := "<" + form(s.Put(f)) + ">"
			want := "<" + inside(t, text, layers) + ">"
			if got := s.Len([]byte(line)); got != int64(len(want)) {
				t.Errorf("Len of %.500q in %d layers = %d, want %d", text, layers, got, len(want))
			}
			var got bytes.Buffer
			if err := s.Expand(&got, []byte(line)); err != nil || got.String() != want {
				t.Errorf("%.500q in %d layers: %v\ngot  %.2000s\nwant %.2000s", f.pieces, layers, err, got.String(), want)
			}
			if f.closed != 1 {
				t.Errorf("closed %d times", f.closed)
			}
			if n := body.EscapedLen([]byte(text), layers); n != len(want)-2 {
				t.Errorf("EscapedLen(%.500q, %d) = %d, want %d", text, layers, n, len(want)-2)
			}
		}
	}
}

func TestStringsAreAppendedAsAnEncoderWould(t *testing.T) {
	for _, text := range append(texts(), "bad \xff\xc3", "\xe2\x80", "12345678\xe2\x80\xa8\xed\xa0\x80 \xf0\x9f\x98") {
		if got, want := string(body.AppendString([]byte("before"), text)), "before"+encode(t, text); got != want {
			t.Errorf("%.500q: got %.1000s, want %.1000s", text, got, want)
		}
	}
}

// A verbatim text says of itself that nothing in it is escaped.
type verbatim struct{ fake }

func (*verbatim) Verbatim() {}

func TestVerbatimTextIsNotLookedAt(t *testing.T) {
	s := body.NewStore()
	token := s.Put(&verbatim{fake{pieces: []string{"a\"b", "\n"}}})
	var out bytes.Buffer
	if err := s.Expand(&out, []byte("<"+token.Nested()+">")); err != nil || out.String() != "<a\"b\n>" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestEscapedLenAddsUp(t *testing.T) {
	for _, text := range texts() {
		for layers := 1; layers <= 2; layers++ {
			sum := 0
			for _, r := range text {
				sum += body.EscapedLen([]byte(string(r)), layers)
			}
			if whole := body.EscapedLen([]byte(text), layers); sum != whole {
				t.Errorf("%.500q in %d layers: %d by character, %d as a whole", text, layers, sum, whole)
			}
		}
	}
}

func TestTokensSurviveEncodersInBothForms(t *testing.T) {
	s := body.NewStore()
	first, second := &fake{pieces: []string{"one\n\"1\""}}, &fake{pieces: []string{"two"}}
	a, b := s.Put(first), s.Put(second)
	inner := encode(t, map[string]string{"a": a.Nested(), "b": b.Nested()})
	line := encode(t, map[string]any{"text": inner, "z": map[string]string{"a": a.Plain(), "again": a.Plain()}})

	var out bytes.Buffer
	if err := s.Expand(&out, []byte(line)); err != nil {
		t.Fatal(err)
	}
	wantInner := encode(t, map[string]string{"a": "one\n\"1\"", "b": "two"})
	want := encode(t, map[string]any{"text": wantInner, "z": map[string]string{"a": "one\n\"1\"", "again": "one\n\"1\""}})
	if out.String() != want {
		t.Errorf("got  %s\nwant %s", out.String(), want)
	}
	if first.closed != 1 || second.closed != 1 {
		t.Errorf("closed %d and %d times", first.closed, second.closed)
	}
}

func TestOneLayer(t *testing.T) {
	s := body.NewStore()
	a, b := s.Put(&fake{}), s.Put(&fake{})
	in := []byte(`["` + a.Nested() + `",2,"` + b.Nested() + `"]`)
	before := string(in)
	if got, want := string(s.OneLayer(in)), `["`+a.Plain()+`",2,"`+b.Plain()+`"]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if string(in) != before {
		t.Error("its argument was changed")
	}
}

func TestDropClosesOnce(t *testing.T) {
	s := body.NewStore()
	a, b := &fake{}, &fake{}
	line := []byte(s.Put(a).Nested() + "," + s.Put(b).Plain())
	s.Drop(line)
	s.Drop(line)
	if a.closed != 1 || b.closed != 1 {
		t.Errorf("closed %d and %d times", a.closed, b.closed)
	}
	if s.Len(line) != 1 {
		t.Errorf("Len = %d, want that of the comma", s.Len(line))
	}
}

func TestPruneClosesWhatDoesNotStand(t *testing.T) {
	s := body.NewStore()
	var texts [4]fake
	var tokens, line []byte
	for i := range texts {
		token := s.Put(&texts[i])
		if i < 3 { // the last is another message's
			tokens = append(tokens, token.Plain()...)
		}
		if i == 1 {
			line = []byte("a " + token.Nested() + " b")
		}
	}
	s.Prune(tokens, line)
	for i, want := range []int{1, 0, 1, 0} {
		if texts[i].closed != want {
			t.Errorf("text %d was closed %d times, want %d", i, texts[i].closed, want)
		}
	}
	s.Prune(tokens, nil)
	if texts[0].closed != 1 || texts[1].closed != 1 || texts[3].closed != 0 {
		t.Errorf("closed %d, %d and %d times", texts[0].closed, texts[1].closed, texts[3].closed)
	}
}

func TestAForeignTokenIsText(t *testing.T) {
	s, other := body.NewStore(), body.NewStore()
	line := other.Put(&fake{}).Nested()
	var out bytes.Buffer
	if err := s.Expand(&out, []byte(line)); err != nil || out.String() != line {
		t.Errorf("got %q, %v", out.String(), err)
	}
}

const gone = "reading the source failed while it was being sent; the content above is incomplete"

type item struct {
	Content string `json:"content"`
	Status  string `json:"status"`
	Code    string `json:"error_code,omitempty"`
	Message string `json:"error_message,omitempty"`
	Path    string `json:"path"`
}

func failed(content, path string) item {
	return item{content, "error", "ERR_FS_READ_FAILED", gone, path}
}

func TestAFailureUnderWayBecomesTheItemsStatus(t *testing.T) {
	s := body.NewStore()
	bad := &fake{pieces: []string{"half\n", "h\xc3"}, err: io.ErrUnexpectedEOF} // ends inside a character
	good, gonePanics := &fake{pieces: []string{`"status":"success"`}}, panics{}
	tokens := []body.Token{s.Put(good), s.Put(bad), s.Put(good), s.Put(gonePanics)}
	list := func(form func(body.Token) string) string {
		return encode(t, []item{
			{Content: form(tokens[0]), Status: "success", Path: "a"},
			{Content: form(tokens[1]), Status: "success", Path: `"status":"success"`},
			{Content: form(tokens[2]), Status: "success", Path: "c"},
			{Content: form(tokens[3]), Status: "success", Path: "d"},
		})
	}
	line := encode(t, map[string]any{"text": list(body.Token.Nested), "z": json.RawMessage(list(body.Token.Plain))})

	var out bytes.Buffer
	err := s.Expand(&out, []byte(line))
	if f := new(body.Failure); !errors.As(err, &f) || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("err = %v, want a Failure", err)
	}
	var got struct {
		Text string
		Z    []item
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%v in %s", err, out.String())
	}
	var nested []item
	if err := json.Unmarshal([]byte(got.Text), &nested); err != nil {
		t.Fatalf("%v in %s", err, got.Text)
	}
	want := fmt.Sprint([]item{
		{Content: `"status":"success"`, Status: "success", Path: "a"},
		failed("half\nh\uFFFD", `"status":"success"`),
		{Content: `"status":"success"`, Status: "success", Path: "c"},
		failed("", "d"),
	})
	if fmt.Sprint(nested) != want || fmt.Sprint(got.Z) != want {
		t.Errorf("got  %v\nand  %v\nwant %v", nested, got.Z, want)
	}
}

type panics struct{}

func (panics) WriteTo(io.Writer) (int64, error) { panic("no") }
func (panics) Close() error                     { return nil }

func TestAFailureInPlainTextIsItsLastLine(t *testing.T) {
	s := body.NewStore()
	bad := s.Put(&fake{pieces: []string{"a \"b\""}, err: errors.New("gone")})
	good := s.Put(&fake{pieces: []string{"ok"}})
	// The status behind the second token is not the failed text's.
	line := encode(t, map[string]any{"a": bad.Plain(), "b": item{Content: good.Plain(), Status: "success"}})
	var out bytes.Buffer
	s.Expand(&out, []byte(line))
	want := encode(t, map[string]any{"a": "a \"b\"\nERR_FS_READ_FAILED: " + gone, "b": item{Content: "ok", Status: "success"}})
	if out.String() != want {
		t.Errorf("got  %s\nwant %s", out.String(), want)
	}
}

func TestALostTextFails(t *testing.T) {
	s := body.NewStore()
	token := s.Put(&fake{})
	s.Drop([]byte(token.Plain()))
	var out bytes.Buffer
	err := s.Expand(&out, []byte(token.Plain()))
	if f := new(body.Failure); !errors.As(err, &f) || !strings.Contains(out.String(), "ERR_FS_READ_FAILED") {
		t.Errorf("got %q, %v", out.String(), err)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestTheWritersErrorIsReturned(t *testing.T) {
	s := body.NewStore()
	f := &fake{pieces: []string{strings.Repeat("x", 1<<20)}}
	if err := s.Expand(broken{}, []byte(s.Put(f).Nested())); err != io.ErrClosedPipe {
		t.Errorf("err = %v", err)
	}
	if err := s.Expand(broken{}, []byte("no token")); err != io.ErrClosedPipe {
		t.Errorf("err = %v", err)
	}
	if f.closed != 1 {
		t.Errorf("closed %d times", f.closed)
	}
}

func TestStoreIsConcurrent(t *testing.T) {
	s := body.NewStore()
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			text := strings.Repeat(fmt.Sprint(i, "\n"), 1000)
			var out bytes.Buffer
			if err := s.Expand(&out, []byte(s.Put(&fake{pieces: []string{text}}).Plain())); err != nil || out.String() != inside(t, text, 1) {
				t.Errorf("text %d differs: %v", i, err)
			}
		})
	}
	wg.Wait()
}

// A sized text knows its length and must not be read for it.
type sized struct{ fake }

func (*sized) EscapedSize(layers int) int64 { return int64(100 * layers) }

func TestLenAsksTheText(t *testing.T) {
	s := body.NewStore()
	token := s.Put(&sized{})
	if n := s.Len([]byte("ab" + token.Nested() + "c" + token.Plain())); n != 303 {
		t.Errorf("Len = %d, want 303", n)
	}
}

// A log is a large text made of one piece.
type log []byte

func (l log) WriteTo(w io.Writer) (int64, error) {
	var n int64
	for part := l; len(part) > 0; {
		k := min(len(part), 64<<10)
		m, err := w.Write(part[:k])
		if n += int64(m); err != nil {
			return n, err
		}
		part = part[k:]
	}
	return n, nil
}

func (log) Close() error { return nil }

func TestMemoryIsConstant(t *testing.T) {
	text := log(bytes.Repeat([]byte("a line of the log, as long as such lines are\n"), 1<<20))
	r := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s := body.NewStore()
			if err := s.Expand(io.Discard, []byte(s.Put(text).Nested())); err != nil {
				b.Fatal(err)
			}
		}
	})
	if n := r.AllocedBytesPerOp(); n > 256<<10 {
		t.Errorf("%d bytes were allocated for a text of %d", n, len(text))
	}
}

func BenchmarkExpand(b *testing.B) {
	line := `2026-03-01T12:00:00Z INFO  request served method=GET path=/api/v1/items/42 status=200 duration=12ms agent="curl/8"` + "\n"
	for name, text := range map[string]log{
		"log":    bytes.Repeat([]byte(line), 50<<20/len(line)),
		"plain":  bytes.Repeat([]byte("abcdefghijklmnop"), 50<<20/16),
		"quotes": bytes.Repeat([]byte(`{"key": "value", "n": 1}`+"\n"), 2<<20),
		"CJK":    bytes.Repeat([]byte("吾輩は猫である。“名前”はまだ無い。"), 1<<20),
	} {
		for layers := 1; layers <= 2; layers++ {
			b.Run(fmt.Sprintf("%s/layers=%d", name, layers), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					s := body.NewStore()
					token := s.Put(text)
					stands := token.Plain()
					if layers == 2 {
						stands = token.Nested()
					}
					if err := s.Expand(io.Discard, []byte(stands)); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkEscapedLen(b *testing.B) {
	text := bytes.Repeat([]byte("a line of the log, as long as such lines are\n"), 1<<20)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		body.EscapedLen(text, 2)
	}
}

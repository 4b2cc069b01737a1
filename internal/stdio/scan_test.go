package stdio

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// scanned feeds a scanner with text in pieces.
func scanned(pieces ...[]byte) *scanner {
	s := &scanner{}
	for _, p := range pieces {
		s.feed(p)
	}
	return s
}

// verdict is all that can be told of a text.
func verdict(s *scanner, text []byte) string {
	id, err := parseID(&s.id)
	at := func(m member) string { return fmt.Sprintf("%q %q", m.kind, text[m.start:m.end]) }
	if !s.complete() {
		return "broken"
	}
	return fmt.Sprintf("%q deep=%v id=%v,%v version=%s method=%s params=%s result=%s error=%s", s.kind, s.deep, id.Raw(), err,
		at(s.version), at(s.method), at(s.params), at(s.result), at(s.fault))
}

var seeds = []string{
	``, ` `, `{}`, `[]`, `{"a":1}`, `[1,2,[3,{"a":[]}]]`, `nul`, `null`, `true`, `false`, `truex`, `"a"`, `"`, `"\`, `"\u12`, `"\u1G34"`, `"\u1a2B"`, `"\x"`,
	`0`, `00`, `-`, `-0`, `-01`, `1.`, `1.5`, `1.5e`, `1.5e+`, `1.5E-7`, `1e5`, `.5`, `1-2`, `12 `, "\t12\r\n", `1 2`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `[,]`, `[1,]`, `[1}`, `{"a":1]`,
	`{"a":1}}`, `]`, `}`, `,`, `:`, `{1:2}`, `{"a":1 "b":2}`, "\"a\x00b\"", "\"a\nb\"", "\"\xff\"", `{"jsonrpc":"2.0","id":1,"method":"ping"}`,
	`{"id":"x","id":[{"id":5}],"params":{"id":"inner","method":"no"},"method":"m","id":-7}`, `{"\u0069\u0064":1,"m\u0065thod":"p\u0069ng"}`,
	`[{"id":1}]`, `{"id":12`, `{"id":"12`, `{"id":12.0}`, `{"id":1,"result":null,"error":{"code":1}}`, `{"x":{"id":3},"id":4}`, "\"\u2028“\"",
	strings.Repeat("[", 1000) + strings.Repeat("]", 1000), strings.Repeat(`{"a":`, 1000) + "1" + strings.Repeat("}", 1000),
}

func TestScannerAgreesWithEncodingJSON(t *testing.T) {
	for _, text := range seeds {
		agree(t, []byte(text))
	}
}

func agree(t *testing.T, text []byte) {
	t.Helper()
	s := scanned(text)
	if got, want := s.complete(), json.Valid(text); got != want && !s.deep {
		t.Errorf("complete(%q) = %v, want %v", text, got, want)
	}
	if got, want := s.blank(), len(bytes.Trim(text, " \t\r\n")) == 0; got != want {
		t.Errorf("blank(%q) = %v, want %v", text, got, want)
	}
	whole := verdict(s, text)
	for cut := range min(len(text), 200) {
		if parts := verdict(scanned(text[:cut], text[cut:]), text); parts != whole {
			t.Errorf("%q cut at %d:\n%s\nwhole:\n%s", text, cut, parts, whole)
		}
	}
	var want map[string]json.RawMessage
	if !s.complete() || s.deep || s.kind != '{' || json.Unmarshal(text, &want) != nil {
		return
	}
	for name, m := range map[string]member{"jsonrpc": s.version, "id": s.id, "method": s.method, "params": s.params, "result": s.result, "error": s.fault} {
		if got := text[m.start:m.end]; !bytes.Equal(got, want[name]) {
			t.Errorf("%q: %s = %q, want %q", text, name, got, want[name])
		}
		if raw, ok := want[name]; m.into() && ok && !m.long && !bytes.Equal(m.raw, raw) {
			t.Errorf("%q: kept %q of %s, want %q", text, m.raw, name, raw)
		}
	}
}

// into reports whether the bytes of m are kept.
func (m member) into() bool { return len(m.raw) > 1 }

func TestIDThatIsCutOff(t *testing.T) {
	for _, text := range []string{`{"id":12`, `{"id":"12`, `{"id":1,"id":2`} {
		if id, err := parseID(&scanned([]byte(text)).id); err == nil {
			t.Errorf("%s: %v", text, id.Raw())
		}
	}
}

func FuzzScanner(f *testing.F) {
	for _, text := range seeds {
		f.Add([]byte(text))
	}
	f.Fuzz(agree)
}

func TestDepth(t *testing.T) {
	for depth, deep := range map[int]bool{999: false, 1000: false, 1001: true, 50000: true} {
		for _, brackets := range []string{"[]", `{"a":}`} {
			open, end := brackets[:len(brackets)-1], brackets[len(brackets)-1:]
			text := []byte(strings.Repeat(open, depth) + `"]}\""` + strings.Repeat(end, depth))
			s := scanned(text)
			if !s.complete() || s.deep != deep {
				t.Errorf("%d × %s: complete %v, deep %v", depth, brackets, s.complete(), s.deep)
			}
			if s = scanned(text[:len(text)-1]); s.complete() {
				t.Errorf("%d × %s without its end is complete", depth, brackets)
			}
			if s = scanned(append(text, end...)); s.complete() {
				t.Errorf("%d × %s with an end too many is complete", depth, brackets)
			}
		}
	}
}

func BenchmarkScanner(b *testing.B) {
	for name, text := range map[string]string{
		"string": `{"jsonrpc":"2.0","id":1,"params":{"x":"` + strings.Repeat("a", 8<<20) + `"}}`,
		"code":   `{"jsonrpc":"2.0","id":1,"params":{"x":"` + strings.Repeat(`	if err != nil {\n		return fmt.Errorf(\"no: %w\", err)\n	}\n`, 100<<10)[1:] + `"}}`,
		"values": `{"jsonrpc":"2.0","id":1,"params":[` + strings.Repeat(`{"line":17,"text":"a"},`, 300<<10) + `0]}`,
	} {
		b.Run(name, func(b *testing.B) {
			piece := []byte(strings.ReplaceAll(text, "\t", " "))
			b.SetBytes(int64(len(piece)))
			for b.Loop() {
				if s := scanned(piece); !s.complete() {
					b.Fatal("broken")
				}
			}
		})
	}
}

// Once a message was scanned, a call in it is known without another look at its
// arguments: they may be anything by then.
func TestCallsAreScannedOnce(t *testing.T) {
	content := strings.Repeat("x", 3*reserve)
	for _, size := range []int{10, 1000, len(content)} {
		m := &message{max: 10 << 20}
		before := `{"jsonrpc":"2.0","params":{"_meta":{"progressToken":7},"arguments":`
		args := `{"content":"` + content[:size] + `"}`
		text := []byte(before + args + `,"name":"t"},"id":1,"method":"tools/call"}`)
		for len(text) > 0 {
			n := min(len(text), 64<<10)
			m.add(text[:n])
			text = text[n:]
		}
		whole := m.text()
		copy(whole[len(before):], strings.Repeat(`"}`, len(args)/2))
		q := m.toolCall(m.requestMeta(), func(string) bool { return true })
		if q == nil || q.tool != "t" || q.token != 7.0 || len(q.args) != len(args) || &q.args[0] != &whole[len(before)] {
			t.Errorf("%d bytes: %.100v", size, q)
		}
	}
}

func TestLargeMessagesTakeNoMoreThanTheyNeed(t *testing.T) {
	for _, size := range []int{reserve, reserve + 1, 3 * reserve, 9 * reserve, 10*reserve - 2} {
		text := append(append([]byte{'"'}, bytes.Repeat([]byte("x"), size)...), '"', '\n')
		in := &input{r: bufio.NewReaderSize(bytes.NewReader(text), 64<<10), m: message{max: 10 * reserve}}
		m, err := in.next()
		if err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		if got := m.text(); !bytes.Equal(got, text) || cap(got) > 2*len(got) {
			t.Errorf("%d bytes: got %d, with room for %d", size, len(got), cap(got))
		}
	}
}

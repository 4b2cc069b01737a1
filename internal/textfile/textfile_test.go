package textfile_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/conduit-mcp/conduit-mcp/internal/textfile"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// A char is one character of a file by the plainest reading there is: all at
// once, from the beginning. The tests hold the package against it.
type char struct {
	at   int
	text string
}

type reference struct {
	chars []char
	lossy map[int]bool // by offset
	size  int
}

func refer(data string) reference {
	ref := reference{size: len(data), lossy: map[int]bool{}}
	var order binary.ByteOrder
	switch {
	case strings.HasPrefix(data, "\xff\xfe"):
		order = binary.LittleEndian
	case strings.HasPrefix(data, "\xfe\xff"):
		order = binary.BigEndian
	default:
		for i, r := range data {
			ref.chars = append(ref.chars, char{i, string(r)})
			ref.lossy[i] = r == '\uFFFD' && !strings.HasPrefix(data[i:], "\uFFFD")
		}
		if strings.HasPrefix(data, "\ufeff") {
			ref.chars[0].text = ""
		}
		return ref
	}
	ref.chars = append(ref.chars, char{0, ""})
	raw := []byte(data)
	var units []uint16
	for i := 2; i+1 < len(data); i += 2 {
		units = append(units, order.Uint16(raw[i:]))
	}
	for i := 0; i < len(units); i++ {
		at := 2 + 2*i
		r := rune(units[i])
		if utf16.IsSurrogate(r) {
			r = '\uFFFD'
			if i+1 < len(units) {
				r = utf16.DecodeRune(rune(units[i]), rune(units[i+1]))
			}
			if r == '\uFFFD' {
				ref.lossy[at] = true
			} else {
				i++
			}
		}
		ref.chars = append(ref.chars, char{at, string(r)})
	}
	if len(data)%2 == 1 {
		ref.chars = append(ref.chars, char{len(data) - 1, "\uFFFD"})
		ref.lossy[len(data)-1] = true
	}
	return ref
}

// pick joins the characters that begin in [from, to).
func (ref reference) pick(from, to int) (text string, lossy bool) {
	var b strings.Builder
	for _, c := range ref.chars {
		if c.at >= from && c.at < to {
			b.WriteString(c.text)
			lossy = lossy || ref.lossy[c.at]
		}
	}
	return b.String(), lossy
}

// lines returns the offsets at which lines begin, and the size.
func (ref reference) lines() []int {
	starts := []int{0}
	for i, c := range ref.chars {
		if c.text == "\n" && i+1 < len(ref.chars) {
			starts = append(starts, ref.chars[i+1].at)
		}
	}
	if len(ref.chars) == 0 {
		starts = nil
	}
	return append(starts, ref.size)
}

func (ref reference) pickLines(first, last int) string {
	starts := ref.lines()
	n := len(starts) - 1
	resolve := func(k, whenZero int) int {
		switch {
		case k == 0:
			return whenZero
		case k < 0:
			return n + k + 1
		}
		return k
	}
	first, last = max(1, resolve(first, 1)), min(n, resolve(last, n))
	if first > last {
		return ""
	}
	text, _ := ref.pick(starts[first-1], starts[last])
	return text
}

// samples are texts in every form, with all that goes wrong in them.
func samples() map[string]string {
	words := "one\ntwo\r\n\nünï 日本 😀\U0010ffff\n\nlast"
	wide := func(order binary.AppendByteOrder, text string) string {
		b := order.AppendUint16(nil, 0xfeff)
		for _, u := range utf16.Encode([]rune(text)) {
			b = order.AppendUint16(b, u)
		}
		return string(b)
	}
	le, be := binary.LittleEndian, binary.BigEndian
	return map[string]string{
		"empty":                    "",
		"one byte":                 "a",
		"line ends alone":          "\n\n\n",
		"ASCII":                    "one\ntwo\nthree\n",
		"UTF-8":                    words,
		"UTF-8, last line ended":   words + "\n",
		"UTF-8 with mark":          "\ufeff" + words,
		"mark alone":               "\ufeff",
		"half a mark":              "\xef\xbb",
		"Latin-1":                  "caf\xe9 \xfc\xf6\n\xe4\n",
		"broken UTF-8":             "\x80a\xc3\n\xe6\x97\xff\xf0\x9f\x98\n\xed\xa0\x80\xc0\xaf\xf4\x90\x80\x80 \uFFFD\xe6\x97",
		"UTF-16LE":                 wide(le, words),
		"UTF-16BE":                 wide(be, words+"\n"),
		"UTF-16 mark alone":        "\xff\xfe",
		"UTF-16 with 0A bytes":     wide(le, "\u0a0a\u0a00\n\u000a\u010a"),
		"UTF-16, lone surrogates":  wide(le, "a") + "\x00\xd8\x00\xd8\x00\xdc\x00\xdc\x0a\x00\x00\xd8",
		"UTF-16, odd byte at last": wide(be, words+"\n") + "\x41",
		"UTF-16, half a pair":      wide(be, "a\n") + "\xd8\x3d",
	}
}

func open(t *testing.T, data string) *textfile.Text {
	t.Helper()
	text, err := textfile.New(strings.NewReader(data), int64(len(data)), "f")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func content(t *testing.T, text *textfile.Text, p textfile.Part) (string, bool) {
	t.Helper()
	got, lossy, err := text.String(t.Context(), p, 0)
	if err != nil {
		t.Fatal(err)
	}
	return got, lossy
}

func TestBytesHoldCharactersThatBeginInTheRange(t *testing.T) {
	for name, data := range samples() {
		ref, text := refer(data), open(t, data)
		for from := 0; from <= len(data)+2; from++ {
			for n := -1; n <= len(data)+2; n++ {
				p, err := text.Bytes(int64(from), int64(n))
				if err != nil {
					t.Fatal(err)
				}
				to := from + n
				if n < 0 {
					to = len(data)
				}
				got, lossy := content(t, text, p)
				want, wantLossy := ref.pick(from, to)
				if got != want || lossy != wantLossy {
					t.Fatalf("%s: offset %d, length %d: %q, lossy %t; want %q, %t", name, from, n, got, lossy, want, wantLossy)
				}
			}
		}
	}
	if p, err := open(t, "abc").Bytes(1, math.MaxInt64); err != nil || p != (textfile.Part{From: 1, To: 3}) {
		t.Errorf("a length beyond all measure gives %v, %v", p, err)
	}
}

func TestLines(t *testing.T) {
	for name, data := range samples() {
		ref, text := refer(data), open(t, data)
		for first := -8; first <= 8; first++ {
			for last := -8; last <= 8; last++ {
				p, err := text.Lines(t.Context(), int64(first), int64(last))
				if err != nil {
					t.Fatal(err)
				}
				got, _ := content(t, text, p)
				if want := ref.pickLines(first, last); got != want {
					t.Fatalf("%s: lines %d to %d: %q, want %q", name, first, last, got, want)
				}
			}
		}
	}
	p, err := open(t, "a\nb\n").Lines(t.Context(), math.MinInt64, math.MaxInt64)
	if err != nil || p != (textfile.Part{From: 0, To: 4}) {
		t.Errorf("lines beyond all measure give %v, %v", p, err)
	}
}

// Lines and characters that lie across the pieces in which files are read.
func TestLargeFiles(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, wide := range []bool{false, true} {
		var b strings.Builder
		for b.Len() < 900_000 {
			b.WriteString(strings.Repeat([]string{"a", "ü", "日", "😀"}[random.IntN(4)], random.IntN(40)))
			if random.IntN(3) == 0 {
				b.WriteByte('\n')
			}
		}
		data := b.String()
		if wide {
			enc := binary.BigEndian.AppendUint16(nil, 0xfeff)
			for _, u := range utf16.Encode([]rune(data)) {
				enc = binary.BigEndian.AppendUint16(enc, u)
			}
			data = string(enc) + "a"
		} else {
			data += "\xff"
		}
		ref, text := refer(data), open(t, data)
		starts := ref.lines()
		n := len(starts) - 1
		for range 40 {
			first := 1 + random.IntN(n)
			last := first + random.IntN(n-first+1)
			want := textfile.Part{From: int64(starts[first-1]), To: int64(starts[last])}
			for _, k := range [][2]int{{first, last}, {first - n - 1, last}, {first, last - n - 1}, {first - n - 1, last - n - 1}} {
				if got, err := text.Lines(t.Context(), int64(k[0]), int64(k[1])); err != nil || got != want {
					t.Fatalf("wide %t: lines %d to %d of %d: %v, %v; want %v", wide, k[0], k[1], n, got, err, want)
				}
			}
			if line, err := text.LineAt(t.Context(), want.From); err != nil || line != int64(first) {
				t.Fatalf("LineAt(%d) = %d, %v; want %d", want.From, line, err, first)
			}
		}
		whole, _ := ref.pick(0, len(data))
		got, lossy := content(t, text, textfile.Part{To: text.Size()})
		if got != whole || !lossy {
			t.Errorf("wide %t: the whole file differs (%d bytes, want %d), lossy %t", wide, len(got), len(whole), lossy)
		}
		cut := int64(300_000)
		part, err := text.Cut(t.Context(), textfile.Part{To: text.Size()}, cut)
		if err != nil {
			t.Fatal(err)
		}
		got, _ = content(t, text, part)
		if n := int64(len([]rune(got))); n > cut || n < cut-5000 || !strings.HasSuffix(got, "\n") || !strings.HasPrefix(whole, got) {
			t.Errorf("wide %t: cut after %d characters gives %d", wide, cut, n)
		}
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		what, data string
		part       textfile.Part
		chars      int64
		want       string
	}{
		{"all fits", "ab\ncd\n", textfile.Part{To: 6}, 6, "ab\ncd\n"},
		{"whole lines", "ab\ncd\n", textfile.Part{To: 6}, 5, "ab\n"},
		{"line end included", "ab\ncd\n", textfile.Part{To: 6}, 3, "ab\n"},
		{"a longer line", "abcd\ncd\n", textfile.Part{To: 8}, 3, "abc"},
		{"characters, not bytes", "日本語日本語\n", textfile.Part{To: 19}, 4, "日本語日"},
		{"as many characters as fit", "日本\n", textfile.Part{To: 7}, 3, "日本\n"},
		{"from the middle", "ab\ncd\nef\n", textfile.Part{From: 3, To: 9}, 4, "cd\n"},
		{"the mark is no character", "\ufeffab\ncd", textfile.Part{To: 8}, 3, "ab\n"},
		{"UTF-16", "\xfe\xff\x00a\x00\n\x00b\x00c", textfile.Part{To: 10}, 3, "a\n"},
		{"invalid bytes count", "\xff\xff\xff", textfile.Part{To: 3}, 2, "\uFFFD\uFFFD"},
	} {
		text := open(t, c.data)
		p, err := text.Cut(t.Context(), c.part, c.chars)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := content(t, text, p); got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}

func TestCharset(t *testing.T) {
	for data, want := range map[string]string{
		"": "", "a": "", "\xff": "", "\xef\xbb": "", "\ufeffa": "utf-8", "\xff\xfea\x00": "utf-16le", "\xfe\xff\x00a": "utf-16be",
	} {
		if got := open(t, data).Charset(); got != want {
			t.Errorf("%q: charset %q, want %q", data, got, want)
		}
	}
}

func TestLineNumbers(t *testing.T) {
	long := strings.Repeat("x", 600_000)
	for data, want := range map[string]string{
		"":                    "",
		"a":                   "7\ta",
		"a\nb\n":              "7\ta\n8\tb\n",
		"\n\nb":               "7\t\n8\t\n9\tb",
		long + "\n" + "b":     "7\t" + long + "\n8\tb",
		"\xfe\xff\x00a\x00\n": "7\ta\n",
	} {
		got, _, err := open(t, data).String(t.Context(), textfile.Part{To: int64(len(data))}, 7)
		if err != nil || got != want {
			t.Errorf("%.20q: %.40q, %v; want %.40q", data, got, err, want)
		}
	}
}

func TestCancelledCallsEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	text := open(t, "a\nb\nc\n")
	all := textfile.Part{To: 6}
	for name, f := range map[string]func() error{
		"Lines":           func() error { _, err := text.Lines(ctx, 2, 0); return err },
		"Lines, last":     func() error { _, err := text.Lines(ctx, 0, 2); return err },
		"Lines, from end": func() error { _, err := text.Lines(ctx, -2, 0); return err },
		"LineAt":          func() error { _, err := text.LineAt(ctx, 4); return err },
		"Cut":             func() error { _, err := text.Cut(ctx, all, 2); return err },
		"String":          func() error { _, _, err := text.String(ctx, all, 0); return err },
		"Settle":          func() error { _, err := text.Settle(ctx, all, 0); return err },
	} {
		if err := f(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want that of the context", name, err)
		}
	}
}

// A failing is a reader that gives up after so many bytes.
type failing struct {
	r     io.ReaderAt
	after int64
	err   error
}

func (f failing) ReadAt(b []byte, at int64) (int, error) {
	if at+int64(len(b)) > f.after {
		return 0, f.err
	}
	return f.r.ReadAt(b, at)
}

func TestReadErrorsHaveTheirCode(t *testing.T) {
	data := strings.Repeat("line\n", 200_000)
	size := int64(len(data))
	for after, say := range map[int64]string{0: "at byte 0", 300_000: "at byte 262144"} {
		broken := failing{strings.NewReader(data), after, errors.New("bad sector at /secret")}
		check := func(what string, err error) {
			t.Helper()
			code, message := fault.Of(err)
			if code != fault.FSReadFailed || strings.Contains(message, "sector") {
				t.Errorf("%s after %d: %s %q, want %s without the cause", what, after, code, message, fault.FSReadFailed)
			}
			if what == "String" && !strings.Contains(message, say) {
				t.Errorf("%s after %d: %q does not say %q", what, after, message, say)
			}
		}
		text, err := textfile.New(broken, size, "f")
		if after == 0 {
			check("String", err)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		all := textfile.Part{To: size}
		_, _, err = text.String(t.Context(), all, 0)
		check("String", err)
		_, err = text.Settle(t.Context(), all, 0)
		check("Settle", err)
		_, err = text.Cut(t.Context(), all, 900_000)
		check("Cut", err)
		_, err = text.Lines(t.Context(), 0, 150_000)
		check("Lines", err)
		_, err = text.Lines(t.Context(), 150_000, 0)
		check("Lines", err)
		_, err = text.Lines(t.Context(), -5, 0)
		check("Lines from the end", err)
		_, err = text.Lines(t.Context(), 0, -5)
		check("Lines to the end", err)
		_, err = text.LineAt(t.Context(), size)
		check("LineAt", err)
		_, err = text.Bytes(900_000, -1)
		check("Bytes", err)
		_, err = text.Bytes(0, 900_000)
		check("Bytes", err)
		_, err = textfile.NewBase64(broken, 0, size, "f").WriteTo(io.Discard)
		check("Base64", err)
	}
}

func TestAFileThatShrankIsToldSo(t *testing.T) {
	_, err := textfile.New(bytes.NewReader(nil), 10, "notes.txt")
	if code, message := fault.Of(err); code != fault.FSReadFailed || message != "notes.txt changed while it was read; read it again" {
		t.Errorf("%s %s", code, message)
	}
}

func FuzzRanges(f *testing.F) {
	for _, data := range samples() {
		f.Add(data, int64(1), int64(3))
	}
	f.Fuzz(func(t *testing.T, data string, offset, length int64) {
		if offset < 0 || offset > 1<<40 || length > 1<<40 {
			return // the callers' schema refuses it
		}
		ref, text := refer(data), open(t, data)
		p, err := text.Bytes(offset, length)
		if err != nil {
			t.Fatal(err)
		}
		to := offset + length
		if length < 0 {
			to = int64(len(data))
		}
		got, lossy := content(t, text, p)
		want, wantLossy := ref.pick(int(offset), int(to))
		if got != want || lossy != wantLossy {
			t.Errorf("%q: %s", data, fmt.Sprintf("[%d,%d): %q, want %q", offset, to, got, want))
		}
	})
}

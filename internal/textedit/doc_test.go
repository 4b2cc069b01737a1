package textedit_test

import (
	"bytes"
	"strings"
	"testing"

	"golang.org/x/text/encoding/htmlindex"

	"github.com/conduit-mcp/conduit-mcp/internal/textedit"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func parse(t testing.TB, b []byte, label string) *textedit.Doc {
	t.Helper()
	d, err := textedit.Parse(b, label)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// in returns s in a charset.
func in(t testing.TB, charset, s string) []byte {
	t.Helper()
	enc, err := htmlindex.Get(charset)
	if err != nil {
		t.Fatal(err)
	}
	b, err := enc.NewEncoder().Bytes([]byte(s))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		what, raw, label string
		text, charset    string
	}{
		{"empty", "", "", "", ""},
		{"UTF-8", "naïve\n", "", "naïve\n", ""},
		{"UTF-8 with a mark", "\ufeffa", "", "a", "utf-8"},
		{"UTF-8 with a mark, and named", "\ufeffa", "UTF8", "a", "utf-8"},
		{"bytes that are no characters", "a\xe9\xffb", "", "a\xe9\xffb", ""},
		{"UTF-16LE", "\xff\xfea\x00\xfc\x00", "", "aü", "utf-16le"},
		{"UTF-16BE", "\xfe\xff\x00a\xd8\x3d\xde\x00", "", "a😀", "utf-16be"},
		{"UTF-16 without a mark", "a\x00\n\x00", "utf-16le", "a\n", "utf-16le"},
		{"a label", "caf\xe9\x80", "latin1", "café€", "windows-1252"},
		{"two bytes", "\x93\xfa\x96\x7b", "Shift_JIS", "日本", "shift_jis"},
		{"declared", "<?xml version=\"1.0\" encoding=\"iso-8859-2\"?><a>\xb3</a>", "", "<?xml version=\"1.0\" encoding=\"iso-8859-2\"?><a>ł</a>", "iso-8859-2"},
		{"declared, but UTF-8 all the same", "<?xml version=\"1.0\" encoding=\"iso-8859-2\"?><a>ł</a>", "", "<?xml version=\"1.0\" encoding=\"iso-8859-2\"?><a>ł</a>", ""},
		{"NUL bytes far behind", strings.Repeat("a", 8000) + "\x00", "", strings.Repeat("a", 8000) + "\x00", ""},
	} {
		d := parse(t, []byte(c.raw), c.label)
		if d.Text() != c.text || d.Charset() != c.charset {
			t.Errorf("%s: %.60q in %q, want %.60q in %q", c.what, d.Text(), d.Charset(), c.text, c.charset)
		}
		got, err := d.Apply(nil)
		if err != nil || string(got) != c.raw {
			t.Errorf("%s: without a change %.60q, %v", c.what, got, err)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct{ raw, label, say string }{
		{"a\x00b", "", "binary"},
		{"a\x00b", "latin1", "binary"},
		{"a", "klingon", `"klingon" is not known`},
		{"a", "replacement", "not known"},
		{"a", "iso-2022-jp", "cannot be edited in place"},
		{"\ufeffa", "latin1", "its charset is utf-8, not windows-1252"},
		{"\xff\xfea\x00", "utf-16be", "its charset is utf-16le, not utf-16be"},
	} {
		_, err := textedit.Parse([]byte(c.raw), c.label)
		code, message := fault.Of(err)
		if code != fault.InvalidParameter || !strings.Contains(message, c.say) {
			t.Errorf("%q as %q: %s %q, want one that says %q", c.raw, c.label, code, message, c.say)
		}
	}
}

func TestApply(t *testing.T) {
	type S = textedit.Splice
	for _, c := range []struct {
		what, raw, label string
		s                []S
		want             string
	}{
		{"in any order", "abcdef", "", []S{{4, 5, "5"}, {0, 1, "1"}}, "1bcd5f"},
		{"inserted at one place in order", "ab", "", []S{{1, 1, "x"}, {1, 1, "y"}, {1, 2, "B"}, {0, 1, "A"}}, "AxyB"},
		{"the mark stays", "\ufeffab", "", []S{{0, 1, "é"}}, "\ufefféb"},
		{"what is no character stays", "\xe9ab\xff", "", []S{{1, 2, "x"}}, "\xe9xb\xff"},
		{"8 bit", "\xe9a\xe9", "latin1", []S{{2, 3, "ü"}}, "\xe9\xfc\xe9"},
		{"undefined bytes of a charset stay", "\x81\xa5a\x81", "windows-1253", []S{{len("\ufffd\u00a5"), len("\ufffd\u00a5a"), "α"}}, "\x81\xa5\xe1\x81"},
		{"two bytes", "\x93\xfaa\x96\x7b", "shift_jis", []S{{3, 4, "日"}}, "\x93\xfa\x93\xfa\x96\x7b"},
		{"a torn character at the end", "a\x93", "shift_jis", []S{{0, 1, "b"}}, "b\x93"},
		{"surrogates", "\xff\xfe\x3d\xd8\x00\xdea\x00", "", []S{{4, 5, "😀"}}, "\xff\xfe\x3d\xd8\x00\xde\x3d\xd8\x00\xde"},
		{"a lone surrogate stays", "\xff\xfe\x3d\xd8a\x00", "", []S{{3, 4, "b"}}, "\xff\xfe\x3d\xd8b\x00"},
		{"an odd byte stays", "\xff\xfea\x00x", "", []S{{0, 1, "b"}}, "\xff\xfeb\x00x"},
	} {
		got, err := parse(t, []byte(c.raw), c.label).Apply(c.s)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %q, %v; want %q", c.what, got, err, c.want)
		}
	}
}

func TestApplyRefuses(t *testing.T) {
	type S = textedit.Splice
	for _, c := range []struct {
		what, raw, label string
		s                []S
		coded            bool
		say              string
	}{
		{"overlap", "abcdef", "", []S{{0, 3, "x"}, {2, 4, "y"}}, false, "out of place"},
		{"beyond the end", "abc", "", []S{{2, 4, ""}}, false, "out of place"},
		{"negative", "abc", "", []S{{-1, 1, ""}}, false, "out of place"},
		{"backwards", "abc", "", []S{{2, 1, ""}}, false, "out of place"},
		{"inside a character", "\xe9", "latin1", []S{{1, 2, ""}}, false, "inside a character"},
		{"what the charset lacks", "a", "latin1", []S{{0, 1, "x日"}}, true, `'日' (U+65E5) cannot be written in windows-1252`},
		{"a sign that shares its byte", "a", "shift_jis", []S{{0, 1, "\u00a5"}}, true, `(U+00A5) cannot be written in shift_jis`},
		{"what would come back as something else", "a", "gb18030", []S{{0, 1, "x\ue000"}}, true, `(U+E000) cannot be written in gb18030`},
		{"beyond ASCII where the charset is unknown", "caf\xe9", "", []S{{0, 1, "ü"}}, true, `to write "ü" into it`},
	} {
		_, err := parse(t, []byte(c.raw), c.label).Apply(c.s)
		code, message := fault.Of(err)
		if !c.coded && err != nil {
			message = err.Error()
		}
		if (code == fault.InvalidParameter) != c.coded || !strings.Contains(message, c.say) {
			t.Errorf("%s: %s %q, want one that says %q", c.what, code, message, c.say)
		}
	}
}

// Offsets are found from pegs, so every place of a long text is tried.
func TestOffsetsOfLongTexts(t *testing.T) {
	for _, charset := range []string{"windows-1252", "utf-16le", "utf-16be", "gb18030", "euc-jp", "big5", "euc-kr", "shift_jis", "koi8-r"} {
		piece := map[string]string{"windows-1252": "aé€\n", "koi8-r": "aж\n", "utf-16le": "aü😀\n", "utf-16be": "a日😀\n", "gb18030": "a日😀é\n", "euc-kr": "a한\n"}[charset]
		if piece == "" {
			piece = "a日本\n"
		}
		text := strings.Repeat(piece, 3000)
		raw := in(t, charset, text)
		d := parse(t, raw, charset)
		if d.Text() != text {
			t.Fatalf("%s: the text differs", charset)
		}
		for at := 0; at < len(text); at += 997 {
			for i := range text[at:] {
				at += i
				break
			}
			for at < len(text) && text[at]&0xc0 == 0x80 {
				at++
			}
			got, err := d.Apply([]textedit.Splice{{From: at, To: at, New: "X"}})
			want := append(append(in(t, charset, text[:at]), in(t, charset, "X")...), in(t, charset, text[at:])...)
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%s: an X at %d went elsewhere (%v)", charset, at, err)
			}
		}
	}
}

func TestLines(t *testing.T) {
	long := strings.Repeat(strings.Repeat("x", 99)+"\n", 1000)
	for _, text := range []string{"", "\n", "a", "a\n", "a\nb", "a\r\nb\n\n", long, long + "end", strings.Repeat("\n", 17000)} {
		d := parse(t, []byte(text), "")
		lines := strings.SplitAfter(text, "\n")
		if lines[len(lines)-1] == "" {
			lines = lines[:len(lines)-1]
		}
		if d.Lines() != len(lines) {
			t.Errorf("%.20q: %d lines, want %d", text, d.Lines(), len(lines))
		}
		at := 0
		for i, l := range lines {
			if i%7 > 0 && i > 3 && i < len(lines)-3 {
				at += len(l)
				continue
			}
			if got := d.Start(i + 1); got != at {
				t.Fatalf("%.20q: line %d begins at %d, want %d", text, i+1, got, at)
			}
			if got := d.Line(at + len(l) - 1); got != i+1 {
				t.Fatalf("%.20q: offset %d is in line %d, want %d", text, at, got, i+1)
			}
			at += len(l)
		}
		if got := d.Start(len(lines) + 1); got != len(text) {
			t.Errorf("%.20q: the end is at %d, want %d", text, got, len(text))
		}
	}
}

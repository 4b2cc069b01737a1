package charset

import (
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/encoding/htmlindex"
)

// Every offset of a text in a charset of its own is held against decoding what
// comes before it.
func TestOffsets(t *testing.T) {
	for _, c := range []struct{ name, text string }{
		{"windows-1252", "naïve café – “quoted”"},
		{"koi8-r", "Привет, world"},
		{"shift_jis", "日本語 and ASCII ｶﾅ"},
		{"euc-jp", "日本語とかな"},
		{"iso-2022-jp", "日本 ab 語"},
		{"gb18030", "中文😀x"},
		{"big5", "繁體中文 abc"},
		{"euc-kr", "한국어 text"},
		{"utf-16le", "aé漢😀z"},
		{"utf-16be", "aé漢😀z"},
	} {
		enc, err := htmlindex.Get(c.name)
		if err != nil {
			t.Fatal(err)
		}
		b, err := enc.NewEncoder().Bytes([]byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		kind := "text/plain; charset=" + c.name
		text, _, _ := Decode(b, kind)
		if string(text) != c.text || Declared(kind) != c.name {
			t.Fatalf("%s: %q, declared as %q", c.name, text, Declared(kind))
		}
		// Where each character begins in the source: before its bytes there are
		// as many characters as before it in the text.
		last := 0
		for offset := range len(b) + 1 {
			at := TextOffset(b, c.name, offset)
			if at < last || !utf8.RuneStart(append([]byte(c.text), 'x')[at]) {
				t.Errorf("%s: byte %d is at %d of the text, after %d", c.name, offset, at, last)
			}
			last = at
		}
		if last != len(c.text) || TextOffset(b, c.name, len(b)+9) != last {
			t.Errorf("%s: the end is at %d of %d", c.name, last, len(c.text))
		}
		for at := range append([]rune(c.text), 'x') {
			offset := len(string([]rune(c.text)[:at]))
			source := SourceOffset(b, c.name, offset)
			if back := TextOffset(b, c.name, source); back != offset {
				t.Errorf("%s: %d of the text is byte %d, which is %d of the text", c.name, offset, source, back)
			}
			if before, _, _ := Decode(b[:source], kind); c.name != "iso-2022-jp" && string(before) != c.text[:offset] {
				t.Errorf("%s: before byte %d stands %q, want %q", c.name, source, before, c.text[:offset])
			}
		}
	}
}

func TestOffsetsOfInvalidText(t *testing.T) {
	b := []byte("a\x81\xff\x82" + strings.Repeat("\xfc", 5) + "b\x82")
	for _, name := range []string{"shift_jis", "euc-jp", "gb18030", "big5", "euc-kr", "utf-16le"} {
		text, _, lossy := Decode(b, "text/plain; charset="+name)
		if end := TextOffset(b, name, len(b)); end != len(text) {
			t.Errorf("%s: the end is at %d, the text has %d bytes (lossy %t)", name, end, len(text), lossy)
		}
	}
	if TextOffset(b, "none", 3) != len(b) {
		t.Error("an unknown charset has characters")
	}
}

func TestMarked(t *testing.T) {
	for s, want := range map[string]bool{"\xef\xbb\xbfx": true, "\xff\xfex": true, "\xfe\xff": true, "\xef\xbb": false, "x": false, "": false} {
		if Marked([]byte(s)) != want {
			t.Errorf("Marked(%q) = %t", s, !want)
		}
	}
	if got := Declared(`text/html; Charset="Latin1"`); got != "windows-1252" {
		t.Errorf("Declared = %q", got)
	}
	if got := Declared("text/html"); got != "" {
		t.Errorf("Declared = %q", got)
	}
}

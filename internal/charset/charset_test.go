package charset

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/encoding/htmlindex"
)

func encoded(t *testing.T, label, text string) string {
	t.Helper()
	enc, err := htmlindex.Get(label)
	if err != nil {
		t.Fatal(err)
	}
	s, err := enc.NewEncoder().String(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestDecode(t *testing.T) {
	late := strings.Repeat(" ", declarationSize) + `<meta charset="windows-1251">`
	for _, c := range []struct {
		about, in, contentType string
		text, name             string
		lossy                  bool
	}{
		{"nothing", "", "", "", "", false},
		{"UTF-8 untold", "naïve ✓", "text/plain", "naïve ✓", "", false},
		{"UTF-8 told", "naïve", "text/html; charset=UTF8", "naïve", "utf-8", false},
		{"UTF-8 told, and not so", "na\xefve", "text/html; charset=utf-8", "na\uFFFDve", "utf-8", true},
		{"untold, and not UTF-8", "na\xefve \xe2\x82", "text/plain", "na\uFFFDve \uFFFD\uFFFD", "", true},
		{"U+FFFD of its own", "a\uFFFD", "", "a\uFFFD", "", false},
		{"mark", "\xef\xbb\xbfà", "text/plain; charset=koi8-r", "à", "utf-8", false},
		{"mark of UTF-16LE", "\xff\xfea\x00\xe0\x00", "", "aà", "utf-16le", false},
		{"mark of UTF-16BE", "\xfe\xff\x00a\x00\xe0", "text/plain", "aà", "utf-16be", false},
		{"half a character of UTF-16", "\xfe\xff\x00a\x00", "", "a\uFFFD", "utf-16be", true},
		{"lone surrogate", "\xff\xfea\x00\x00\xd8b\x00", "", "a\uFFFDb", "utf-16le", true},
		{"U+FFFD of UTF-16", "\xff\xfea\x00\xfd\xff", "", "a\uFFFD", "utf-16le", false},
		{"UTF-16 by header", "a\x00b\x00", "text/plain; charset=utf-16", "ab", "utf-16le", false},
		{"header", "na\xefve", "text/plain; charset=iso-8859-1", "naïve", "windows-1252", false},
		{"header in quotes", "\xc4", `text/html;charset="ISO-8859-2"`, "Ä", "iso-8859-2", false},
		{"broken header", "\xef", `text/html; ; Charset = 'latin1' ; x`, "ï", "windows-1252", false},
		{"header without charset", "é", "text/html; boundary=charset", "é", "", false},
		{"unknown in header", "\xef", "text/plain; charset=martian", "\uFFFD", "", true},
		{"unknown in header, known in meta", "<meta charset=koi8-r>\xc1", "text/html; charset=martian", "<meta charset=koi8-r>а", "koi8-r", false},
		{"header before meta", "<meta charset=koi8-r>\xef", "text/html; charset=latin1", "<meta charset=koi8-r>ï", "windows-1252", false},
		{"refused label", "a", "text/html; charset=iso-2022-kr", "a", "", false},
		{"ASCII", "plain", "text/plain; charset=windows-1251", "plain", "windows-1251", false},
		{"meta", "<html><head><META CharSet='Shift_JIS'><p>" + encoded(t, "shift_jis", "日本"), "text/html", "<html><head><META CharSet='Shift_JIS'><p>日本", "shift_jis", false},
		{"meta with pragma", `<meta content="text/html; charset=euc-kr" http-equiv=Content-Type>` + encoded(t, "euc-kr", "한국"), "text/html", `<meta content="text/html; charset=euc-kr" http-equiv=Content-Type>한국`, "euc-kr", false},
		{"meta without pragma", `<meta content="text/html; charset=euc-kr" name=x>é`, "text/html", `<meta content="text/html; charset=euc-kr" name=x>é`, "", false},
		{"meta in a comment", "<!-- <meta charset=koi8-r> -->é", "text/html", "<!-- <meta charset=koi8-r> -->é", "", false},
		{"meta in plain text", "<meta charset=koi8-r>é", "text/plain", "<meta charset=koi8-r>é", "", false},
		{"meta in what looks like markup", "\n <meta charset=koi8-r>\xc1", "", "\n <meta charset=koi8-r>а", "koi8-r", false},
		{"no markup", "x <meta charset=koi8-r>é", "", "x <meta charset=koi8-r>é", "", false},
		{"meta beyond the head", late + "é", "text/html", late + "é", "", false},
		{"meta says UTF-16", "<meta charset=utf-16>é", "text/html", "<meta charset=utf-16>é", "utf-8", false},
		{"meta says user-defined", "<meta charset=x-user-defined>\xe9", "text/html", "<meta charset=x-user-defined>é", "windows-1252", false},
		{"XML", `<?xml version="1.0" encoding='windows-1250'?><a>` + "\x9a</a>", "application/rss+xml", `<?xml version="1.0" encoding='windows-1250'?><a>š</a>`, "windows-1250", false},
		{"XML without encoding", `<?xml version="1.0"?><a>é</a>`, "text/xml", `<?xml version="1.0"?><a>é</a>`, "", false},
		{"XML in UTF-16", encoded(t, "utf-16le", `<?xml version="1.0"?><a/>`), "application/xml", `<?xml version="1.0"?><a/>`, "utf-16le", false},
		{"GB 18030", encoded(t, "gb18030", "中\uFFFD文"), "text/plain; charset=gb18030", "中\uFFFD文", "gb18030", false},
		{"bad GBK", "\xd6\xd0\xff\xff", "text/plain; charset=gb2312", "中\uFFFD\uFFFD", "gbk", true},
		{"ISO-2022-JP", encoded(t, "iso-2022-jp", "日本 ok"), "text/plain; charset=iso-2022-jp", "日本 ok", "iso-2022-jp", false},
		{"Big5", encoded(t, "big5", "繁體"), "text/plain; charset=big5", "繁體", "big5", false},
	} {
		t.Run(c.about, func(t *testing.T) {
			text, name, lossy := Decode([]byte(c.in), c.contentType)
			if string(text) != c.text || name != c.name || lossy != c.lossy {
				t.Errorf("Decode = %q, %q, %v\nwant     %q, %q, %v", text, name, lossy, c.text, c.name, c.lossy)
			}
		})
	}
}

func TestValidIsNotCopied(t *testing.T) {
	for _, c := range []struct {
		in, contentType string
		mark            int
	}{
		{"é", "", 0}, {"\xef\xbb\xbfé", "", 3}, {"plain", "text/html; charset=latin1", 0},
	} {
		b := []byte(c.in)
		if text, _, _ := Decode(b, c.contentType); &text[0] != &b[c.mark] {
			t.Errorf("%q was copied", c.in)
		}
	}
}

func TestEveryLabelDecodesAnything(t *testing.T) {
	var all [512]byte
	for i := range all {
		all[i] = byte(i * 167)
	}
	for _, label := range []string{
		"utf-8", "ibm866", "iso-8859-2", "iso-8859-3", "iso-8859-4", "iso-8859-5", "iso-8859-6", "iso-8859-7", "iso-8859-8", "iso-8859-8-i",
		"iso-8859-10", "iso-8859-13", "iso-8859-14", "iso-8859-15", "iso-8859-16", "koi8-r", "koi8-u", "macintosh", "windows-874", "windows-1250",
		"windows-1251", "windows-1252", "windows-1253", "windows-1254", "windows-1255", "windows-1256", "windows-1257", "windows-1258",
		"x-mac-cyrillic", "gbk", "gb18030", "big5", "euc-jp", "iso-2022-jp", "shift_jis", "euc-kr", "utf-16be", "utf-16le", "x-user-defined",
	} {
		text, name, _ := Decode(all[:], "text/plain; charset="+label)
		if name != label || !utf8.Valid(text) || len(text) == 0 {
			t.Errorf("%s: name %q, %d bytes", label, name, len(text))
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("\xff\xfea\x00"), "")
	f.Add([]byte("<meta charset=gbk>\xd6\xd0"), "text/html")
	f.Add([]byte("<?xml version='1.0' encoding='big5'?>\xa4"), "application/xml")
	f.Add([]byte("\x1b$B"), "text/plain; charset=iso-2022-jp")
	f.Add([]byte("a\xff"), "charset=\"")
	f.Fuzz(func(t *testing.T, b []byte, contentType string) {
		before := bytes.Clone(b)
		text, name, lossy := Decode(b, contentType)
		if !utf8.Valid(text) {
			t.Errorf("%q is not UTF-8", text)
		}
		if !bytes.Equal(b, before) {
			t.Error("the input was changed")
		}
		if name != strings.ToLower(name) {
			t.Errorf("name %q", name)
		}
		if lossy && !bytes.Contains(text, []byte("\uFFFD")) {
			t.Error("lossy without U+FFFD")
		}
	})
}

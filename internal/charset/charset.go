// Package charset turns bytes from the web and from disk into UTF-8.
package charset

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
)

// declarationSize is how far into a document its own declaration is looked for.
const declarationSize = 1024

// Decode returns b as valid UTF-8. The charset is told by a byte order mark,
// else by contentType (the value of an HTTP Content-Type header, "" for none),
// else, where that type is HTML or XML or there is none and b starts like
// markup, by the meta element or XML declaration within the first 1024 bytes;
// where nothing tells it, UTF-8 is assumed. A charset that the WHATWG Encoding
// Standard does not know, or wants refused, counts as not told.
//
// name is the charset as it was told, in the standard's spelling in lower case,
// "" where it was not. lossy reports that U+FFFD stands for what is no
// character of the charset. text is b itself, less its mark, where that already
// is what was asked for. Decode never fails.
func Decode(b []byte, contentType string) (text []byte, name string, lossy bool) {
	body, enc, name := detect(b, contentType)
	if enc == nil || name == "utf-8" {
		if utf8.Valid(body) {
			return body, name, false
		}
		return toValid(body), name, true
	}
	if asciiCompatible(name) && isASCII(body) {
		return body, name, false
	}
	text, err := enc.NewDecoder().Bytes(body)
	if err != nil || !utf8.Valid(text) {
		return toValid(body), "", true
	}
	return text, name, bytes.Count(text, []byte("\uFFFD")) > spelledOut(body, name)
}

func detect(b []byte, contentType string) (body []byte, enc encoding.Encoding, name string) {
	for _, mark := range [...]struct{ bytes, label string }{
		{"\xef\xbb\xbf", "utf-8"}, {"\xfe\xff", "utf-16be"}, {"\xff\xfe", "utf-16le"},
	} {
		if bytes.HasPrefix(b, []byte(mark.bytes)) {
			enc, name = lookup(mark.label)
			return b[len(mark.bytes):], enc, name
		}
	}
	if enc, name = lookup(parameter(contentType)); enc != nil {
		return b, enc, name
	}
	if isMarkup(b, contentType) {
		enc, name = declared(b[:min(len(b), declarationSize)])
	}
	return b, enc, name
}

// lookup returns nothing for the labels that the standard maps to
// "replacement": decoding by that would throw the content away.
func lookup(label string) (encoding.Encoding, string) {
	if label == "" {
		return nil, ""
	}
	enc, err := htmlindex.Get(label)
	if err != nil || enc == encoding.Replacement {
		return nil, ""
	}
	name, err := htmlindex.Name(enc)
	if err != nil {
		return nil, ""
	}
	return enc, name
}

// parameter returns the value of "charset" in a Content-Type, well-formed or
// not, as it stands in a header and in a meta element.
func parameter(contentType string) string {
	const key = "charset"
	for s := contentType; ; {
		i := indexFold(s, key)
		if i < 0 {
			return ""
		}
		s = s[i+len(key):]
		value, ok := strings.CutPrefix(strings.TrimLeft(s, " \t\r\n\f"), "=")
		if !ok {
			continue
		}
		value = strings.TrimLeft(value, " \t\r\n\f")
		if value != "" && (value[0] == '"' || value[0] == '\'') {
			value, _, _ = strings.Cut(value[1:], value[:1])
		} else if end := strings.IndexAny(value, "; \t\r\n\f"); end >= 0 {
			value = value[:end]
		}
		return strings.TrimSpace(value)
	}
}

func indexFold(s, lower string) int {
	for i := range len(s) - len(lower) + 1 {
		if strings.EqualFold(s[i:i+len(lower)], lower) {
			return i
		}
	}
	return -1
}

func isMarkup(b []byte, contentType string) bool {
	if contentType == "" {
		head := bytes.TrimLeft(b[:min(len(b), declarationSize)], "\x00 \t\r\n\f")
		return len(head) > 0 && head[0] == '<'
	}
	mime, _, _ := strings.Cut(contentType, ";")
	mime = strings.ToLower(strings.TrimSpace(mime))
	return mime == "text/html" || mime == "text/xml" || mime == "application/xml" || strings.HasSuffix(mime, "+xml")
}

// declared reads the declaration of a document by its head. What can be read
// as ASCII is not UTF-16, whatever it says.
func declared(head []byte) (encoding.Encoding, string) {
	switch {
	case bytes.HasPrefix(head, []byte("<\x00?\x00x\x00")):
		return lookup("utf-16le")
	case bytes.HasPrefix(head, []byte("\x00<\x00?\x00x")):
		return lookup("utf-16be")
	}
	enc, name := byXML(head)
	if enc == nil {
		enc, name = byMeta(head)
	}
	switch name {
	case "utf-16le", "utf-16be":
		return lookup("utf-8")
	case "x-user-defined":
		return lookup("windows-1252")
	}
	return enc, name
}

func byXML(head []byte) (encoding.Encoding, string) {
	declaration, ok := bytes.CutPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("<?xml"))
	if !ok {
		return nil, ""
	}
	declaration, _, _ = bytes.Cut(declaration, []byte(">"))
	_, value, _ := strings.Cut(string(declaration), "encoding")
	value, ok = strings.CutPrefix(strings.TrimSpace(value), "=")
	value = strings.TrimSpace(value)
	if !ok || value == "" || value[0] != '"' && value[0] != '\'' {
		return nil, ""
	}
	value, _, _ = strings.Cut(value[1:], value[:1])
	return lookup(value)
}

func byMeta(head []byte) (encoding.Encoding, string) {
	for z := html.NewTokenizer(bytes.NewReader(head)); ; {
		switch z.Next() {
		case html.ErrorToken:
			return nil, ""
		case html.StartTagToken, html.SelfClosingTagToken:
			tag, more := z.TagName()
			if string(tag) != "meta" {
				continue
			}
			var direct, content string
			pragma := false
			for more {
				var key, value []byte
				key, value, more = z.TagAttr()
				switch string(key) {
				case "charset":
					direct = string(value)
				case "http-equiv":
					pragma = strings.EqualFold(string(value), "content-type")
				case "content":
					content = parameter(string(value))
				}
			}
			if direct == "" && pragma {
				direct = content
			}
			if enc, name := lookup(direct); enc != nil {
				return enc, name
			}
		}
	}
}

// asciiCompatible reports whether every byte below 0x80 stands for itself.
func asciiCompatible(name string) bool {
	return name != "iso-2022-jp" && !strings.HasPrefix(name, "utf-16")
}

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// spelledOut counts the U+FFFD that the source itself has: only UTF-16 and
// GB 18030 can write it.
func spelledOut(b []byte, name string) int {
	switch name {
	case "gb18030", "gbk":
		return bytes.Count(b, []byte("\x84\x31\xa4\x37"))
	case "utf-16le", "utf-16be":
		hi, lo := 1, 0
		if name == "utf-16be" {
			hi, lo = 0, 1
		}
		n := 0
		for ; len(b) >= 2; b = b[2:] {
			if b[hi] == 0xFF && b[lo] == 0xFD {
				n++
			}
		}
		return n
	}
	return 0
}

// toValid puts one U+FFFD for each byte that is part of no character.
func toValid(b []byte) []byte {
	text := make([]byte, 0, len(b)+len(b)/8)
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		text = utf8.AppendRune(text, r)
		b = b[size:]
	}
	return text
}

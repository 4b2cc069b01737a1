// Package textedit changes text files without touching a byte outside of the
// changes: byte order mark, charset, the ending of each line and what is no
// character at all stay as they are.
package textedit

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"
	"unsafe"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/transform"

	"github.com/conduit-mcp/conduit-mcp/internal/charset"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// A Doc is the content of a text file, to be changed. It is not changed itself
// and may be used by several goroutines.
type Doc struct {
	raw  []byte
	mark int               // length of the byte order mark
	name string            // of the charset; "" for UTF-8 that nothing declares
	enc  encoding.Encoding // nil for UTF-8
	text string
	pegs []peg // of a text that had to be decoded
	rows rows
}

// A peg is a place where a character begins.
type peg struct{ raw, text int }

// pegged is how many bytes lie between two pegs.
const pegged = 4096

// binaryHead is how far into a file a NUL byte makes it binary.
const binaryHead = 8000

// Parse returns b as a Doc, which keeps b. The charset is told by a byte order
// mark, else by label (a name of the WHATWG Encoding Standard, "" for none),
// else, where b is markup that is not valid UTF-8, by its own declaration;
// otherwise it is UTF-8, and bytes that are none are kept.
//
// A binary file, an unknown label, one that the mark contradicts and one whose
// characters depend on what stands before them is ERR_INVALID_PARAMETER.
func Parse(b []byte, label string) (*Doc, error) {
	d := &Doc{raw: b}
	var err error
	if d.enc, d.name, d.mark, err = charsetOf(b, label); err != nil {
		return nil, err
	}
	wide := strings.HasPrefix(d.name, "utf-16")
	if !wide && bytes.IndexByte(b[:min(len(b), binaryHead)], 0) >= 0 {
		return nil, fault.New(fault.InvalidParameter, "it is a binary file (it has NUL bytes), and only text can be edited; replace it whole with write put, or name its charset if it is UTF-16")
	}
	if d.enc == nil {
		d.text = view(b[d.mark:])
	} else if err := d.decode(); err != nil {
		return nil, err
	}
	return d, nil
}

// view is b as a string without a copy; nobody changes b.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

var marks = [...]struct{ bytes, name string }{{"\xef\xbb\xbf", "utf-8"}, {"\xff\xfe", "utf-16le"}, {"\xfe\xff", "utf-16be"}}

func charsetOf(b []byte, label string) (enc encoding.Encoding, name string, mark int, err error) {
	if label != "" {
		if enc, name, err = named(label); err != nil {
			return nil, "", 0, err
		}
	}
	for _, m := range marks {
		if !bytes.HasPrefix(b, []byte(m.bytes)) {
			continue
		}
		if label != "" && name != m.name {
			return nil, "", 0, fault.New(fault.InvalidParameter, "its byte order mark says that its charset is %s, not %s; leave charset out", m.name, name)
		}
		enc, name, err = named(m.name)
		return enc, name, len(m.bytes), err
	}
	if label == "" && bytes.HasPrefix(bytes.TrimLeft(b[:min(len(b), 1024)], "\x00 \t\r\n\f"), []byte("<")) && !utf8.Valid(b) {
		if _, declared, _ := charset.Decode(b[:min(len(b), 1024)], ""); declared != "" {
			enc, name, err = named(declared)
		}
	}
	return enc, name, 0, err
}

// named returns the charset that label stands for; the Encoding of UTF-8 is nil.
func named(label string) (encoding.Encoding, string, error) {
	enc, err := htmlindex.Get(label)
	if err != nil || enc == encoding.Replacement {
		return nil, "", fault.New(fault.InvalidParameter, "charset %.40q is not known; give a name such as utf-8, windows-1252, iso-8859-2, shift_jis, gbk, utf-16le", label)
	}
	name, err := htmlindex.Name(enc)
	switch {
	case err != nil:
		return nil, "", err
	case name == "iso-2022-jp":
		return nil, "", fault.New(fault.InvalidParameter, "text in iso-2022-jp cannot be edited in place, since its bytes depend on what stands before them; convert it to UTF-8")
	case name == "utf-8":
		enc = nil
	}
	return enc, name, nil
}

// decode fills in the text, with a peg about every few thousand bytes.
func (d *Doc) decode() error {
	decoder := d.enc.NewDecoder().Transformer
	var b strings.Builder
	b.Grow(len(d.raw) + len(d.raw)/8)
	var buf [4 * pegged]byte
	for at := d.mark; at < len(d.raw); {
		d.pegs = append(d.pegs, peg{at, b.Len()})
		end := min(at+pegged, len(d.raw))
		n, used, err := decoder.Transform(buf[:], d.raw[at:end], end == len(d.raw))
		if err != nil && !errors.Is(err, transform.ErrShortSrc) && !errors.Is(err, transform.ErrShortDst) || used == 0 {
			return fmt.Errorf("decoding %s: stuck at byte %d: %w", d.name, at, err)
		}
		b.Write(buf[:n])
		at += used
	}
	d.text = b.String()
	return nil
}

// Text is the decoded content without a byte order mark. For UTF-8 it is the
// bytes of the file, valid or not.
func (d *Doc) Text() string { return d.text }

// Charset is the name of the charset where a mark, a label or a declaration
// told it, else "", which is UTF-8.
func (d *Doc) Charset() string { return d.name }

// A Splice puts New in the place of the bytes From to To of a Doc's Text.
type Splice struct {
	From, To int
	New      string
}

// Apply returns the file with s applied. See [Doc.Pieces].
func (d *Doc) Apply(s []Splice) ([]byte, error) {
	pieces, err := d.Pieces(s)
	return bytes.Join(pieces, nil), err
}

// Pieces returns the parts of the file with s applied, the offsets being those
// of the text as it is; most of them are parts of the old file. The order of s
// counts only among those that insert at one place. New is written as it is, in
// the charset of the file.
//
// A character that the charset lacks is ERR_INVALID_PARAMETER, and so is one
// beyond ASCII in a file that is taken for UTF-8 but is not. Splices that
// overlap, lie outside or divide a character are an error of the caller.
func (d *Doc) Pieces(s []Splice) ([][]byte, error) {
	s = sorted(s)
	pieces := make([][]byte, 0, 2*len(s)+1)
	at, checked := 0, false
	for i, p := range s {
		if p.From < 0 || p.To < p.From || p.To > len(d.text) || i > 0 && p.From < s[i-1].To {
			return nil, fmt.Errorf("splice [%d,%d) of %d bytes of text is out of place", p.From, p.To, len(d.text))
		}
		if d.name == "" && !checked && !isASCII(p.New) {
			if checked = true; !utf8.ValidString(d.text) {
				return nil, fault.New(fault.InvalidParameter, "it has bytes that are not UTF-8, so the charset must be named to write %q into it; give charset, such as windows-1252", firstBeyond(p.New))
			}
		}
		new, err := d.encode(p.New)
		if err != nil {
			return nil, err
		}
		from, err := d.source(p.From)
		if err != nil {
			return nil, err
		}
		to, err := d.source(p.To)
		if err != nil {
			return nil, err
		}
		pieces = append(pieces, d.raw[at:from], new)
		at = to
	}
	return append(pieces, d.raw[at:]), nil
}

// sorted returns s in the order of the text. Of two at one place the one that
// inserts comes first; two that insert keep their order.
func sorted(s []Splice) []Splice {
	order := func(a, b Splice) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) }
	if slices.IsSortedFunc(s, order) {
		return s
	}
	s = slices.Clone(s)
	slices.SortStableFunc(s, order)
	return s
}

// source returns where in the file the character begins that begins at the
// offset at of the text.
func (d *Doc) source(at int) (int, error) {
	if d.enc == nil {
		return d.mark + at, nil
	}
	if at == len(d.text) {
		return len(d.raw), nil
	}
	i := sort.Search(len(d.pegs), func(i int) bool { return d.pegs[i].text > at }) - 1
	p := d.pegs[i]
	decoder := d.enc.NewDecoder().Transformer
	for p.text < at && p.raw < len(d.raw) {
		n, used := character(decoder, d.raw[p.raw:])
		if used == 0 {
			break
		}
		p.text += n
		p.raw += used
	}
	if p.text != at {
		return 0, fmt.Errorf("offset %d of the text lies inside a character of %s", at, d.name)
	}
	return p.raw, nil
}

// character returns how many bytes of text the first character of b makes, and
// how many of b it takes.
func character(decoder transform.Transformer, b []byte) (n, used int) {
	var buf [16]byte
	for length := 1; length <= len(b); length++ {
		for room := 1; room <= len(buf); room++ { // so that it is not more than one
			var err error
			if n, used, err = decoder.Transform(buf[:room], b[:length], length == len(b)); used > 0 {
				return n, used
			}
			if !errors.Is(err, transform.ErrShortDst) {
				break
			}
		}
	}
	return 0, 0
}

// encode returns s in the charset of the file.
func (d *Doc) encode(s string) ([]byte, error) {
	if d.enc == nil || s == "" {
		return []byte(s), nil
	}
	if b, ok := d.faithfully(s); ok {
		return b, nil
	}
	for _, r := range s {
		if _, ok := d.faithfully(string(r)); !ok {
			return nil, fault.New(fault.InvalidParameter, "%q (U+%04X) cannot be written in %s, the charset of the file; use characters it has, or convert the file to UTF-8 first", r, r, d.name)
		}
	}
	return nil, fault.New(fault.InvalidParameter, "the new text cannot be written in %s, the charset of the file", d.name)
}

// faithfully returns s in the charset of the file, and whether it can be read
// back from there.
func (d *Doc) faithfully(s string) ([]byte, bool) {
	b, err := d.enc.NewEncoder().Bytes([]byte(s))
	if err != nil {
		return nil, false
	}
	back, err := d.enc.NewDecoder().Bytes(b)
	return b, err == nil && string(back) == s
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// firstBeyond is the first character of s that is not ASCII.
func firstBeyond(s string) string {
	for _, r := range s {
		if r >= utf8.RuneSelf {
			return string(r)
		}
	}
	return ""
}

package mux

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/conduit-mcp/conduit-mcp/internal/body"
	"github.com/conduit-mcp/conduit-mcp/registry"
)

// A document is a text in pieces, so that a large one is neither copied while
// it grows nor one piece of memory. It is a [body.Text].
type document struct {
	pieces [][]byte
	size   int
}

const pieceSize = 64 << 10

// Write adds a copy of b.
func (d *document) Write(b []byte) (int, error) {
	n := len(b)
	if last := len(d.pieces) - 1; last >= 0 {
		p := d.pieces[last]
		k := min(n, cap(p)-len(p))
		d.pieces[last] = append(p, b[:k]...)
		b = b[k:]
	}
	if len(b) > 0 {
		room := max(len(b), min(max(256, d.size), pieceSize))
		d.pieces = append(d.pieces, append(make([]byte, 0, room), b...))
	}
	d.size += n
	return n, nil
}

// add adds s.
func (d *document) add(s string) { io.WriteString(d, s) }

// bytes is the document in one piece.
func (d *document) bytes() []byte {
	if len(d.pieces) > 1 {
		d.pieces = [][]byte{slices.Concat(d.pieces...)}
	}
	if len(d.pieces) == 0 {
		return nil
	}
	return d.pieces[0]
}

// A mark is a place in a document: a length of its last piece, and of it all.
type mark struct{ pieces, last, size int }

// end marks the end of the document.
func (d *document) end() mark {
	m := mark{len(d.pieces), 0, d.size}
	if m.pieces > 0 {
		m.last = len(d.pieces[m.pieces-1])
	}
	return m
}

// from is what was added after m. It is valid until the document is cut.
func (d *document) from(m mark) *document {
	rest := &document{slices.Clone(d.pieces[max(0, m.pieces-1):]), d.size - m.size}
	if m.pieces > 0 {
		rest.pieces[0] = rest.pieces[0][m.last:]
	}
	return rest
}

// cut takes away what was added after m.
func (d *document) cut(m mark) {
	d.pieces, d.size = d.pieces[:m.pieces], m.size
	if m.pieces > 0 {
		d.pieces[m.pieces-1] = d.pieces[m.pieces-1][:m.last]
	}
}

// first is the first byte of a document that is not empty.
func (d *document) first() byte { return d.pieces[0][0] }

// WriteTo writes the document.
func (d *document) WriteTo(w io.Writer) (int64, error) {
	written := int64(0)
	for _, p := range d.pieces {
		n, err := w.Write(p)
		written += int64(n)
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// Close is there for [body.Text].
func (d *document) Close() error { return nil }

// EscapedSize is the length of the document in layers of JSON strings.
func (d *document) EscapedSize(layers int) (n int64) {
	for _, p := range d.pieces {
		n += int64(body.EscapedLen(p, layers))
	}
	return n
}

// encode adds v as compact JSON without HTML escapes.
func (d *document) encode(v any) error {
	var err error
	if own, ok := v.(registry.JSONWriter); ok {
		err = own.WriteJSON(d)
	} else {
		enc := json.NewEncoder(line{d})
		enc.SetEscapeHTML(false)
		err = enc.Encode(v)
	}
	if err != nil {
		return fmt.Errorf("encoding the result: %w", err)
	}
	return nil
}

// A line adds what an encoder writes, without the end of the line after it.
type line struct{ *document }

func (l line) Write(b []byte) (int, error) {
	l.document.Write(bytes.TrimSuffix(b, []byte{'\n'}))
	return len(b), nil
}

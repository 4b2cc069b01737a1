package entries

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/conduit-mcp/conduit-mcp/internal/entry"
)

type tree []entry.Info

// WriteJSON writes what encoding/json would, without reflection.
func (t tree) WriteJSON(w io.Writer) error { return entry.WriteJSON(w, t) }

// Lean writes a line for each entry, indented by two spaces a level:
// directories end in a slash, links show their target, and the sizes that were
// asked for follow a tab.
func (t tree) Lean(w io.Writer) error {
	var b bytes.Buffer
	outline(&b, t, "")
	_, err := w.Write(bytes.TrimSuffix(b.Bytes(), []byte{'\n'}))
	return err
}

func outline(b *bytes.Buffer, list []entry.Info, indent string) {
	for _, e := range list {
		b.WriteString(indent + line(e.Name))
		switch {
		case e.IsLink:
			b.WriteString(" -> " + line(e.LinkTarget))
		case e.Type == "directory":
			b.WriteByte('/')
		}
		if e.Sized && e.Size >= 0 {
			fmt.Fprintf(b, "\t%d", e.Size)
		}
		if e.SizeNote != "" {
			fmt.Fprintf(b, "\t(%s)", e.SizeNote)
		}
		b.WriteByte('\n')
		if e.Children != nil {
			outline(b, *e.Children, indent+"  ")
		}
	}
}

// line keeps a name on its line.
func line(name string) string {
	if strings.ContainsFunc(name, unicode.IsControl) {
		return strconv.Quote(name)
	}
	return name
}

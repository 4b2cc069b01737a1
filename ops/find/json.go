package find

import (
	"io"
	"strconv"

	"github.com/conduit-mcp/conduit-mcp/internal/body"
	"github.com/conduit-mcp/conduit-mcp/internal/entry"
	"github.com/conduit-mcp/conduit-mcp/internal/search"
)

// WriteJSON writes what encoding/json would, without reflection.
func (list results) WriteJSON(w io.Writer) error {
	return entry.WriteList(w, list, func(b []byte, r *result) []byte {
		b = r.AppendMembers(append(b, '{'))
		for i := range r.Matches {
			sep := ","
			if i == 0 {
				sep = `,"matches":[`
			}
			b = appendLine(append(b, sep...), &r.Matches[i])
		}
		if len(r.Matches) > 0 {
			b = append(b, ']')
		}
		return append(b, '}')
	})
}

func appendLine(b []byte, l *search.Line) []byte {
	b = strconv.AppendInt(append(b, `{"line":`...), int64(l.Line), 10)
	b = strconv.AppendInt(append(b, `,"column":`...), int64(l.Column), 10)
	b = body.AppendString(append(b, `,"text":`...), l.Text)
	b = appendTexts(b, `,"before":[`, l.Before)
	b = appendTexts(b, `,"after":[`, l.After)
	return append(b, '}')
}

func appendTexts(b []byte, key string, texts []string) []byte {
	for i, t := range texts {
		if i == 0 {
			b = append(b, key...)
		} else {
			b = append(b, ',')
		}
		b = body.AppendString(b, t)
	}
	if len(texts) > 0 {
		b = append(b, ']')
	}
	return b
}

package entry

import (
	"io"
	"strconv"

	"github.com/conduit-mcp/conduit-mcp/internal/body"
)

// WriteJSON writes list as encoding/json without HTML escapes would, in pieces,
// so that a large tree is never in one piece of memory.
func WriteJSON(w io.Writer, list []Info) error {
	p := &pieces{w: w}
	return p.end(appendInfos(nil, list, p))
}

// WriteList is [WriteJSON] for a list of other things, of which one appends a
// JSON value.
func WriteList[T any](w io.Writer, list []T, one func(b []byte, v *T) []byte) error {
	p := &pieces{w: w}
	return p.end(appendList(nil, list, p, one))
}

// AppendMembers appends the members of i as a JSON object, without the braces,
// to b.
func (i *Info) AppendMembers(b []byte) []byte { return i.append(b, nil) }

func appendInfos(b []byte, list []Info, p *pieces) []byte {
	return appendList(b, list, p, func(b []byte, i *Info) []byte {
		return append(i.append(append(b, '{'), p), '}')
	})
}

// appendList appends list, except for what p takes.
func appendList[T any](b []byte, list []T, p *pieces, one func(b []byte, v *T) []byte) []byte {
	if list == nil {
		return append(b, "null"...)
	}
	b = append(b, '[')
	for k := range list {
		if k > 0 {
			b = append(b, ',')
		}
		b = p.spill(one(b, &list[k]))
	}
	return append(b, ']')
}

// append appends the members of i, except for what p takes.
func (i *Info) append(b []byte, p *pieces) []byte {
	b = body.AppendString(append(b, `"name":`...), i.Name)
	if i.NameLossy {
		b = append(b, `,"name_lossy":true`...)
	}
	b = body.AppendString(append(b, `,"path":`...), i.Path)
	b = body.AppendString(append(b, `,"type":`...), i.Type)
	switch {
	case i.Size.IsZero():
	case i.Size < 0:
		b = append(b, `,"size_bytes":null`...)
	default:
		b = strconv.AppendInt(append(b, `,"size_bytes":`...), int64(i.Size), 10)
	}
	b = appendMember(b, `,"mime_type":`, i.MIMEType)
	b = body.AppendString(append(b, `,"created_at_iso":`...), i.Created)
	b = body.AppendString(append(b, `,"modified_at_iso":`...), i.Modified)
	b = appendMember(b, `,"permissions_octal":`, i.Octal)
	b = appendMember(b, `,"permissions_string":`, i.Permissions)
	if i.IsLink {
		b = append(b, `,"is_symlink":true`...)
	}
	b = appendMember(b, `,"symlink_target_path":`, i.LinkTarget)
	if i.Children != nil {
		b = appendInfos(append(b, `,"children":`...), *i.Children, p)
	}
	return appendMember(b, `,"recursive_size_calculation_note":`, i.SizeNote)
}

// appendMember appends a member unless it is empty.
func appendMember(b []byte, key, value string) []byte {
	if value == "" {
		return b
	}
	return body.AppendString(append(b, key...), value)
}

// pieces are what a writer gets.
type pieces struct {
	w   io.Writer
	err error
}

const piece = 32 << 10

// spill writes b once it is long, and returns what is left. It takes nothing
// where p is nil.
func (p *pieces) spill(b []byte) []byte {
	if p == nil || len(b) < piece {
		return b
	}
	p.write(b)
	return b[:0]
}

func (p *pieces) write(b []byte) {
	if p.err == nil {
		_, p.err = p.w.Write(b)
	}
}

// end writes the rest and returns the first error.
func (p *pieces) end(b []byte) error {
	p.write(b)
	return p.err
}

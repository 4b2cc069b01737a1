package zipws

import (
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"os"
	"unicode/utf8"

	"github.com/conduit-mcp/conduit-mcp/internal/codec"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// Read writes to w the bytes of the file called name from offset on, at most
// limit of them unless that is negative, and returns the size of the file.
func (m *Workspaces) Read(ctx context.Context, ref string, name Name, offset, limit int64, w io.Writer) (size int64, err error) {
	err = m.viewed(ctx, ref, name, func(v *view, n node) error {
		size = n.size
		if n.isDir() && string(n.name) == "." {
			return fault.New(InvalidParams, "the path is that of the workspace itself; name a file")
		}
		r, err := v.open(n)
		if err != nil {
			return err
		}
		defer r.Close()
		if f, ok := r.(*os.File); ok {
			_, err = f.Seek(offset, io.SeekStart)
		} else {
			err = discard(ctx, r, offset)
		}
		if err != nil {
			return err
		}
		var from io.Reader = codec.WithContext(ctx, r)
		if limit >= 0 {
			from = io.LimitReader(from, limit)
		}
		_, err = io.CopyBuffer(struct{ io.Writer }{w}, from, make([]byte, 64<<10))
		return err
	})
	return size, err
}

// discard skips n bytes of r, or all there are.
func discard(ctx context.Context, r io.Reader, n int64) error {
	_, err := io.CopyN(io.Discard, codec.WithContext(ctx, r), n)
	if err == io.EOF {
		err = nil
	}
	return err
}

// ContentOptions say what is read of a file.
type ContentOptions struct {
	Base64 bool  // even where it is text
	Offset int64 // first byte
	Limit  int64 // most bytes; 0 for all there are
}

// Content is what was read of a file.
type Content struct {
	Content  string `json:"content"`
	Size     int64  `json:"size_bytes"` // of the file
	Encoding string `json:"encoding"`   // "utf-8", or "base64" where that was asked for or it is no text
}

const (
	mostContent = 2 << 20 // bytes of one Content
	characters  = 3       // bytes of a character after its first one, at most
)

// Content reads a file, or a part of it. Of text that is every character whose
// first byte is in the part, so that consecutive parts join without loss.
func (m *Workspaces) Content(ctx context.Context, ref string, name Name, o ContentOptions) (c Content, err error) {
	limit := int64(mostContent)
	if o.Limit > 0 {
		limit = min(limit, o.Limit)
	}
	var b bytes.Buffer
	if c.Size, err = m.Read(ctx, ref, name, o.Offset, limit+characters, &b); err != nil {
		return c, err
	}
	if rest := c.Size - o.Offset; rest > mostContent && (o.Limit == 0 || o.Limit > mostContent) {
		return c, fault.New(LimitExceeded, "%s has %d bytes from there on, and at most %d are sent at a time; read it in parts with %s, or by the directory that %s tells", name, rest, mostContent, m.Words.Parts, m.Words.Path)
	}
	if text, ok := characterRange(b.Bytes(), int(limit), o.Offset > 0); ok && !o.Base64 {
		c.Content, c.Encoding = text, "utf-8"
		return c, nil
	}
	c.Content, c.Encoding = base64.StdEncoding.EncodeToString(b.Bytes()[:min(int64(b.Len()), limit)]), "base64"
	return c, nil
}

// characterRange returns the characters that begin in the first n bytes of b; ok
// is false where these are no text. Where inner is set, b may begin within one.
func characterRange(b []byte, n int, inner bool) (text string, ok bool) {
	from := 0
	for inner && from < min(characters, len(b)) && !utf8.RuneStart(b[from]) {
		from++
	}
	to := min(n, len(b))
	for to < len(b) && !utf8.RuneStart(b[to]) {
		to++
	}
	b = b[min(from, to):to]
	return string(b), isText(b)
}

package content

import (
	"bufio"
	"context"
	"hash"
	"io"

	"github.com/conduit-mcp/conduit-mcp/internal/mediatype"
	"github.com/conduit-mcp/conduit-mcp/internal/member"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// member reads what is called name in the archive at a place; asked is the
// source as the caller wrote it.
func (c reading) member(ctx context.Context, at place.Place, asked, name string) (result, error) {
	a, err := member.Open(ctx, at, asked)
	if err != nil {
		return result{}, err
	}
	defer a.Close()
	e, err := a.Find(name)
	if err != nil {
		return result{}, err
	}
	f, _, err := a.OpenMember(ctx, e.Name)
	if err != nil {
		return result{}, err
	}
	defer f.Close()
	if c.Format == "checksum" {
		return c.memberChecksum(ctx, f, asked, e.Name)
	}
	// The archive may declare any size, so it is what comes that counts.
	b, err := io.ReadAll(io.LimitReader(f, c.max+1))
	if err != nil {
		return result{}, err
	}
	if int64(len(b)) > c.max {
		return result{}, fault.New(fault.LimitExceeded, "File read exceeds CONDUIT_MAX_FILE_READ_BYTES (%d): what is in an archive is read as a whole, and %s is larger; unarchive it to read parts of it", c.max, asked)
	}
	return c.content(ctx, memory(b, asked), e.Name)
}

func (c reading) memberChecksum(ctx context.Context, f io.Reader, asked, name string) (result, error) {
	content := bufio.NewReaderSize(f, mediatype.HeadSize)
	head, err := content.Peek(mediatype.HeadSize)
	if err != nil && err != io.EOF {
		return result{}, err
	}
	mime := mediatype.Detect(head, name)
	r, err := c.sum(ctx, content, asked, []hash.Hash{c.algorithm.New()})
	if err != nil {
		return result{}, err
	}
	if c.Offset > *r.Size {
		return result{}, pastEnd(c.Offset, asked, *r.Size)
	}
	r.MIMEType = mime
	return r, nil
}

package content

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/internal/charset"
	"github.com/conduit-mcp/conduit-mcp/internal/digest"
	"github.com/conduit-mcp/conduit-mcp/internal/etag"
	"github.com/conduit-mcp/conduit-mcp/internal/fetch"
	"github.com/conduit-mcp/conduit-mcp/internal/mediatype"
	"github.com/conduit-mcp/conduit-mcp/internal/page"
	"github.com/conduit-mcp/conduit-mcp/internal/picture"
	"github.com/conduit-mcp/conduit-mcp/internal/source"
	"github.com/conduit-mcp/conduit-mcp/internal/textfile"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// inMemory is the length up to which content is held in memory; longer content
// streams.
const inMemory = 256 << 10

const placeholder = "[Binary content, request with format: 'base64' to view]"

// A reading is one call.
type reading struct {
	params
	algorithm digest.Algorithm
	max       int64 // of bytes of a file
	threshold int64 // from which images are compressed
	quality   int
	web       *fetch.Fetcher
	log       *slog.Logger
}

func (c reading) source(ctx context.Context, s registry.Source) (result, error) {
	if u, err := s.URL(); err != nil {
		return result{}, err
	} else if u != nil {
		return c.url(ctx, u, s.String())
	}
	f, err := source.Open(ctx, s)
	if err != nil {
		return result{}, err
	}
	in := &input{ReaderAt: f.Disk, size: f.Size, name: s.String(), max: c.max, file: f.Disk != nil}
	streamed := false
	defer func() {
		if !streamed {
			f.Close()
		}
	}()
	r, err := c.file(ctx, in, f)
	streamed = r.body() != nil && in.file && in.ReaderAt == f.Disk
	return r, err
}

// An input is the content of a file as it was when its size was taken, or
// content in memory.
type input struct {
	io.ReaderAt
	size int64  // -1 while it is not known
	name string // as the caller wrote it
	max  int64  // of bytes that may be read
	file bool   // it is what a file holds, which an etag can stand for
}

// memory is content that is at hand.
func memory(b []byte, name string) *input {
	return &input{ReaderAt: bytes.NewReader(b), size: int64(len(b)), name: name, max: math.MaxInt64}
}

func (in *input) failed(err error) error {
	if errors.As(err, new(*fs.PathError)) {
		return fault.Hide(fault.FSReadFailed, err, "reading %s failed", in.name)
	}
	return err
}

// all reads the input from its beginning.
func (in *input) all() io.Reader { return io.NewSectionReader(in, 0, in.size) }

func (c reading) file(ctx context.Context, in *input, f *source.File) (result, error) {
	if c.Format == "checksum" {
		return c.checksum(ctx, in, f)
	}
	if err := c.load(in, f); err != nil {
		return result{}, in.failed(err)
	}
	return c.content(ctx, in, f.Name)
}

// content returns what in holds, in the form that is asked for or fits; name
// tells its type where the content does not.
func (c reading) content(ctx context.Context, in *input, name string) (r result, err error) {
	head := make([]byte, min(mediatype.HeadSize, in.size))
	n, err := in.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return result{}, in.failed(err)
	}
	r.MIMEType = mediatype.Detect(head[:n], name)
	text := mediatype.IsText(r.MIMEType)
	switch r.Format = c.Format; {
	case c.Format == "media":
		return c.media(ctx, in, r)
	case c.Format == "markdown":
		if page.IsHTML(r.MIMEType) {
			return c.fileMarkdown(ctx, in, r)
		}
		r.skipMarkdown(r.MIMEType)
		if !text {
			r.Format = "text"
			r.hold(placeholder)
			return c.tag(ctx, in, r, false)
		}
	case c.Format == "text" && !text:
		r.hold(placeholder)
		return c.tag(ctx, in, r, false)
	case c.Format == "" && !text && c.textual():
		return result{}, notText(in.name, r.MIMEType)
	case c.Format == "base64", !text:
		r.Format = "base64"
		return c.base64(ctx, in, r)
	}
	r.Format = "text"
	return c.text(ctx, in, r)
}

// notText refuses parameters of text for content that is answered as base64.
func notText(name, mime string) error {
	return fault.New(fault.InvalidParameter, "%s is %s, which is answered as base64; start_line, end_line, line_numbers and max_chars apply to text", name, mime)
}

// whole reads all of in into memory.
func (c reading) whole(in *input) ([]byte, error) {
	if err := c.fits(in, in.size); err != nil {
		return nil, err
	}
	b := make([]byte, in.size)
	if n, err := in.ReadAt(b, 0); int64(n) < in.size {
		return nil, fault.Hide(fault.FSReadFailed, err, "reading %s failed", in.name)
	}
	in.ReaderAt = bytes.NewReader(b)
	return b, nil
}

func (c reading) fileMarkdown(ctx context.Context, in *input, r result) (result, error) {
	b, err := c.whole(in)
	if err != nil {
		return result{}, err
	}
	if r, err = c.tag(ctx, in, r, true); err != nil {
		return result{}, err
	}
	html, declared, _ := charset.Decode(b, r.MIMEType)
	r.Charset = declared
	return c.markdown(ctx, in.name, html, nil, r)
}

// load takes into memory what is small, and what has no size before it is read,
// such as the files of /proc and what is in archives.
func (c reading) load(in *input, f io.Reader) error {
	var b []byte
	switch {
	case in.size > inMemory:
		return nil
	case in.size <= 0:
		var err error
		if b, err = io.ReadAll(io.LimitReader(f, in.max+1)); err != nil {
			return err
		}
		switch {
		case int64(len(b)) <= in.max:
		case in.file:
			return fault.New(fault.LimitExceeded, "File read exceeds CONDUIT_MAX_FILE_READ_BYTES (%d): the system tells no size of %s, so it is read as a whole, and it is larger", in.max, in.name)
		default:
			return fault.New(fault.LimitExceeded, "File read exceeds CONDUIT_MAX_FILE_READ_BYTES (%d): what is in an archive is read as a whole, and %s is larger; unarchive it to read parts of it", in.max, in.name)
		}
	default:
		b = make([]byte, in.size)
		n, err := io.ReadFull(f, b)
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return err
		}
		b = b[:n]
	}
	in.ReaderAt, in.size = bytes.NewReader(b), int64(len(b))
	return nil
}

// fits refuses to read more bytes than the server allows.
func (c reading) fits(in *input, n int64) error {
	if n > in.max {
		return fault.New(fault.LimitExceeded, "File read exceeds CONDUIT_MAX_FILE_READ_BYTES (%d): %d bytes of %s are asked for; read it in parts with offset and length, or start_line and end_line", in.max, n, in.name)
	}
	return nil
}

func (c reading) text(ctx context.Context, in *input, r result) (result, error) {
	t, err := textfile.New(in.ReaderAt, in.size, in.name)
	if err != nil {
		return result{}, err
	}
	part, err := c.part(ctx, t)
	if err != nil {
		return result{}, err
	}
	if c.MaxChars > 0 {
		whole := part
		if part, err = t.Cut(ctx, whole, c.MaxChars); err != nil {
			return result{}, err
		}
		if part != whole {
			r.Truncated, r.NextOffset, r.TotalBytes = true, part.To, in.size
		}
	}
	if err := c.fits(in, part.Len()); err != nil {
		return result{}, err
	}
	number := int64(0)
	if c.LineNumbers {
		if number, err = t.LineAt(ctx, part.From); err != nil {
			return result{}, err
		}
	}
	if r.Charset == "" {
		r.Charset = t.Charset()
	}
	if part.Len() <= inMemory {
		var text string
		if text, r.Lossy, err = t.String(ctx, part, number); err != nil {
			return result{}, err
		}
		r.hold(text)
	} else {
		b, err := t.Settle(ctx, part, number)
		if err != nil {
			return result{}, err
		}
		r.Lossy = b.Lossy()
		r.stream(b)
		if sum := b.SHA256(); sum != nil && in.file {
			r.ETag = registry.TextOf(etag.Of(sum))
		}
	}
	return c.tag(ctx, in, r, part.Len() == in.size)
}

// part returns the part of t that is asked for.
func (c reading) part(ctx context.Context, t *textfile.Text) (textfile.Part, error) {
	if c.StartLine != 0 || c.EndLine != 0 {
		return t.Lines(ctx, c.StartLine, c.EndLine)
	}
	return t.Bytes(c.Offset, c.Length)
}

func (c reading) base64(ctx context.Context, in *input, r result) (result, error) {
	from := min(c.Offset, in.size)
	n := in.size - from
	if c.Length >= 0 {
		n = min(n, c.Length)
	}
	if err := c.fits(in, n); err != nil {
		return result{}, err
	}
	if strings.HasPrefix(r.MIMEType, "image/") && !c.ranged() {
		if r.Compressed = new(false); n > c.threshold && picture.Compressible(r.MIMEType) {
			small, err := c.compress(ctx, in, &r)
			if err != nil {
				return result{}, err
			}
			if small != nil {
				r.OriginalSize = in.size
				r.encode(small, in.name)
				return c.tag(ctx, in, r, true)
			}
		}
	}
	if n <= inMemory {
		b := make([]byte, n)
		if k, err := in.ReadAt(b, from); int64(k) < n {
			return result{}, fault.Hide(fault.FSReadFailed, err, "reading %s failed", in.name)
		}
		r.hold(base64.StdEncoding.EncodeToString(b))
	} else {
		b := textfile.NewBase64(in.ReaderAt, from, from+n, in.name)
		r.stream(b)
		if in.file && n == in.size {
			b.Digest(true)
			r.ETag = registry.TextFrom(lateETag{b})
		}
	}
	return c.tag(ctx, in, r, n == in.size)
}

// encode holds or streams b in base64.
func (r *result) encode(b []byte, name string) {
	if len(b) <= inMemory {
		r.hold(base64.StdEncoding.EncodeToString(b))
	} else {
		r.stream(textfile.NewBase64(bytes.NewReader(b), 0, int64(len(b)), name))
	}
}

// A lateETag is the etag of a file whose whole content is written before it. Of
// a content that failed under way there is none.
type lateETag struct{ content *textfile.Base64 }

const etagSize = 22

func (lateETag) Size() int64           { return etagSize }
func (lateETag) EscapedSize(int) int64 { return etagSize }

func (t lateETag) WriteTo(w io.Writer) (int64, error) {
	sum := t.content.SHA256()
	if sum == nil {
		return 0, nil
	}
	n, err := io.WriteString(w, etag.Of(sum))
	return int64(n), err
}

// Close spares the digest where the etag is not shown.
func (t lateETag) Close() error {
	t.content.Digest(false)
	return nil
}

// tag adds the etag where the whole file is read, or the call asks for it.
func (c reading) tag(ctx context.Context, in *input, r result, whole bool) (result, error) {
	if !in.file || r.ETag != nil || !whole && !c.ETag {
		return r, nil
	}
	h := sha256.New()
	if _, err := digest.Feed(ctx, in.all(), h); err != nil {
		return result{}, in.failed(err)
	}
	r.ETag = registry.TextOf(etag.Of(h.Sum(nil)))
	return r, nil
}

func (c reading) checksum(ctx context.Context, in *input, f *source.File) (result, error) {
	content := bufio.NewReaderSize(f, mediatype.HeadSize)
	head, err := content.Peek(mediatype.HeadSize)
	if err != nil && err != io.EOF {
		return result{}, unsummed(err, in.name, int64(len(head)))
	}
	mime := mediatype.Detect(head, f.Name)
	if in.size >= 0 && c.Offset > in.size {
		return result{}, pastEnd(c.Offset, in.name, in.size)
	}
	hashes := []hash.Hash{c.algorithm.New()}
	if in.file && c.algorithm != digest.SHA256 {
		hashes = append(hashes, sha256.New()) // for the etag, since the whole file is read anyway
	}
	n, err := digest.Feed(ctx, content, hashes...)
	if err != nil {
		return result{}, unsummed(err, in.name, n)
	}
	if in.size < 0 && c.Offset > n {
		return result{}, pastEnd(c.Offset, in.name, n)
	}
	r := result{Format: "checksum", Size: &n, Checksum: hex.EncodeToString(hashes[0].Sum(nil)), Algorithm: c.algorithm, MIMEType: mime}
	if in.file {
		r.ETag = registry.TextOf(etag.Of(hashes[len(hashes)-1].Sum(nil)))
	}
	return r, nil
}

// unsummed is why a file could not be read to its end, after n bytes.
func unsummed(err error, name string, n int64) error {
	if errors.As(err, new(*fs.PathError)) {
		return fault.Hide(fault.ChecksumFailed, err, "reading %s failed at byte %d", name, n)
	}
	return err
}

package pack

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"io/fs"
	"time"

	"github.com/bodgit/sevenzip"
	"github.com/mholt/archives"
	"github.com/nwaples/rardecode/v2"

	"github.com/conduit-mcp/conduit-mcp/internal/entryname"
	"github.com/conduit-mcp/conduit-mcp/internal/panics"
	"github.com/conduit-mcp/conduit-mcp/internal/parallel"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// A member is an entry as an archive has it. Nothing of it can be trusted.
type member struct {
	name     string      // as readable made it; directories may end in a slash
	mode     fs.FileMode // type included; its permissions are those to be given
	modified time.Time   // zero where it is not known
	size     int64       // as declared, which may be wrong
	link     string      // target of a symbolic link, where headers have it
	hard     string      // name of the member that this is another name of
	where    int64       // of the content in an uncompressed tar; -1 where it is not in one piece

	// open opens the content. Of the formats that are read as a stream it is
	// valid until the next member.
	open func() (io.ReadCloser, error)
}

// errStop ends a walk over members early.
var errStop = errors.New("stop")

// eachMember calls yield for the members of an archive in their order, until it
// returns an error. Content that nobody opened is skipped.
func eachMember(ctx context.Context, r io.ReaderAt, size int64, f Format, yield func(*member) error) error {
	err := panics.Try(func() error {
		switch f {
		case Zip:
			z, err := openZip(r, size, false)
			if err != nil {
				return err
			}
			for _, m := range z {
				if err := yield(&m.member); err != nil {
					return err
				}
			}
			return nil
		case SevenZip:
			return archives.SevenZip{}.Extract(ctx, io.NewSectionReader(r, 0, size), handler(yield))
		case Rar:
			return archives.Rar{}.Extract(ctx, io.NewSectionReader(r, 0, size), handler(yield))
		}
		return tarMembers(ctx, r, size, f, yield)
	})
	if errors.Is(err, errStop) {
		return nil
	}
	return damaged(err)
}

// damaged gives an error of reading an archive its code and wording. Those that
// have a code, and those of ctx, are returned as they are.
func damaged(err error) error {
	var coded *fault.Error
	var locked *sevenzip.ReadError
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &coded):
		return coded
	case errors.As(err, &locked) && locked.Encrypted, errors.Is(err, rardecode.ErrArchiveEncrypted), errors.Is(err, rardecode.ErrArchivedFileEncrypted):
		return encrypted("the archive")
	case errors.Is(err, rardecode.ErrMultiVolume), errors.Is(err, rardecode.ErrBadVolumeNumber):
		return fault.Hide(fault.Unarchive, err, "the archive is one of several volumes; join them into one archive first")
	}
	return fault.Hide(fault.Unarchive, err, "the archive is damaged or truncated, or not of the format it was taken for")
}

func encrypted(what string) error {
	return fault.New(fault.Unarchive, "%s is encrypted, and encrypted archives are not read; decrypt it first", what)
}

// content is a member's content whose errors have the wording of damaged.
type content struct{ io.ReadCloser }

func (c content) Read(b []byte) (int, error) {
	n, err := c.ReadCloser.Read(b)
	if err != nil && err != io.EOF {
		err = damaged(err)
	}
	return n, err
}

// handler adapts yield to the readers of package archives.
func handler(yield func(*member) error) archives.FileHandler {
	return func(_ context.Context, i archives.FileInfo) error {
		m := member{name: entryname.Decode(i.NameInArchive, false), mode: i.Mode(), modified: i.ModTime(), size: i.Size(), where: -1}
		if h, ok := i.Header.(*rardecode.FileHeader); ok {
			if h.Encrypted || h.HeaderEncrypted {
				return encrypted(entryname.Shown(m.name))
			}
			if h.UnKnownSize {
				m.size = 0
			}
		}
		m.open = func() (io.ReadCloser, error) {
			f, err := i.Open()
			if err != nil {
				return nil, damaged(err)
			}
			return content{f}, nil
		}
		return yield(&m)
	}
}

// tarMembers is eachMember for a tar, in a compressed stream or not.
func tarMembers(ctx context.Context, r io.ReaderAt, size int64, f Format, yield func(*member) error) error {
	raw := io.NewSectionReader(r, 0, size)
	if f == Tar {
		in := &tailed{r: raw, seek: raw}
		if err := eachHeader(ctx, in, raw, yield); err != nil {
			return err
		}
		return in.finish()
	}
	s, err := decompress(raw, f)
	if err != nil {
		return err
	}
	defer s.Close()
	ahead := readAhead(s)
	defer ahead.Close()
	in := &tailed{r: ahead}
	if err := eachHeader(ctx, in, nil, yield); err != nil {
		return err
	}
	return in.finish()
}

// eachHeader reads the headers of a tar. Where at is given it is what in reads.
func eachHeader(ctx context.Context, in io.Reader, at io.Seeker, yield func(*member) error) error {
	t := tar.NewReader(in)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		h, err := t.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		m := member{name: entryname.Decode(h.Name, false), mode: h.FileInfo().Mode(), modified: h.ModTime, size: h.Size, where: -1}
		switch h.Typeflag {
		case tar.TypeSymlink:
			m.link = entryname.Decode(h.Linkname, false)
		case tar.TypeLink:
			m.hard = entryname.Decode(h.Linkname, false)
		}
		if at != nil && h.Typeflag != tar.TypeGNUSparse && h.PAXRecords["GNU.sparse.major"] == "" && h.PAXRecords["GNU.sparse.map"] == "" {
			if m.where, err = at.Seek(0, io.SeekCurrent); err != nil {
				return err
			}
		}
		m.open = func() (io.ReadCloser, error) { return content{io.NopCloser(t)}, nil }
		if err := yield(&m); err != nil {
			return err
		}
	}
}

// A tailed reader tells whether a tar was complete: its last block is zeros,
// and nothing but zeros comes after.
type tailed struct {
	r    io.Reader
	seek io.Seeker // of r, where it can; package tar skips content by it
	last []byte    // the last bytes read, at most a block
}

func (t *tailed) Read(b []byte) (int, error) {
	n, err := t.r.Read(b)
	switch {
	case n >= tarBlock:
		t.last = append(t.last[:0], b[n-tarBlock:n]...)
	case n > 0:
		t.last = append(t.last, b[:n]...)
		t.last = append(t.last[:0], t.last[max(0, len(t.last)-tarBlock):]...)
	}
	return n, err
}

// Seek makes a tailed reader of a file seekable.
func (t *tailed) Seek(offset int64, whence int) (int64, error) {
	if t.seek == nil {
		return 0, errors.ErrUnsupported
	}
	t.last = t.last[:0]
	return t.seek.Seek(offset, whence)
}

// maxPadding is how much may follow the end of a tar.
const maxPadding = 16 << 20

// finish reads what follows the end of the tar, so that the checksum of what it
// is wrapped in is verified too.
func (t *tailed) finish() error {
	if len(t.last) < tarBlock || !zero(t.last) {
		return io.ErrUnexpectedEOF
	}
	buf := make([]byte, 32<<10)
	for n := 0; n < maxPadding; {
		read, err := t.r.Read(buf)
		n += read
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return errors.New("too much follows the end of the tar")
}

// readahead reads a stream in a goroutine of its own, some blocks in advance.
type readahead struct {
	full  chan []byte
	empty chan []byte
	quit  chan struct{}
	group *parallel.Group
	now   []byte // what is left of the block that is being read
	whole []byte // that block
	err   error  // why full is closed; nil for its end
}

const aheadBlock = 256 << 10

func readAhead(r io.Reader) *readahead {
	const blocks = 4
	a := &readahead{full: make(chan []byte, blocks), empty: make(chan []byte, blocks), quit: make(chan struct{}), group: parallel.New()}
	for range blocks {
		a.empty <- make([]byte, aheadBlock)
	}
	a.group.Go(func() error {
		defer close(a.full)
		a.err = panics.Try(func() error { return a.fill(r) }) // full is closed after it
		return nil
	})
	return a
}

func (a *readahead) fill(r io.Reader) error {
	for {
		var b []byte
		select {
		case b = <-a.empty:
		case <-a.quit:
			return nil
		}
		n, err := 0, error(nil)
		for n < len(b) && err == nil {
			var read int
			read, err = r.Read(b[n:])
			n += read
		}
		if n > 0 {
			a.full <- b[:n] // it has room for all
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (a *readahead) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	if len(a.now) == 0 {
		if a.whole != nil {
			a.empty <- a.whole[:cap(a.whole)]
			a.whole = nil
		}
		block, ok := <-a.full
		if !ok {
			if a.err != nil {
				return 0, a.err
			}
			return 0, io.EOF
		}
		a.now, a.whole = block, block
	}
	n := copy(b, a.now)
	a.now = a.now[n:]
	return n, nil
}

// Close ends the reading ahead; r may be closed then.
func (a *readahead) Close() {
	close(a.quit)
	a.group.Wait()
}

package pack

import (
	"context"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/entryname"
	"github.com/conduit-mcp/conduit-mcp/internal/parallel"
	"github.com/conduit-mcp/conduit-mcp/internal/walk"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// An Entry is a file, directory or link in an archive.
type Entry struct {
	Name     string      // relative, "/"-separated, without a slash at the end
	Mode     fs.FileMode // type and permissions, without setuid, setgid and sticky
	Size     int64       // as the archive declares it; 0 of directories
	Modified time.Time   // zero where the archive does not tell
	Link     string      // target of a symbolic link, where the archive tells it without its content being read
}

// IsDir reports whether the entry is a directory.
func (e Entry) IsDir() bool { return e.Mode.IsDir() }

// IsLink reports whether the entry is a symbolic link.
func (e Entry) IsLink() bool { return e.Mode&fs.ModeSymlink != 0 }

// An Archive is the list of what is in an archive, by which its entries can be
// read without unpacking it. It may be used by several goroutines at a time, as
// long as what it was opened on stays open.
type Archive struct {
	r      io.ReaderAt
	size   int64
	format Format
	list   []Entry // sorted
	by     map[string]located
	unsafe int
}

// A located entry knows where its content is.
type located struct {
	at    int        // in Archive.list
	zip   *zipMember // of a zip
	where int64      // in an uncompressed tar, or -1
	nth   int        // which member of the archive it is, from 1; 0 for implied directories
}

// Open reads the list of entries of an archive. Its format is told by its
// content; name is for messages, and a hint. Directories that entries are in
// are listed though the archive has no entry for them. Entries whose names lead
// outside, pass through a file or link, or are not possible here are left out,
// and so are devices, FIFOs and sockets. Of several entries of one name the last
// one counts. At most 100,000 entries are read: ERR_RESOURCE_LIMIT_EXCEEDED.
func Open(ctx context.Context, r io.ReaderAt, size int64, name string) (*Archive, error) {
	f, err := Detect(r, size, name)
	if err != nil {
		return nil, err
	}
	a := &Archive{r: r, size: size, format: f, by: map[string]located{}}
	p := newPlan(choice{})
	if f == Zip {
		list, err := openZip(r, size, false)
		if err != nil {
			return nil, damaged(err)
		}
		for _, m := range list {
			if err := a.add(p, &m.member, m); err != nil {
				return nil, err
			}
		}
	} else if err := eachMember(ctx, r, size, f, func(m *member) error { return a.add(p, m, nil) }); err != nil {
		return nil, err
	}
	a.finish(p)
	return a, nil
}

// add takes in the next member.
func (a *Archive) add(p *plan, m *member, z *zipMember) error {
	if p.met >= maxEntries {
		return tooMany()
	}
	name, err := p.name(m)
	if err != nil {
		a.unsafe++
		return nil
	}
	if name == "" {
		return nil
	}
	i := &item{mode: m.mode, modified: m.modified, size: m.size, link: m.link}
	l := located{zip: z, where: m.where, nth: p.met}
	switch {
	case m.hard != "":
		to := entryname.Clean(m.hard)
		from, ok := a.by[to]
		if !ok || p.items[to].isDir() {
			a.unsafe++
			return nil
		}
		*i, l = *p.items[to], from
	case i.isDir():
		i.size = 0
	case !i.isLink() && !m.mode.IsRegular():
		return nil
	}
	if _, err := p.claim(name, i); err != nil {
		if code, _ := fault.Of(err); code == fault.LimitExceeded {
			return err
		}
		a.unsafe++
		return nil
	}
	a.by[name] = l
	return nil
}

// finish sorts the entries of p into the list.
func (a *Archive) finish(p *plan) {
	names := p.names()
	a.list = make([]Entry, len(names))
	for at, name := range names {
		i := p.items[name]
		a.list[at] = Entry{Name: name, Mode: i.mode.Type() | i.mode.Perm(), Size: i.size, Modified: i.modified, Link: i.link}
		l, ok := a.by[name]
		if !ok {
			l.where = -1
		}
		l.at = at
		a.by[name] = l
	}
}

// Unsafe is how many entries were left out for their names.
func (a *Archive) Unsafe() int { return a.unsafe }

// Entries lists all entries, sorted like a walk: a directory before what is in
// it. The list must not be changed.
func (a *Archive) Entries() []Entry { return a.list }

// Lookup finds the entry called name; "" and "." are the directory that all
// entries are in.
func (a *Archive) Lookup(name string) (Entry, bool) {
	if name = path.Clean(strings.Trim(name, "/")); name == "." {
		return Entry{Name: ".", Mode: fs.ModeDir | 0o755}, true
	}
	l, ok := a.by[name]
	if !ok {
		return Entry{}, false
	}
	return a.list[l.at], true
}

// Children lists what is directly in the directory called name, sorted.
func (a *Archive) Children(name string) []Entry {
	if name = path.Clean(strings.Trim(name, "/")); name == "." {
		name = ""
	}
	from, prefix := 0, ""
	if name != "" {
		l, ok := a.by[name]
		if !ok {
			return nil
		}
		from, prefix = l.at+1, name+"/"
	}
	var list []Entry
	for at := from; at < len(a.list); {
		rest, ok := strings.CutPrefix(a.list[at].Name, prefix)
		if !ok {
			break
		}
		list = append(list, a.list[at])
		// Past all that is in this one.
		last := prefix + rest
		n, _ := slices.BinarySearchFunc(a.list[at+1:], last, func(e Entry, last string) int {
			if strings.HasPrefix(e.Name, last+"/") {
				return -1
			}
			return walk.ComparePaths(e.Name, last)
		})
		at += 1 + n
	}
	return list
}

// OpenMember opens the file called name for reading; of a link, the text of
// which the archive has as content, that. A directory is ERR_FS_IS_DIRECTORY,
// what is not there ERR_FS_NOT_FOUND, an encrypted entry ERR_UNARCHIVE_FAILED.
// Of formats that are streams, all before the entry is read.
func (a *Archive) OpenMember(ctx context.Context, name string) (io.ReadCloser, Entry, error) {
	e, ok := a.Lookup(name)
	switch {
	case !ok:
		return nil, e, fault.New(fault.FSNotFound, "the archive has no entry %s", entryname.Shown(name))
	case e.IsDir():
		return nil, e, fault.New(fault.FSIsDirectory, "%s is a directory in the archive; name a file", entryname.Shown(name))
	case e.Link != "":
		return io.NopCloser(strings.NewReader(e.Link)), e, nil
	}
	l := a.by[e.Name]
	if l.zip != nil {
		c, err := l.zip.open()
		return c, e, err
	}
	if l.where >= 0 {
		return io.NopCloser(io.NewSectionReader(a.r, l.where, e.Size)), e, nil
	}
	return a.scan(ctx, l.nth), e, nil
}

// scan reads the archive up to its nth member and then that, in a goroutine
// that ends when what is returned is closed.
func (a *Archive) scan(ctx context.Context, nth int) io.ReadCloser {
	ctx, stop := context.WithCancel(ctx)
	r, w := io.Pipe()
	s := &scanning{PipeReader: r, stop: stop, group: parallel.New()}
	s.group.Go(func() error {
		n := 0
		err := eachMember(ctx, a.r, a.size, a.format, func(m *member) error {
			if n++; n < nth {
				return nil
			}
			c, err := m.open()
			if err != nil {
				return err
			}
			defer c.Close()
			if _, err := io.CopyBuffer(onlyWriter{w}, c, make([]byte, 64<<10)); err != nil {
				return err
			}
			return errStop
		})
		return w.CloseWithError(err) // nil is io.EOF
	})
	return s
}

// onlyWriter hides what else a pipe can do, so that the buffer is used.
type onlyWriter struct{ io.Writer }

// scanning is a member that is being read.
type scanning struct {
	*io.PipeReader
	stop  context.CancelFunc
	group *parallel.Group
}

func (s *scanning) Close() error {
	s.stop()
	err := s.PipeReader.Close()
	s.group.Wait()
	return err
}

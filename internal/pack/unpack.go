package pack

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"sync"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/codec"
	"github.com/conduit-mcp/conduit-mcp/internal/entryname"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// add takes in the next member of a stream.
func (x *extractor) add(ctx context.Context, m *member) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	name, i, err := x.choose(m)
	switch {
	case err != nil || name == "":
		return err
	case m.hard != "":
		return x.hardLink(name, m, i)
	case i.isDir():
		if _, err := x.claim(name, i); err != nil {
			return err
		}
		return x.mkdir(name)
	case i.isLink() && i.link == "":
		x.note.links++
		return nil
	}
	old, err := x.claim(name, i)
	if err != nil {
		return err
	}
	if err := x.replace(name, old); err != nil || i.isLink() {
		return err
	}
	return x.file(ctx, name, m, i)
}

// choose returns what is to be written for m, and under which name: "" for
// nothing.
func (x *extractor) choose(m *member) (name string, i *item, err error) {
	if name, err = x.name(m); err != nil || name == "" {
		return "", nil, err
	}
	i = &item{mode: m.mode, modified: m.modified, size: m.size}
	switch {
	case m.hard != "":
	case i.isDir():
		i.explicit = true
	case i.isLink():
		i.link, err = linkText(m)
	case !m.mode.IsRegular():
		x.note.special++
		return "", nil, nil
	}
	return name, i, err
}

// linkText is where the link m leads, "" where the archive does not tell. Some
// formats have it as the content.
func linkText(m *member) (string, error) {
	if m.link != "" {
		return m.link, nil
	}
	c, err := m.open()
	if err != nil {
		return "", err
	}
	defer c.Close()
	text, err := io.ReadAll(io.LimitReader(c, entryname.MaxLen+1))
	if err != nil {
		return "", err
	}
	return string(text), nil
}

// replace makes way for a later entry of the name of old.
func (x *extractor) replace(name string, old *item) error {
	if old == nil {
		return nil
	}
	switch x.o.Format {
	case SevenZip, Rar, Zip:
		return twice(name)
	}
	if x.line == nil || old.isLink() { // nothing is there yet
		return nil
	}
	if err := x.drain(); err != nil {
		return err
	}
	return x.stage.in(name, func(dir *os.Root, base string) error { return dir.Remove(base) })
}

func twice(name string) error {
	return fault.New(fault.Unarchive, "the archive has two entries called %s, and which one counts is not said; nothing was unpacked", entryname.Shown(name))
}

// drain waits until all that was put on the line is written.
func (x *extractor) drain() error {
	written := make(chan struct{})
	if err := x.line.put(nil, func() error { close(written); return nil }); err != nil {
		return err
	}
	select {
	case <-written:
		return nil
	case <-x.line.ctx.Done():
		return x.line.ctx.Err()
	}
}

// mkdir makes the directory called name in the stage, with those it is in.
func (x *extractor) mkdir(name string) error {
	if x.line == nil {
		return nil
	}
	i := x.items[name]
	if i.made {
		return nil
	}
	i.made = true
	if dir := path.Dir(name); dir != "." {
		if err := x.mkdir(dir); err != nil {
			return err
		}
	}
	return x.stage.in(name, func(dir *os.Root, base string) error { return sameName(name, dir.Mkdir(base, 0o700)) })
}

// hardLink gives a file that was unpacked before one more name.
func (x *extractor) hardLink(name string, m *member, i *item) error {
	to := entryname.Clean(m.hard)
	if why := entryname.Bad(to); why != "" {
		return fault.New(fault.Unarchive, "the archive has a hard link, %s, to a name that %s: %q; nothing was unpacked", entryname.Shown(name), why, entryname.Shown(m.hard))
	}
	to, _ = strip(to, x.strip)
	from := x.items[to]
	if from == nil || from.isDir() {
		return fault.New(fault.Unarchive, "the archive has %s as a hard link to %s, which is no file that was unpacked before; nothing was unpacked", entryname.Shown(name), entryname.Shown(m.hard))
	}
	if to == name {
		return nil
	}
	*i = *from
	old, err := x.claim(name, i)
	if err != nil {
		return err
	}
	if err := x.replace(name, old); err != nil || x.line == nil || i.isLink() {
		return err
	}
	if err := x.parent(name); err != nil {
		return err
	}
	if err := x.drain(); err != nil {
		return err
	}
	if err := x.stage.root.Link(to, name); err == nil || errors.Is(err, fs.ErrExist) {
		return sameName(name, err)
	}
	f, err := x.stage.root.Open(to) // this file system has no hard links
	if err != nil {
		return err
	}
	defer f.Close()
	return x.stage.in(name, func(dir *os.Root, base string) error { return x.write(dir, base, i, nil, f) })
}

// parent makes the directories that the item called name is in.
func (x *extractor) parent(name string) error {
	if dir := path.Dir(name); dir != "." {
		return x.mkdir(dir)
	}
	return nil
}

// file writes the content of m. What is small is read here and written on the
// line.
func (x *extractor) file(ctx context.Context, name string, m *member, i *item) error {
	if x.line == nil {
		return nil
	}
	if err := x.parent(name); err != nil {
		return err
	}
	c, err := m.open()
	if err != nil {
		return err
	}
	defer c.Close()
	if m.size > blockSize {
		return x.stage.in(name, func(dir *os.Root, base string) error { return x.write(dir, base, i, nil, codec.WithContext(ctx, c)) })
	}
	s := getSlab()
	s.raw.Grow(int(max(m.size, 0)) + 1024)
	if _, err := s.raw.ReadFrom(io.LimitReader(c, blockSize+1)); err != nil {
		return err
	}
	if s.raw.Len() > blockSize { // it is larger than it said
		return x.stage.in(name, func(dir *os.Root, base string) error {
			return x.write(dir, base, i, s.raw.Bytes(), codec.WithContext(ctx, c))
		})
	}
	return x.line.put(func() error {
		defer s.put()
		return x.stage.in(name, func(dir *os.Root, base string) error { return x.write(dir, base, i, s.raw.Bytes(), nil) })
	}, nil)
}

var copyBuffers = sync.Pool{New: func() any { return new([256 << 10]byte) }}

// write writes a file of the stage, and counts it. It has data and then, unless
// that is nil, what rest has.
func (x *extractor) write(dir *os.Root, base string, i *item, data []byte, rest io.Reader) error {
	f, err := dir.OpenFile(base, os.O_WRONLY|os.O_CREATE|os.O_EXCL|place.Nonblock, i.mode.Perm())
	if err != nil {
		return sameName(base, err)
	}
	defer f.Close()
	if err := x.put(f, data); err != nil {
		return err
	}
	if rest != nil {
		if err := x.copy(f, rest); err != nil {
			return err
		}
	}
	if !i.modified.IsZero() {
		if err := atomicfile.SetModified(f, dir, base, i.modified); err != nil {
			return err
		}
	}
	if err := f.Close(); err != nil {
		return err
	}
	if done := x.done.Add(1); x.o.Progress != nil {
		x.o.Progress(done, x.total)
	}
	return nil
}

// put writes b to f, if that is not too much.
func (x *extractor) put(f *os.File, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if err := x.budget.add(int64(len(b))); err != nil {
		return err
	}
	_, err := f.Write(b)
	return err
}

func (x *extractor) copy(f *os.File, from io.Reader) error {
	buf := copyBuffers.Get().(*[256 << 10]byte)
	defer copyBuffers.Put(buf)
	for {
		n := 0
		var err error
		for n < len(buf) && err == nil {
			var read int
			read, err = from.Read(buf[n:])
			n += read
		}
		if perr := x.put(f, buf[:n]); perr != nil {
			return perr
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

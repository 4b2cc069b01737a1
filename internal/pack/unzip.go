package pack

import (
	"context"
	"os"
	"path"

	"github.com/conduit-mcp/conduit-mcp/internal/codec"
	"github.com/conduit-mcp/conduit-mcp/internal/entryname"
	"github.com/conduit-mcp/conduit-mcp/internal/zipfile"
)

// filesAtATime is how many files of a zip one worker unpacks in a row.
const filesAtATime = 32

// readZip plans all of a zip, and then unpacks several files at a time.
func (x *extractor) readZip(ctx context.Context) error {
	list, err := openZip(x.archive, x.size, true)
	if err != nil {
		return damaged(err)
	}
	type file struct {
		name string
		*zipMember
	}
	var files []file
	for _, m := range list {
		if err := ctx.Err(); err != nil {
			return err
		}
		name, i, err := x.choose(&m.member)
		if err != nil {
			return err
		}
		if name == "" {
			continue
		}
		if m.Flags&zipfile.FlagEncrypted != 0 {
			return encrypted(entryname.Shown(m.name))
		}
		if m.mode.IsRegular() {
			files = append(files, file{name, m})
		}
		old, err := x.claim(name, i)
		if err != nil {
			return err
		}
		if old != nil && !old.isDir() {
			return twice(name)
		}
	}
	if x.line == nil {
		return nil
	}
	x.total = int64(len(files))
	for _, name := range x.those((*item).isDir) { // those of one directory in a row
		if err := x.mkdir(name); err != nil {
			return err
		}
	}
	for len(files) > 0 {
		// A task has files of one directory, and is not too large.
		n, size := 1, files[0].size
		for n < len(files) && n < filesAtATime && size < blockSize && path.Dir(files[n].name) == path.Dir(files[0].name) {
			size += files[n].size
			n++
		}
		some := files[:n]
		files = files[n:]
		err := x.line.put(func() error {
			s := getSlab()
			defer s.put()
			return x.stage.in(some[0].name, func(dir *os.Root, _ string) error {
				for _, m := range some {
					if err := x.zipFile(ctx, dir, m.name, m.zipMember, s); err != nil {
						return err
					}
				}
				return nil
			})
		}, nil)
		if err != nil {
			return err
		}
	}
	return nil
}

// zipFile unpacks the member m to the directory that the item called name is
// in.
func (x *extractor) zipFile(ctx context.Context, dir *os.Root, name string, m *zipMember, s *slab) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	i, base := x.items[name], path.Base(name)
	if data, ok, err := m.small(x.archive, s); err != nil {
		return err
	} else if ok {
		return x.write(dir, base, i, data, nil)
	}
	c, err := m.open()
	if err != nil {
		return err
	}
	defer c.Close()
	return x.write(dir, base, i, nil, codec.WithContext(ctx, c))
}

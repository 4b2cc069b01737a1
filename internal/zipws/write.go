package zipws

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/pack"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// readOnly refuses to change what cannot be synced.
func (s *session) readOnly() error {
	if s.Format == pack.Zip {
		return nil
	}
	return fault.New(ReadOnly, "%s is %s, which is not written, so the session is read-only; unpack it with %s to change it", s.Source, s.Format, s.m.Words.Unarchive)
}

// Write writes the file called name, whole or not at all. Unless mkdir is set,
// the directory it is in must exist.
func (m *Workspaces) Write(ctx context.Context, ref string, name Name, content []byte, mkdir bool) error {
	return m.viewed(ctx, ref, "", func(v *view, _ node) error {
		at, err := name.clean()
		if err != nil {
			return err
		}
		if err := v.readOnly(); err != nil {
			return err
		}
		if at == "." {
			return fault.New(InvalidParams, "the path is that of the workspace itself; name a file")
		}
		if n, err := v.find(at); err == nil && n.isDir() {
			return fault.New(InvalidParams, "%s is a directory; name a file", at)
		}
		for dir := path.Dir(at); dir != "."; dir = path.Dir(dir) {
			n, err := v.find(dir)
			code, _ := Of(err)
			switch {
			case err == nil && !n.isDir():
				return fault.New(InvalidParams, "%s is a file, so %s cannot be in it", dir, at)
			case err != nil && code != PathNotFound:
				return err
			case err != nil && !mkdir:
				return fault.New(PathNotFound, "there is no directory %s; make it with %s", dir, m.Words.CreateDirs)
			}
		}
		if limit, said := v.limit(); int64(len(content)) > limit {
			return fault.New(LimitExceeded, "the content has %d bytes, more than %s (%d)", len(content), said, limit)
		}
		was, _ := v.find(at) // nothing, where there is none
		if err := v.fits(ctx, int64(len(content))-was.size); err != nil {
			return err
		}
		_, err = m.files.Write(ctx, inside(v.contents, at), atomicfile.Options{}, func(f *os.File) error {
			_, err := f.Write(content)
			return err
		})
		if err == nil && v.layer != nil && was.entry >= 0 && was.name != "" {
			err = v.contents.Chmod(filepath.FromSlash(at), unpackedMode(&v.layer.Entries[was.entry]))
		}
		return m.Words.explain(at, err)
	})
}

// fits refuses to make the files of a session larger by n bytes than it may be.
func (v *view) fits(ctx context.Context, n int64) error {
	limit, said := v.limit()
	// All files are looked at only where the limit is near by what is known.
	v.m.mu.Lock()
	total, known := v.m.sizes[v.ID]
	v.m.mu.Unlock()
	if !known || total+n > limit {
		list, err := v.below(ctx, ".", maxDepth)
		if err != nil {
			return err
		}
		total = 0
		for _, f := range list {
			total += f.size
		}
	}
	if n > 0 && total+n > limit {
		return fault.New(LimitExceeded, "the session would have %d bytes, more than it may (%d; %s)", total+n, limit, said)
	}
	v.m.mu.Lock()
	v.m.sizes[v.ID] = total + max(n, 0) // what is smaller is seen when it matters
	v.m.mu.Unlock()
	return nil
}

// Delete deletes the file or directory called name; of a directory, unless
// recursive is set, only where nothing is in it.
func (m *Workspaces) Delete(ctx context.Context, ref string, name Name, recursive bool) error {
	at, err := name.clean()
	if err != nil {
		return err
	}
	s, err := m.use(ctx, ref, true)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.readOnly(); err != nil {
		return err
	}
	if at == "." {
		return fault.New(InvalidParams, "the path is that of the workspace itself; close the session to remove it, or name what is in it")
	}
	v, err := s.view()
	if err != nil {
		return err
	}
	defer v.close()
	fi, err := v.contents.Lstat(filepath.FromSlash(at))
	onDisk := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return m.Words.explain(at, err)
	}
	archived := false
	var n node
	if v.layer != nil {
		n, archived = v.layer.find(at)
	}
	if !onDisk && !archived {
		return m.Words.noSuch(at)
	}
	if dir := onDisk && fi.IsDir() || !onDisk && n.isDir(); dir && !recursive {
		list, err := v.below(ctx, at, 0)
		if err != nil {
			return err
		}
		if len(list) > 0 {
			return fault.New(NotEmpty, "the directory %s is not empty (%s); delete it with %s", at, plural(len(list), "entry", "entries"), m.Words.Recursive)
		}
	}
	if archived {
		if err := s.recordRemoved(at); err != nil {
			return err
		}
		// The directory it was in stays, though the archive may have no entry for it.
		if err := v.contents.MkdirAll(filepath.FromSlash(path.Dir(at)), 0o755); err != nil {
			return m.Words.explain(at, err)
		}
	}
	if onDisk {
		return m.Words.explain(at, v.contents.RemoveAll(filepath.FromSlash(at)))
	}
	return nil
}

package audit

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/config"
	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// A Dir is a directory of records, held open: what an agent puts in its place
// meanwhile does not lead the records elsewhere.
type Dir struct {
	root *os.Root
	Abs  string
}

// Open opens the directory dir of records for tasks in cwd. With create it is
// made where it is missing, for its owner alone, and a directory made below cwd
// is hidden from git by a .gitignore of its own.
func Open(cwd place.Place, dir string, create bool) (*Dir, error) {
	abs := config.Abs(dir, cwd.Abs)
	if filepath.IsAbs(dir) {
		if create {
			if err := os.MkdirAll(abs, 0o700); err != nil {
				return nil, err
			}
		}
		root, err := os.OpenRoot(abs)
		return &Dir{root, abs}, err
	}
	rel := filepath.Clean(dir)
	if !filepath.IsLocal(rel) {
		return nil, fault.New(fault.ConfigInvalid, "the directory %s of records leads out of the working directory; name one below it, or an absolute one", dir)
	}
	at := cwd.Child(rel)
	if create {
		first, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
		top := cwd.Child(first)
		err := top.Mkdir(0o700, false)
		if err == nil {
			err = hide(top)
		}
		if err == nil || errors.Is(err, fs.ErrExist) {
			err = at.Mkdir(0o700, true)
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	root, err := at.OpenRoot()
	if err != nil {
		return nil, err
	}
	return &Dir{root, abs}, nil
}

// hide keeps the directory p out of git.
func hide(p place.Place) error {
	f, _, err := p.Child(".gitignore").OpenFile(os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString("*\n")
	return cmp.Or(f.Close(), err)
}

// Beside returns the name of the directory called name next to dir.
func Beside(dir, name string) string {
	if filepath.IsAbs(dir) {
		return filepath.Join(filepath.Dir(dir), name)
	}
	return path.Join(path.Dir(filepath.ToSlash(dir)), name)
}

// Root is the open directory.
func (d *Dir) Root() *os.Root { return d.root }

// Close closes the directory.
func (d *Dir) Close() error { return d.root.Close() }

// Path is the absolute path of name in d.
func (d *Dir) Path(name string) string { return filepath.Join(d.Abs, name) }

// Replace writes the file name whole or not at all, mode 0600.
func (d *Dir) Replace(name string, content []byte) error {
	temp := atomicfile.TempName()
	if err := d.root.WriteFile(temp, content, 0o600); err != nil {
		_ = d.root.Remove(temp)
		return err
	}
	if err := d.root.Rename(temp, name); err != nil {
		_ = d.root.Remove(temp)
		return err
	}
	return nil
}

var unfit = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[^A-Za-z0-9._-]+`)
})

// Segment makes a part of a file name of s.
func Segment(s string) string {
	if s = unfit().ReplaceAllString(s, "_"); s == "" || s == "." || s == ".." {
		return "_"
	}
	return s[:min(len(s), 100)]
}

// Name is the name of the record of a task, without its extension.
func Name(at time.Time, provider, task string) string {
	iso := strings.NewReplacer(":", "-", ".", "-").Replace(ISO(at))
	return iso + "__" + Segment(provider) + "__" + Segment(task)
}

// ISO is a time as records write it: UTC, to the millisecond.
func ISO(t time.Time) string { return fileinfo.ISO(t) }

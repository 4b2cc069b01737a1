package zipws

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"

	"github.com/conduit-mcp/conduit-mcp/internal/zipfile"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// A layer is what a lazy session has in the archive, below what is on disk.
type layer struct {
	*zipfile.Directory
	named   map[string]int  // entries
	parents map[string]bool // directories that entries are in
	removed map[string]bool
	from    *os.File // the archive
}

// layer opens the archive of a lazy session.
func (s *session) layer() (*layer, error) {
	d, err := s.directory()
	if err != nil {
		return nil, err
	}
	l := &layer{Directory: d, named: d.Index(), parents: map[string]bool{}, removed: map[string]bool{}}
	names, err := s.removed()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		l.removed[name] = true
	}
	for name := range l.named {
		for dir := path.Dir(name); dir != "." && !l.parents[dir] && !l.covered(name); dir = path.Dir(dir) {
			l.parents[dir] = true
		}
	}
	f, fi, err := s.openSource()
	if err != nil {
		return nil, err
	}
	if _, same := s.unchanged(f, fi); !same {
		f.Close()
		return nil, fault.New(ConflictDetected, "%s was modified since it was opened, and this session reads from it; close it with %s and open the archive again", s.Source, s.m.Words.Discard)
	}
	l.from = f
	return l, nil
}

// unchanged reports whether the archive is as it was by its list of entries,
// which it returns.
func (s *session) unchanged(f *os.File, fi fs.FileInfo) (*zipfile.Directory, bool) {
	d, err := readDirectory(f, fi.Size())
	return d, err == nil && fi.Size() == s.Archive.Size && d.Hash() == s.Hash
}

// removed lists what a lazy session has deleted.
func (s *session) removed() ([]string, error) {
	b, err := s.root.ReadFile(part("removed", s.Generation))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	return names, json.Unmarshal(b, &names)
}

// recordRemoved writes down that name is deleted. The session must be locked alone.
func (s *session) recordRemoved(name string) error {
	names, err := s.removed()
	if err != nil || slices.Contains(names, name) {
		return err
	}
	b, err := json.Marshal(append(names, name))
	if err != nil {
		return err
	}
	s.m.step("write removed")
	if err := writeDurably(s.root, tempName, b); err != nil {
		return err
	}
	s.m.step("place removed")
	return s.root.Rename(tempName, part("removed", s.Generation))
}

// covered reports whether name, or a directory it is in, is deleted.
func (l *layer) covered(name string) bool {
	for ; name != "."; name = path.Dir(name) {
		if l.removed[name] {
			return true
		}
	}
	return false
}

// find returns what the archive has at name.
func (l *layer) find(name string) (node, bool) {
	if l.covered(name) {
		return node{}, false
	}
	if i, ok := l.named[name]; ok {
		e := &l.Entries[i]
		return node{name: name, mode: e.Mode, size: e.Size, mtime: e.Modified, entry: i}, true
	}
	if name == "." || l.parents[name] {
		return node{name: name, mode: fs.ModeDir | 0o755, entry: -1}, true
	}
	return node{}, false
}

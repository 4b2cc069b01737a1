package zipws

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
)

// recover ends a sync that was interrupted: it is completed where the new
// archive is in place, and otherwise taken back. The session must be locked
// alone.
func (s *session) recover() error {
	if s.Sync == nil {
		return nil
	}
	dir, err := s.source.Parent().OpenRoot()
	if errors.Is(err, fs.ErrNotExist) {
		return s.rollback() // with it went all that there was
	}
	if err != nil {
		return s.source.Explain(err)
	}
	defer dir.Close()
	base := filepath.Base(s.source.Name)
	for _, temp := range s.Sync.Temps {
		if atomicfile.IsTemp(temp) {
			s.m.step("remove temporary file")
			dir.Remove(temp)
		}
	}
	if s.Sync.Next != nil {
		if f, err := dir.Open(base); err == nil {
			defer f.Close()
			if fi, err := f.Stat(); err == nil {
				if d, err := readDirectory(f, fi.Size()); err == nil && d.Hash() == s.Sync.Hash {
					return s.commit(dir, base)
				}
			}
		}
		backup, err := dir.Lstat(s.Sync.Backup)
		present, perr := dir.Lstat(base)
		switch {
		case err == nil && perr == nil && os.SameFile(backup, present):
			s.m.step("remove backup")
			dir.Remove(s.Sync.Backup)
		case err == nil && errors.Is(perr, fs.ErrNotExist):
			s.m.step("bring back backup")
			if err := dir.Rename(s.Sync.Backup, base); err != nil {
				return err
			}
		}
	}
	if fi, err := dir.Lstat(base); err == nil && s.Archive.Inode == stampOf(fi).Inode {
		// To have had another name counts as a change of the file.
		if now := stampOf(fi); now.Size == s.Archive.Size && now.Modified == s.Archive.Modified {
			s.Archive = now
		}
	}
	return s.rollback()
}

// commit makes the next generation hold, once its archive is in place.
func (s *session) commit(dir *os.Root, base string) error {
	fi, err := dir.Lstat(base)
	if err != nil {
		return err
	}
	now := s.m.Now().UTC()
	s.Archive, s.Hash, s.Synced = stampOf(fi), s.Sync.Hash, &now
	s.Files, s.Bytes = s.Sync.Next.Files, s.Sync.Next.Bytes
	s.Generation++
	s.Sync, s.State = nil, stateOpen
	if err := s.save(); err != nil {
		return err
	}
	s.m.step("remove generation")
	s.dropOtherGenerations()
	return nil
}

// rollback makes the present generation hold again.
func (s *session) rollback() error {
	s.Sync, s.State = nil, stateOpen
	s.m.step("roll back sync")
	if err := s.save(); err != nil {
		return err
	}
	s.dropOtherGenerations()
	return nil
}

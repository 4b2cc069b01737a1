package zipws

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The data directory may be shared with others, such as the program that
// workspaces were first made by. What is removed there carries one of these
// marks: a workspace has the file markName from before anything else is in it
// until nothing else is, a lock has lockMark as its content, and an empty
// directory has a name that temporaryName makes.
const (
	markName    = ".conduit-zip"
	lockMark    = "conduit-mcp zip workspace\n"
	newPrefix   = ".new-"  // of directories that are being made
	trashPrefix = ".gone-" // of directories that are being removed
)

var tokenLen = len(rand.Text())

// temporaryName is the path of a directory that is being made or removed.
func temporaryName(prefix string) string { return filepath.Join(workspacesDir, prefix+rand.Text()) }

// temporary reports whether name is one that temporaryName makes.
func temporary(name string) (prefix string, ok bool) {
	for _, prefix := range []string{newPrefix, trashPrefix} {
		token, ok := strings.CutPrefix(name, prefix)
		if ok && len(token) == tokenLen && strings.Trim(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == "" {
			return prefix, true
		}
	}
	return "", false
}

// mark marks a workspace as ours.
func mark(dir *os.Root) error {
	if marked(dir) {
		return nil
	}
	return writeDurably(dir, markName, nil)
}

func marked(dir *os.Root) bool {
	fi, err := dir.Lstat(markName)
	return err == nil && fi.Mode().IsRegular()
}

// What a directory below workspaces/ is.
type kind int

const (
	foreign kind = iota // made by others
	ready               // a session
	unready             // ours, being opened or closed
	broken              // a session whose metadata cannot be read
)

// identify tells what the directory called name is.
func identify(dir *os.Root, name string) (metadata, kind) {
	b, err := dir.ReadFile(metadataName)
	own := marked(dir)
	if err != nil {
		if own && errors.Is(err, fs.ErrNotExist) {
			return metadata{}, unready
		}
		return metadata{Name: name}, foreign
	}
	var d metadata
	switch err := json.Unmarshal(b, &d); {
	case own && (err != nil || d.Name == ""):
		return metadata{}, broken
	case d.Name != name || !own && !earlier(b):
		return metadata{Name: name, ID: d.ID}, foreign
	}
	return d, ready
}

// earlier reports whether metadata is that of a session which an earlier version
// has opened, without a mark.
func earlier(b []byte) bool {
	var d map[string]json.RawMessage
	if json.Unmarshal(b, &d) != nil {
		return false
	}
	return !slices.ContainsFunc([]string{"id", "format", "directory_sha256", "archive", "generation"}, func(key string) bool { return d[key] == nil })
}

// sweepTemporary removes a directory that a process which was killed has left.
// One that is being made is left to who has allLock.
func (m *Workspaces) sweepTemporary(st *os.Root, name string, lock bool) {
	if lock {
		all, err := m.lock(context.Background(), st, allLock, true, 0)
		if err != nil {
			return
		}
		defer all.Close()
	}
	m.discard(st, filepath.Join(workspacesDir, name))
}

// discard removes a directory that has the mark, which goes last, or nothing in
// it.
func (m *Workspaces) discard(st *os.Root, path string) error {
	names, err := namesIn(st, path)
	if err != nil {
		return err
	}
	if len(names) > 0 {
		dir, err := st.OpenRoot(path)
		if err != nil {
			return err
		}
		defer dir.Close()
		if !marked(dir) {
			return nil
		}
		for _, name := range names {
			if name != markName {
				if err := dir.RemoveAll(name); err != nil {
					return err
				}
			}
		}
		m.step("remove mark")
		if err := dir.Remove(markName); err != nil {
			return err
		}
	}
	return st.Remove(path)
}

// makeLock makes the file of a lock where there is none, with the mark.
func makeLock(st *os.Root, path string) error {
	if _, err := st.Lstat(path); err == nil {
		return nil
	}
	if err := st.Mkdir(locksDir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	f, err := st.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	f.WriteString(lockMark) // without it, the file stays when the session is gone
	return f.Close()
}

// ownLock reports whether the file of a lock is one that makeLock has made.
func ownLock(st *os.Root, path string) bool {
	b, err := st.ReadFile(path)
	return err == nil && string(b) == lockMark
}

// namesIn lists what is in a directory, sorted; nothing where it is missing.
func namesIn(st *os.Root, dir string) ([]string, error) {
	f, err := st.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

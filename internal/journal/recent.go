package journal

import (
	"os"
	"slices"
	"strings"
	"time"
)

// A Recent is a change as a list of the latest shows it.
type Recent struct {
	ID       string
	Time     time.Time
	Op       string // id of the op, such as write.put
	Files    []RecentFile
	More     int // files beyond those in Files
	Bytes    int64
	Undoable bool
	Undone   string // the change that undid it, "-" where that was not kept
}

// A RecentFile is a path that a change changed.
type RecentFile struct {
	Path string
	From string // where it was moved from
	Kind string // created, changed, deleted or moved
}

// recentFiles is how many files of a change are listed.
const recentFiles = 20

// Recent returns the latest n changes all of whose paths may be used, newest
// first. Of a directory that was deleted what lies in it is not listed.
func (u Undoer) Recent(n int) ([]Recent, error) {
	ids, err := u.Journal.list()
	if err != nil {
		return nil, err
	}
	var list []Recent
	for _, id := range slices.Backward(ids) {
		if len(list) == n {
			break
		}
		a, err := u.Journal.load(id)
		if err != nil || !a.done || len(a.steps) == 0 || !u.allowed(a) {
			continue // dropped meanwhile, under way, or not for this caller
		}
		r := Recent{ID: id, Time: a.time, Op: a.op, Bytes: a.bytes, Undone: a.undone, Undoable: a.undone == ""}
		for _, s := range a.steps {
			f := RecentFile{Path: s.path, Kind: s.kind()}
			if s.to != "" {
				f.Path, f.From = s.to, s.path
			}
			if f.Kind == "" || a.within(f.Path) {
				continue
			}
			if len(r.Files) == recentFiles {
				r.More++
				continue
			}
			r.Files = append(r.Files, f)
		}
		list = append(list, r)
	}
	return list, nil
}

// kind is what the step did; "" for directories made on the way.
func (s *step) kind() string {
	switch {
	case s.to != "":
		return "moved"
	case s.left.Kind == absent:
		return "deleted"
	case s.had.Kind != absent:
		return "changed"
	case s.left.Kind == directory:
		return ""
	}
	return "created"
}

// within reports whether path lies in a directory that a deleted.
func (a *account) within(path string) bool {
	if a.gone == nil {
		a.gone = map[string]bool{}
		for _, s := range a.steps {
			if s.left.Kind == absent && s.had.Kind == directory {
				a.gone[s.path] = true
			}
		}
	}
	for i := strings.LastIndexByte(path, os.PathSeparator); i > 0; i = strings.LastIndexByte(path[:i], os.PathSeparator) {
		if a.gone[path[:i]] {
			return true
		}
	}
	return false
}

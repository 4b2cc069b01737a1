package journal

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
)

// A record is a file of lines, each a JSON object, that tells one change. It is
// only ever appended to: what was there goes in before it is destroyed, and what
// a step will leave before the step. A reader can therefore tell from the files
// themselves which of the last steps a process that was killed still took.
type line struct {
	// The first line.
	Op   string `json:"op,omitempty"`
	Time int64  `json:"time,omitempty"` // nanoseconds of Unix time
	Of   string `json:"of,omitempty"`   // the change that this one undid

	// The others.
	Part int    `json:"part,omitempty"`
	Path text   `json:"path,omitempty"`
	Had  *state `json:"had,omitempty"`  // what is at Path, and kept
	Left *state `json:"left,omitempty"` // what will be at Path, or at To
	To   text   `json:"to,omitempty"`   // where Path moves

	Cancel bool `json:"cancel,omitempty"` // the last Left of Path did not come about
	Void   bool `json:"void,omitempty"`   // Part cannot be undone

	Done   bool   `json:"done,omitempty"`
	Bytes  int64  `json:"bytes,omitempty"`  // with Done: what the change keeps
	Undone string `json:"undone,omitempty"` // the change that undid this one
}

// A state is what is or was at a path.
type state struct {
	Kind  kind        `json:"kind"`
	Mode  fs.FileMode `json:"mode,omitempty"`
	Size  int64       `json:"size,omitempty"` // -1 where it is not known
	Mtime int64       `json:"mtime,omitempty"`
	Dev   uint64      `json:"dev,omitempty"`
	Ino   uint64      `json:"ino,omitempty"`
	Sum   []byte      `json:"sum,omitempty"`  // SHA-256 of a file, digest of a tree
	Text  text        `json:"text,omitempty"` // of a link
	Blob  string      `json:"blob,omitempty"` // name of the kept content
	Cut   bool        `json:"cut,omitempty"`  // the content is the first Size bytes of what is there
}

type kind string

const (
	absent    kind = "absent"
	file      kind = "file"
	link      kind = "link"
	directory kind = "directory" // by itself
	tree      kind = "tree"      // with all that is in it
	other     kind = "other"     // a special file
)

var nothing = state{Kind: absent}

func stateOf(i fileinfo.Info) state {
	s := state{Kind: other, Mode: i.Mode, Size: i.Size, Mtime: i.Modified.UnixNano(), Dev: i.ID.Device, Ino: i.ID.Inode}
	switch {
	case i.IsDir():
		s.Kind, s.Size = directory, 0
	case i.IsLink():
		s.Kind = link
	case i.Mode.IsRegular():
		s.Kind = file
	}
	return s
}

// untouched reports whether now is certainly the file, link or directory s and
// was not written to since.
func (s state) untouched(now state) bool {
	if s.Kind == tree {
		s.Kind = directory
	}
	if s.Kind != now.Kind || s.Dev != now.Dev || s.Ino != now.Ino {
		return false
	}
	return s.Kind == absent || s.Kind == directory || s.Size == -1 || s.Size == now.Size && s.Mtime == now.Mtime
}

// A text is a path or the text of a link, which need not be UTF-8.
type text string

type bytesText struct {
	Bytes []byte `json:"bytes"`
}

func (t text) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(t)) {
		return json.Marshal(string(t))
	}
	return json.Marshal(bytesText{[]byte(t)})
}

func (t *text) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, (*string)(t))
	}
	var v bytesText
	err := json.Unmarshal(b, &v)
	*t = text(v.Bytes)
	return err
}

// An account is a record as it is read back.
type account struct {
	id     string
	op     string
	time   time.Time
	of     string
	done   bool
	bytes  int64
	undone string
	void   map[int]bool
	steps  []*step

	open map[string]kept  // kept, and nothing left there yet
	keys map[string]*step // the latest step by what it left
	gone map[string]bool  // directories that were deleted
}

// kept is what a part kept of a path.
type kept struct {
	part int
	had  state
}

// A step is one path and what became of it.
type step struct {
	part int
	path string
	to   string // where path was moved; "" for what was not
	had  state  // at path, or at to
	left state

	before *state // left before the latest line, for a cancel
	over   *step  // the step that a move stands for as well
	under  *step  // the step that left what was moved
}

// at is the path that the step left something at.
func (s *step) at() string {
	if s.to != "" {
		return s.to
	}
	return s.path
}

// parse reads a record. A line that was not written to its end ends it; good is
// the length of what could be read.
func parse(id string, b []byte) (a *account, good int) {
	a = &account{id: id, void: map[int]bool{}, open: map[string]kept{}, keys: map[string]*step{}}
	for len(b) > good {
		end := bytes.IndexByte(b[good:], '\n')
		if end < 0 {
			break
		}
		var l line
		if err := json.Unmarshal(b[good:good+end], &l); err != nil {
			break
		}
		good += end + 1
		a.add(&l)
	}
	a.steps = slices.DeleteFunc(a.steps, func(s *step) bool { return a.void[s.part] })
	return a, good
}

func (a *account) add(l *line) {
	path := string(l.Path)
	switch {
	case l.Op != "":
		a.op, a.time, a.of = l.Op, time.Unix(0, l.Time), l.Of
	case l.Undone != "":
		a.undone, a.bytes = l.Undone, l.Bytes
	case l.Done:
		a.done, a.bytes = true, l.Bytes
	case l.Void:
		a.void[l.Part] = true
		maps.DeleteFunc(a.open, func(_ string, k kept) bool { return k.part == l.Part })
	case l.Cancel:
		a.cancel(path)
	case l.Had != nil:
		// What we left there before is no longer what is there.
		if s := a.keys[path]; s != nil && s.to == "" {
			a.drop(s)
		}
		delete(a.keys, path)
		a.open[path] = kept{l.Part, *l.Had}
	case l.To != "":
		to := string(l.To)
		s := &step{part: l.Part, path: path, to: to, left: *l.Left, had: a.take(to), over: a.keys[to]}
		if s.over != nil {
			s.had = s.over.had
			a.drop(s.over)
		}
		if s.under = a.keys[path]; s.under != nil {
			delete(a.keys, path) // what comes there next is something else
		}
		a.steps = append(a.steps, s)
		a.keys[to] = s
	case l.Left != nil:
		s := a.keys[path]
		if s == nil || s.to != "" {
			s = &step{part: l.Part, path: path, had: a.take(path)}
			a.steps = append(a.steps, s)
			a.keys[path] = s
		} else {
			left := s.left
			s.before = &left
		}
		s.left = *l.Left
		if s.left.Kind == absent && s.had.Kind == directory {
			a.below(s)
		}
	}
}

// take returns what was kept of path.
func (a *account) take(path string) state {
	if k, ok := a.open[path]; ok {
		delete(a.open, path)
		return k.had
	}
	return nothing
}

// below makes steps of what was kept of a directory that goes.
func (a *account) below(top *step) {
	prefix := strings.TrimSuffix(top.path, string(os.PathSeparator)) + string(os.PathSeparator)
	var paths []string
	for path := range a.open {
		if strings.HasPrefix(path, prefix) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	for _, path := range paths {
		s := &step{part: top.part, path: path, had: a.take(path), left: nothing}
		a.steps = append(a.steps, s)
		a.keys[path] = s
	}
}

// cancel takes back the latest step that left something at path.
func (a *account) cancel(path string) {
	s := a.keys[path]
	switch {
	case s == nil:
	case s.before != nil:
		s.left, s.before = *s.before, nil
	default:
		a.drop(s)
		if s.under != nil {
			a.keys[s.path] = s.under
		}
		if s.over != nil {
			a.steps = append(a.steps, s.over)
			a.keys[path] = s.over
		} else {
			a.open[path] = kept{s.part, s.had}
		}
	}
}

func (a *account) drop(s *step) {
	delete(a.keys, s.at())
	a.steps = slices.DeleteFunc(a.steps, func(o *step) bool { return o == s })
}

// settle makes steps of what was kept and not seen to go, since the process
// ended there: of what now tells to be something else.
func (a *account) settle(now func(path string) state) (lines []line) {
	for path, k := range a.open {
		if is := now(path); !k.had.untouched(is) {
			lines = append(lines, line{Part: k.part, Path: text(path), Left: &is})
		}
	}
	slices.SortFunc(lines, func(x, y line) int { return strings.Compare(string(x.Path), string(y.Path)) })
	for i := range lines {
		a.add(&lines[i])
	}
	return lines
}

// encode writes l as one line.
func encode(l *line) []byte {
	b, err := json.Marshal(l)
	if err != nil {
		panic(err) // it holds nothing that JSON cannot say
	}
	return append(b, '\n')
}

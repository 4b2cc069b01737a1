// Package journal keeps what a server's changes destroy, so that they can be
// undone.
//
// A journal is a directory. Below changes/ each change has a directory of its
// own, named by its id, with a record and the kept files, which are named by the
// SHA-256 of their content. A file that is about to lose its last name is given
// one there, which costs no copy and keeps mode, owner, times and attributes; a
// file that has other names, is written to in place or lies on another device is
// copied. Since nothing is shared between changes, dropping one is removing its
// directory.
//
// What a step destroys is kept, and its record durable, before the step; what a
// step only creates is recorded before it, but not flushed, for nothing is lost
// with it. The record of a change whose process was killed is completed by the
// next server: open/ holds a file for every change that is under way, locked by
// its process.
//
// The states of a change, with the lines of its record that lead to them:
//
//	Begin
//	  |  first step: op, time
//	  v
//	begun --- Keep: had ---> kept --- Leave, Move: left ---> stepped
//	  |                       |  <---- it failed: cancel ---    |
//	  | Done                  | killed                          | Done, or killed: done
//	  v                       v                                 v
//	dropped <-- unchanged -- looked at ------ changed -------> done --- Undo: undone ---> undone
//	  ^                                                         |                           |
//	  +------------------ the oldest, of too much --------------+---------------------------+
//
// Of a change that was undone the record is left; what it kept is back in place.
// A part that cannot be kept whole is void: it stays done.
package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
	"github.com/conduit-mcp/conduit-mcp/internal/filelock"
)

const (
	changesDir = "changes"
	openDir    = "open"
	recordName = "record"

	// maxChanges bounds how many changes are remembered.
	maxChanges = 10_000
	// overhead is what a change takes up beside what it keeps, in bytes.
	overhead = 8 << 10
)

// A Journal is what one server keeps. Its methods may be called at the same
// time, and several servers may use one directory.
type Journal struct {
	dir string
	off bool
	max int64
	log *slog.Logger

	unlinked bool // in tests: copies where a link would do

	opening       sync.Mutex
	failed        bool     // it cannot be used
	changes, open *os.Root // nil until it is used
	changesFile   *os.File

	mu    sync.Mutex
	last  int64            // the latest id given
	own   *latest          // change of this process; nil where it has made none
	sizes map[string]int64 // of the changes that are done
	added int64            // since the last look at all of them
	warn  sync.Once
}

// New returns the journal that s describes; one without a directory is switched
// off. New never fails and touches nothing: the directory is made with the first
// change. Where it cannot be used nothing is kept, which the log is told once.
func New(s Settings, log *slog.Logger) *Journal {
	j := &Journal{dir: s.Dir, max: s.Max, log: log, sizes: map[string]int64{}}
	j.off = j.dir == ""
	return j
}

// use opens the directory, unless that was done, and completes the changes of
// processes that were killed. Where it does not exist it is made if create is
// set; else the error is like [fs.ErrNotExist].
func (j *Journal) use(create bool) error {
	j.opening.Lock()
	defer j.opening.Unlock()
	if j.changes != nil {
		return nil
	}
	switch {
	case j.off:
		return fs.ErrNotExist
	case j.failed:
		return errUnusable
	case !create:
		if _, err := os.Lstat(filepath.Join(j.dir, changesDir)); errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := j.prepare(); err != nil {
		j.failed = true
		j.unusable(err)
		return errUnusable
	}
	j.recover()
	return nil
}

var errUnusable = errors.New("the journal cannot be used")

// Dir returns the directory of the journal, "" where it is switched off.
func (j *Journal) Dir() string { return j.dir }

// Close lets go of the directory.
func (j *Journal) Close() error {
	j.opening.Lock()
	defer j.opening.Unlock()
	if j.changes == nil {
		return nil
	}
	err := errors.Join(j.changesFile.Close(), j.changes.Close(), j.open.Close())
	j.changes, j.failed = nil, true
	return err
}

func (j *Journal) unusable(err error) {
	j.warn.Do(func() {
		j.log.Warn("the journal cannot be written; changes cannot be undone", "dir", j.dir, "err", err)
	})
}

// prepare makes the directory and opens it.
func (j *Journal) prepare() error {
	root, err := atomicfile.PrivateDir(j.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range []string{changesDir, openDir} {
		if err := root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	changes, err := root.OpenRoot(changesDir)
	if err != nil {
		return err
	}
	file, err := changes.Open(".")
	if err != nil {
		changes.Close()
		return err
	}
	open, err := root.OpenRoot(openDir)
	if err != nil {
		changes.Close()
		file.Close()
		return err
	}
	j.changes, j.changesFile, j.open = changes, file, open
	return nil
}

// A latest is the change that was made last.
type latest struct {
	id string // "" where nothing of it was kept
	op string
}

// Ids are times, counted in 64 nanoseconds since 2020 and written in 11 digits
// of base 32, so that they sort as they were given.
const (
	digits  = "0123456789abcdefghijklmnopqrstuv"
	idSize  = 11
	idUnit  = 64
	idEpoch = 1577836800 // seconds of Unix time
)

func (j *Journal) newID() string {
	n := (time.Now().UnixNano() - idEpoch*int64(time.Second)) / idUnit
	j.mu.Lock()
	n = max(n, j.last+1)
	j.last = n
	j.mu.Unlock()
	id := make([]byte, idSize)
	for i := idSize - 1; i >= 0; i-- {
		id[i] = digits[n&31]
		n >>= 5
	}
	return string(id)
}

// made is when the change id was begun; ok is false where id is none.
func made(id string) (at time.Time, ok bool) {
	if len(id) != idSize {
		return at, false
	}
	var n int64
	for i := range id {
		d := strings.IndexByte(digits, id[i])
		if d < 0 {
			return at, false
		}
		n = n<<5 | int64(d)
	}
	return time.Unix(idEpoch, n*idUnit), true
}

// lock takes the change id for the caller until unlock is called; the error is
// like [filelock.ErrLocked] where somebody else has it.
func (j *Journal) lock(id string) (unlock func(), err error) {
	f, err := filelock.Open(j.open, id, filelock.Exclusive)
	if err != nil {
		return nil, err
	}
	return func() {
		j.open.Remove(id)
		f.Close()
	}, nil
}

// list returns the ids of all changes, oldest first.
func (j *Journal) list() ([]string, error) {
	if j.use(false) != nil {
		return nil, nil
	}
	f, err := j.changes.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	names = slices.DeleteFunc(names, func(n string) bool { _, ok := made(n); return !ok })
	slices.Sort(names)
	return names, err
}

// load reads the record of a change.
func (j *Journal) load(id string) (*account, error) {
	b, err := j.changes.ReadFile(filepath.Join(id, recordName))
	if err != nil {
		return nil, err
	}
	a, _ := parse(id, b)
	return a, nil
}

// size is what the change id takes up, known where it is done.
func (j *Journal) size(id string) (n int64, done bool) {
	if n, ok := j.sizes[id]; ok {
		return n, true
	}
	f, err := j.changes.Open(filepath.Join(id, recordName))
	if err != nil {
		return overhead, false
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return overhead, false
	}
	const enough = 512 // for the last line of a change that is done
	b := make([]byte, min(fi.Size(), enough))
	if _, err := f.ReadAt(b, fi.Size()-int64(len(b))); err != nil && err != io.EOF {
		return overhead, false
	}
	b = bytes.TrimSuffix(b, []byte("\n"))
	var l line
	if err := json.Unmarshal(b[bytes.LastIndexByte(b, '\n')+1:], &l); err != nil || !l.Done && l.Undone == "" {
		return fi.Size() + overhead, false
	}
	n = l.Bytes + fi.Size() + overhead
	j.sizes[id] = n
	return n, true
}

// grown tells the journal that a change is done, and has the oldest dropped
// where that makes it too large. All changes are looked at now and then only,
// since other servers may use the directory too.
func (j *Journal) grown(id string, bytes int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	first := len(j.sizes) == 0
	j.sizes[id] = bytes + overhead
	if j.added += bytes + overhead; !first && j.added < j.max/64 {
		return
	}
	j.added = 0
	ids, err := j.list()
	if err != nil {
		return
	}
	known := make(map[string]int64, len(ids))
	var total int64
	for _, id := range ids {
		n, done := j.size(id)
		if total += n; done {
			known[id] = n
		}
	}
	for count := len(ids); len(ids) > 0 && (total > j.max || count > maxChanges); ids = ids[1:] {
		oldest := ids[0]
		n, done := known[oldest]
		if !done || !j.remove(oldest) {
			continue
		}
		delete(known, oldest)
		total -= n
		count--
	}
	j.sizes = known
}

// remove drops a change unless somebody is at work on it.
func (j *Journal) remove(id string) bool {
	unlock, err := j.lock(id)
	if err != nil {
		return false
	}
	defer unlock()
	return j.discard(id)
}

// discard removes the directory of a change that the caller has locked. It is
// renamed first, so that nobody meets a part of it.
func (j *Journal) discard(id string) bool {
	gone := "." + id
	if err := j.changes.Rename(id, gone); err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	return j.changes.RemoveAll(gone) == nil
}

// recover completes what killed processes have left.
func (j *Journal) recover() {
	if f, err := j.changes.Open("."); err == nil {
		names, _ := f.Readdirnames(-1)
		f.Close()
		for _, name := range names {
			if strings.HasPrefix(name, ".") {
				j.changes.RemoveAll(name)
			}
		}
	}
	f, err := j.open.Open(".")
	if err != nil {
		return
	}
	names, _ := f.Readdirnames(-1)
	f.Close()
	for _, id := range names {
		if _, ok := made(id); !ok {
			continue
		}
		unlock, err := j.lock(id)
		if err != nil {
			continue // its process lives
		}
		if err := j.complete(id); err != nil {
			j.log.Warn("a change in the journal could not be completed", "change_id", id, "err", err)
		}
		unlock()
	}
}

// complete ends the record of a change whose process was killed, or drops it
// where nothing had been changed yet.
func (j *Journal) complete(id string) error {
	f, err := j.changes.OpenFile(filepath.Join(id, recordName), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		j.changes.Remove(id)
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	a, good := parse(id, b)
	if a.done {
		return nil // it was being undone or dropped
	}
	lines := a.settle(func(path string) state {
		fi, err := os.Lstat(path)
		if err != nil {
			return nothing
		}
		return stateOf(fileinfo.From(fi))
	})
	if len(a.steps) == 0 {
		j.discard(id)
		return nil
	}
	if err := f.Truncate(int64(good)); err != nil {
		return err
	}
	end := line{Done: true}
	for _, s := range a.steps {
		end.Bytes += s.had.Size
	}
	var out []byte
	for i := range lines {
		out = append(out, encode(&lines[i])...)
	}
	_, err = f.WriteAt(append(out, encode(&end)...), int64(good))
	return err
}

// Package zipws keeps workspaces: archives that are worked in as files and
// synced back.
//
// A workspace is a directory below workspaces/ in the data directory. contents/
// holds the files; of a lazy session only those that were written, the others
// being read from the archive. metadata.json says what the session is, and
// names a generation: directory-N is the list of entries of the archive as it
// was when it was opened or synced last, stamps-N tells which files have not
// been touched since, removed-N what a lazy session has deleted. A sync makes
// the next generation. What metadata.json says holds; it is replaced in one
// step.
//
// The file locks/NAME is locked by whoever uses the workspace NAME: shared by
// those that read and write files, alone by those that open, sync and close.
package zipws

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/filelock"
	"github.com/conduit-mcp/conduit-mcp/internal/pack"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

const (
	workspacesDir = "workspaces"
	locksDir      = "locks"
	contentsDir   = "contents"
	metadataName  = "metadata.json"
	fresh         = metadataName + ".tmp" // what is next, until it is in place
	allLock       = ".all"                // held while sessions are counted and made
	gonePrefix    = ".gone-"              // of directories that are being removed
)

// A Host decides which archives may be used, and lets others into the
// workspaces.
type Host interface {
	// Resolve places the path of an archive, or refuses it.
	Resolve(path string) (place.Place, error)
	// Allow makes the directory dir one that paths may lead into, though it is
	// inside the server's own state. To allow it again changes nothing.
	Allow(dir string) error
	// Revoke takes Allow back.
	Revoke(dir string)
}

// Options are what a Manager is made of.
type Options struct {
	Settings
	Data string // see [Settings.Path]; where it is empty no session can be opened
	Host Host
	Log  *slog.Logger
	Now  func() time.Time
}

// A Manager keeps workspaces. Its methods may be called at the same time, and
// several processes may use one data directory. Sessions whose archive the Host
// refuses are as good as none.
type Manager struct {
	Options
	files *atomicfile.Writer
	wait  time.Duration // for a lock

	step     func(string) // in tests: called before each step that changes something
	unlinked bool         // in tests: backups are copies

	mu      sync.Mutex
	allowed map[string]bool // directories that Host was told of
}

// New returns a Manager, and tells the Host of the sessions that are open.
func New(o Options) *Manager {
	m := &Manager{Options: o, files: atomicfile.New(), wait: 10 * time.Second, step: func(string) {}, allowed: map[string]bool{}}
	if st, err := m.state(false); err == nil {
		if _, err := m.list(st); err != nil {
			m.Log.Warn("zip workspaces cannot be listed", "dir", o.Data, "err", err)
		}
		st.Close()
	}
	return m
}

// state opens the data directory; where it is missing and not to be created the
// error is like [fs.ErrNotExist].
func (m *Manager) state(create bool) (*os.Root, error) {
	if m.Data == "" {
		if !create {
			return nil, fs.ErrNotExist
		}
		return nil, fault.New(IOError, "the user's data directory is not known, so workspaces have no place; set CONDUIT_ZIP_DATA_DIR")
	}
	if create {
		for _, dir := range []string{workspacesDir, locksDir} {
			if err := os.MkdirAll(filepath.Join(m.Data, dir), 0o700); err != nil {
				return nil, fault.Hide(IOError, err, "the directory of workspaces, %s, cannot be made (CONDUIT_ZIP_DATA_DIR): %s", m.Data, atomicfile.Cause(err))
			}
		}
	}
	return os.OpenRoot(m.Data)
}

// lock takes the lock called name, waiting for it at most that long. The error
// is LOCKED where somebody else has it.
func (m *Manager) lock(ctx context.Context, st *os.Root, name string, exclusive bool, wait time.Duration) (*os.File, error) {
	limited, stop := context.WithTimeout(ctx, wait)
	defer stop()
	f, err := filelock.OpenWait(limited, st, filepath.Join(locksDir, name), filelock.Mode(!exclusive))
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, fault.New(Locked, "another operation has the session %s locked; try again when it is done", name)
	}
	return f, err
}

// A metadata is what is written down of a session.
type metadata struct {
	ID         string      `json:"id"`
	Name       string      `json:"name"`
	Source     string      `json:"source_path"`
	State      string      `json:"state"` // "open" or "syncing"
	Format     pack.Format `json:"format"`
	Lazy       bool        `json:"lazy,omitempty"`
	Links      bool        `json:"symlinks,omitempty"` // were unpacked
	Created    time.Time   `json:"created_at"`
	Synced     *time.Time  `json:"last_synced_at"`
	Hash       string      `json:"directory_sha256"` // of the archive's list of entries
	Archive    stamp       `json:"archive"`
	Generation int         `json:"generation"`
	Files      int         `json:"file_count"`
	Bytes      int64       `json:"extracted_size_bytes"`
	Sync       *journal    `json:"sync,omitempty"`

	unfinished bool // a killed process has left something
}

// A journal is what a sync that did not end needs to be completed or taken
// back.
type journal struct {
	Temps  []string `json:"temps"`            // beside the archive
	Backup string   `json:"backup,omitempty"` // the first one, beside the archive
	Hash   string   `json:"directory_sha256,omitempty"`
	Next   *summary `json:"next,omitempty"` // what holds once the archive is replaced
}

// A summary is what changes of the metadata with a sync.
type summary struct {
	Files int   `json:"file_count"`
	Bytes int64 `json:"extracted_size_bytes"`
}

const (
	stateOpen    = "open"
	stateSyncing = "syncing"
)

func loadMetadata(dir *os.Root) (metadata, error) {
	var d metadata
	b, err := dir.ReadFile(metadataName)
	if err != nil {
		return d, err
	}
	if err := json.Unmarshal(b, &d); err != nil {
		return d, fmt.Errorf("%s: %w", metadataName, err)
	}
	return d, nil
}

// leftIn reports whether the workspace dir, as d says it is, has something that
// a killed process has left.
func leftIn(dir *os.Root, d metadata) bool {
	if d.Sync != nil {
		return true
	}
	for _, name := range []string{fresh, part("directory", d.Generation-1), part("directory", d.Generation+1)} {
		if _, err := dir.Lstat(name); err == nil {
			return true
		}
	}
	return false
}

// save puts the metadata of s in place.
func (s *session) save() error {
	b, err := json.MarshalIndent(s.metadata, "", "  ")
	if err != nil {
		return err
	}
	s.m.step("write metadata")
	if err := writeDurably(s.root, fresh, b); err != nil {
		return err
	}
	s.m.step("place metadata")
	if err := s.root.Rename(fresh, metadataName); err != nil {
		return err
	}
	return atomicfile.Sync(s.root)
}

// writeDurably writes a file and flushes it to the disk.
func writeDurably(dir *os.Root, name string, b []byte) error {
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// newID returns a random UUID.
func newID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

const (
	maxSessionName = 64
	minPrefix      = 4 // characters of an id that may stand for it
)

// badSessionName says what is wrong with a name, "" where nothing is.
func badSessionName(name string) string {
	if name == "" || len(name) > maxSessionName {
		return fmt.Sprintf("must have 1 to %d characters", maxSessionName)
	}
	for _, c := range []byte(name) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			return "may only have letters, digits, _ and -"
		}
	}
	if idPrefix(name) {
		return "reads like the start of a session id; add a letter other than a to f"
	}
	return ""
}

// idPrefix reports whether s could be the start of an id.
func idPrefix(s string) bool {
	const form = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
	if len(s) < minPrefix || len(s) > len(form) {
		return false
	}
	for i, c := range []byte(strings.ToLower(s)) {
		if dash := form[i] == '-'; dash != (c == '-') || !dash && !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f') {
			return false
		}
	}
	return true
}

// nameFor makes a name for a session out of that of the archive.
func nameFor(path string, taken func(string) bool) string {
	base := filepath.Base(path)
	base, _, _ = strings.Cut(strings.TrimLeft(base, "."), ".")
	base = strings.Map(func(c rune) rune {
		if c < 0x80 && badSessionName(string(c)) == "" {
			return c
		}
		return '-'
	}, base)
	base = strings.Trim(base, "-")
	base = base[:min(len(base), maxSessionName-8)]
	if badSessionName(base) != "" {
		base = strings.Trim(base+"-zip", "-")
	}
	for n, name := 2, base; ; n++ {
		if !taken(name) {
			return name
		}
		name = fmt.Sprintf("%s-%d", base, n)
	}
}

// list returns the metadata of all sessions that the Host lets us see, sorted by
// name. Leftovers of processes that were killed are removed on the way.
func (m *Manager) list(st *os.Root) ([]metadata, error) {
	all, err := m.everything(st)
	if err != nil {
		return nil, err
	}
	visible := slices.DeleteFunc(all, func(d metadata) bool {
		at, err := m.Host.Resolve(d.Source)
		return err != nil || at.Abs != d.Source
	})
	m.allow(visible)
	return visible, nil
}

// everything is list without regard to the Host.
func (m *Manager) everything(st *os.Root) ([]metadata, error) {
	names, err := namesIn(st, workspacesDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []metadata
	for _, name := range names {
		path := filepath.Join(workspacesDir, name)
		if strings.HasPrefix(name, gonePrefix) {
			st.RemoveAll(path)
			continue
		}
		dir, err := st.OpenRoot(path)
		if err != nil {
			continue
		}
		d, err := loadMetadata(dir)
		d.unfinished = err == nil && leftIn(dir, d)
		dir.Close()
		switch {
		case err == nil && d.Name == name:
			list = append(list, d)
		case errors.Is(err, fs.ErrNotExist):
			m.abandon(st, name)
		default:
			m.Log.Warn("the metadata of a zip workspace cannot be read", "name", name, "err", err)
		}
	}
	locks, err := namesIn(st, locksDir)
	if err != nil {
		return nil, err
	}
	for _, name := range locks {
		if name != allLock && !slices.Contains(names, name) {
			m.abandon(st, name)
		}
	}
	return list, nil
}

// abandon removes what was left of a session that was being opened or closed
// when its process was killed.
func (m *Manager) abandon(st *os.Root, name string) {
	f, err := m.lock(context.Background(), st, name, true, 0)
	if err != nil {
		return // its process lives
	}
	defer f.Close()
	path := filepath.Join(workspacesDir, name)
	if _, err := st.Lstat(filepath.Join(path, metadataName)); errors.Is(err, fs.ErrNotExist) {
		m.remove(st, name)
	}
}

// remove removes the workspace called name, which the caller has locked, with
// its lock.
func (m *Manager) remove(st *os.Root, name string) error {
	gone := filepath.Join(workspacesDir, gonePrefix+rand.Text())
	m.step("move workspace away")
	err := st.Rename(filepath.Join(workspacesDir, name), gone)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	m.step("remove lock")
	st.Remove(filepath.Join(locksDir, name))
	m.step("remove workspace")
	return st.RemoveAll(gone)
}

func namesIn(st *os.Root, dir string) ([]string, error) {
	f, err := st.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

// contents is the path of a session's files.
func (m *Manager) contents(name string) string {
	return filepath.Join(m.Data, workspacesDir, name, contentsDir)
}

// allow tells the Host which sessions are open.
func (m *Manager) allow(list []metadata) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := map[string]bool{}
	for _, d := range list {
		dir := m.contents(d.Name)
		now[dir] = true
		if !m.allowed[dir] {
			if err := m.Host.Allow(dir); err != nil {
				m.Log.Warn("a zip workspace cannot be made accessible", "dir", dir, "err", err)
				delete(now, dir)
			}
		}
	}
	for dir := range m.allowed {
		if !now[dir] {
			m.Host.Revoke(dir)
		}
	}
	m.allowed = now
}

// A session is a workspace that the caller has locked.
type session struct {
	metadata
	m      *Manager
	st     *os.Root
	root   *os.Root // of the workspace
	held   *os.File // the lock
	source place.Place
}

// use finds the session that ref means and locks it, for itself alone where
// exclusive is set. A sync that was interrupted is completed or taken back. The
// caller closes the session.
func (m *Manager) use(ctx context.Context, ref string, exclusive bool) (*session, error) {
	st, err := m.state(false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missing(ref, nil)
	}
	if err != nil {
		return nil, err
	}
	s, err := m.enter(ctx, st, ref, exclusive)
	if err != nil {
		st.Close()
	}
	return s, err
}

func (m *Manager) enter(ctx context.Context, st *os.Root, ref string, exclusive bool) (*session, error) {
	list, err := m.list(st)
	if err != nil {
		return nil, err
	}
	d, err := pick(list, ref)
	if err != nil {
		return nil, err
	}
	return m.take(ctx, st, d, exclusive, m.wait)
}

// take locks the session d.
func (m *Manager) take(ctx context.Context, st *os.Root, d metadata, exclusive bool, wait time.Duration) (*session, error) {
	f, err := m.lock(ctx, st, d.Name, exclusive, wait)
	if err != nil {
		return nil, err
	}
	s := &session{m: m, st: st, held: f}
	if err := s.load(d); err != nil {
		s.release()
		return nil, err
	}
	if !leftIn(s.root, s.metadata) {
		now := m.Now()
		st.Chtimes(filepath.Join(locksDir, d.Name), now, now)
		return s, nil
	}
	if !exclusive {
		s.release()
		return m.take(ctx, st, d, true, wait)
	}
	if err := s.recover(); err != nil {
		s.release()
		return nil, err
	}
	s.root.Remove(fresh)
	s.forget()
	return s, nil
}

// load reads what the locked session d is now.
func (s *session) load(d metadata) (err error) {
	if s.root, err = s.st.OpenRoot(filepath.Join(workspacesDir, d.Name)); err == nil {
		s.metadata, err = loadMetadata(s.root)
	}
	if err == nil && s.ID != d.ID {
		err = fs.ErrNotExist
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fault.New(SessionNotFound, "the session %s was closed meanwhile", d.Name)
	}
	if err != nil {
		return err
	}
	s.source, err = s.m.Host.Resolve(s.Source)
	return err
}

// release lets go of the session but not of the data directory.
func (s *session) release() {
	if s.root != nil {
		s.root.Close()
	}
	s.held.Close()
}

// close lets go of the session.
func (s *session) close() {
	s.release()
	s.st.Close()
}

// pick finds the session that ref means: a name, an id, or the start of one.
// Where ref is empty it is the only one.
func pick(list []metadata, ref string) (metadata, error) {
	if ref == "" {
		switch len(list) {
		case 0:
			return metadata{}, missing(ref, nil)
		case 1:
			return list[0], nil
		}
		return metadata{}, fault.New(AmbiguousSession, "%d sessions are open; say which with session: %s", len(list), names(list))
	}
	var found []metadata
	for _, d := range list {
		if d.Name == ref || d.ID == strings.ToLower(ref) {
			return d, nil
		}
		if len(ref) >= minPrefix && strings.HasPrefix(d.ID, strings.ToLower(ref)) {
			found = append(found, d)
		}
	}
	switch len(found) {
	case 0:
		return metadata{}, missing(ref, list)
	case 1:
		return found[0], nil
	}
	return metadata{}, fault.New(AmbiguousSession, "the ids of %d sessions begin with %s; give more of it, or a name: %s", len(found), ref, names(found))
}

func missing(ref string, list []metadata) error {
	switch {
	case ref == "":
		return fault.New(NoSessions, "no session is open; open an archive with zipfs_open first")
	case len(list) == 0:
		return fault.New(SessionNotFound, "there is no session %s, and none is open; open an archive with zipfs_open first", clip(ref))
	}
	return fault.New(SessionNotFound, "there is no session %s; the open ones are: %s", clip(ref), names(list))
}

func names(list []metadata) string {
	var all []string
	for _, d := range list {
		all = append(all, d.Name)
	}
	return strings.Join(all, ", ")
}

// clip keeps what a message repeats of the caller's input short.
func clip(s string) string { return pack.Shown(s) }

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// directory reads what the archive has in it, as it was when it was opened or
// synced last.
func (s *session) directory() (*directory, error) {
	raw, err := s.root.ReadFile(part("directory", s.Generation))
	if err != nil {
		return nil, err
	}
	return reopenDirectory(raw, s.Archive.Size)
}

// part is the name of a file of a generation.
func part(what string, generation int) string {
	return fmt.Sprintf("%s-%d", what, generation)
}

// stamps reads which files are as they were unpacked, by entry.
func (s *session) stamps() ([]stamp, error) {
	b, err := s.root.ReadFile(part("stamps", s.Generation))
	if err != nil {
		return nil, err
	}
	return parseStamps(b), nil
}

// openSource opens the archive for reading.
func (s *session) openSource() (*os.File, fs.FileInfo, error) {
	f, fi, err := s.source.OpenFileOnly()
	if err != nil {
		return nil, nil, notFound(s.Source, err)
	}
	return f, fi, nil
}

// notFound is why the archive at path cannot be opened.
func notFound(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fault.New(ZipNotFound, "there is no archive %s", path)
	}
	_, message := fault.Of(err)
	return fault.Hide(ZipNotFound, err, "the archive %s cannot be read: %s", path, message)
}

func (m *Manager) describe(st *os.Root, d metadata) Session {
	s := Session{ID: d.ID, Name: d.Name, Source: d.Source, State: d.State,
		Created: Time(d.Created), Accessed: Time(d.Created), Files: d.Files, Bytes: d.Bytes, Lazy: d.Lazy, ReadOnly: d.Format != pack.Zip}
	if fi, err := st.Lstat(filepath.Join(locksDir, d.Name)); err == nil {
		s.Accessed = Time(fi.ModTime())
	}
	return s
}

// Sessions lists the open sessions, by name. Those that a killed process left in
// the middle of a sync are recovered.
func (m *Manager) Sessions(ctx context.Context) ([]Session, error) {
	st, err := m.state(false)
	if errors.Is(err, fs.ErrNotExist) {
		return []Session{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer st.Close()
	list, err := m.list(st)
	if err != nil {
		return nil, err
	}
	sessions := make([]Session, 0, len(list))
	for _, d := range list {
		if d.unfinished {
			if s, err := m.take(ctx, st, d, true, 0); err == nil {
				d = s.metadata
				s.release()
			}
		}
		sessions = append(sessions, m.describe(st, d))
	}
	return sessions, nil
}

// Path returns the directory of a session's files. A lazy session becomes one
// whose files are all unpacked.
func (m *Manager) Path(ctx context.Context, ref string, progress func(done, total int64)) (string, error) {
	s, err := m.use(ctx, ref, false)
	if err != nil {
		return "", err
	}
	if !s.Lazy {
		defer s.close()
		return m.contents(s.Name), nil
	}
	name := s.Name
	s.close()
	if s, err = m.use(ctx, name, true); err != nil {
		return "", err
	}
	defer s.close()
	if s.Lazy {
		if err := s.materialize(ctx, progress); err != nil {
			return "", err
		}
	}
	return m.contents(s.Name), nil
}

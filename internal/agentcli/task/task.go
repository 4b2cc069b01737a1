// Package task keeps tasks in files, one each, so that they and their results
// outlive the server that ran them.
package task

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/audit"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/snapshot"
	"github.com/conduit-mcp/conduit-mcp/internal/filelock"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// Values of Record.Status.
const (
	Queued      = "queued" // waits for the run before it in the same working tree
	Running     = "running"
	Succeeded   = "succeeded"
	Failed      = "failed"
	Cancelled   = "cancelled"
	Interrupted = "interrupted" // its server ended before it did
)

// Ended reports whether a task of that status is over.
func Ended(status string) bool { return status != Queued && status != Running }

// An Event is one step of a task.
type Event struct {
	Seq  int64  `json:"seq"`
	Time string `json:"time"`
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// A Worktree is what became of a task that ran in a working tree of its own.
type Worktree struct {
	Dir     string `json:"dir,omitempty"` // while it runs
	Ref     string `json:"ref,omitempty"` // git reference of the state after the task
	Applied bool   `json:"applied"`       // its changes were brought into the working tree
}

// A Record is all that is kept of a task.
type Record struct {
	TaskID     string             `json:"taskId"`
	Provider   string             `json:"provider"`
	Cwd        string             `json:"cwd"`
	Status     string             `json:"status"`
	Background bool               `json:"background"`
	StartedAt  string             `json:"startedAt"`
	FinishedAt string             `json:"finishedAt,omitempty"`
	Worktree   *Worktree          `json:"worktree,omitempty"`
	Allowlist  []string           `json:"allowlist,omitempty"`
	Mark       string             `json:"mark,omitempty"` // entry in the environment of its processes
	Before     *snapshot.Snapshot `json:"before,omitempty"`
	After      *snapshot.Snapshot `json:"after,omitempty"`
	Hashed     bool               `json:"hashed,omitempty"` // the state before is a list of hashes; see Files
	Events     []Event            `json:"events,omitempty"` // the latest
	Result     json.RawMessage    `json:"result,omitempty"`
	AuditPath  string             `json:"auditPath,omitempty"`
	LogPath    string             `json:"logPath,omitempty"`
}

var idForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)
})

// CheckID refuses a name that cannot be a task's: it becomes part of file names
// and of a git reference. word is what the caller calls it.
func CheckID(word, id string) error {
	if !idForm().MatchString(id) || strings.Contains(id, "..") || strings.HasSuffix(id, ".") || strings.HasSuffix(id, ".lock") {
		return fault.New(fault.InvalidParameter, "%s %q must be 1 to 100 letters, digits, dots, hyphens or underscores, beginning with a letter or digit and without two dots in a row", word, id[:min(len(id), 100)])
	}
	return nil
}

// MarkVar is the variable that marks the processes of a task.
const MarkVar = "CONDUIT_AGENT_TASK"

// NewMark returns an entry of the environment, NAME=value, for the processes of
// task id, that no other has.
func NewMark(id string) string { return MarkVar + "=" + id + "-" + rand.Text() }

var random = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Z2-7]{26}$`) })

// A Store is the tasks of one working directory.
type Store struct {
	Dir       *audit.Dir
	Cwd       string // the working directory
	Worktrees string // where working trees of their own are made for tasks
}

const (
	suffix = ".json"
	// maxRecord bounds what is read of a record, in bytes.
	maxRecord = 64 << 20
)

// Create makes the record of a new task and holds it until release is called
// or the process ends: who can hold it after that knows that its server is gone.
// An id that was used is ERR_FS_ALREADY_EXISTS.
func (s *Store) Create(r *Record) (release func(), err error) {
	f, err := s.Dir.Root().OpenFile(r.TaskID+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if _, err := s.Dir.Root().Lstat(r.TaskID + suffix); err == nil || filelock.TryLock(f, filelock.Exclusive) != nil {
		f.Close()
		return nil, fault.New(fault.FSAlreadyExists, "there is a task %s already", r.TaskID)
	}
	if err := s.Save(r); err != nil {
		f.Close()
		return nil, err
	}
	return func() {
		s.clear(r.TaskID)
		f.Close()
	}, nil
}

// Save writes r whole or not at all.
func (s *Store) Save(r *Record) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return s.Dir.Replace(r.TaskID+suffix, b)
}

// Load reads the record of a task.
func (s *Store) Load(id string) (*Record, error) {
	f, err := s.Dir.Root().Open(id + suffix)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxRecord))
	if err != nil {
		return nil, err
	}
	r := &Record{}
	if err := json.Unmarshal(b, r); err != nil || r.TaskID != id || !s.plausible(r) {
		return nil, fault.Hide(fault.FSReadFailed, err, "the record of task %s cannot be read", id)
	}
	return r, nil
}

// plausible reports whether r can be the record of a task of this directory, for
// by what it names processes are ended, files told and working trees removed.
func (s *Store) plausible(r *Record) bool {
	mark, marked := strings.CutPrefix(r.Mark, MarkVar+"="+r.TaskID+"-")
	w := r.Worktree
	return r.Cwd == s.Cwd && (r.Mark == "" || marked && random().MatchString(mark)) &&
		(w == nil || (w.Dir == "" || w.Dir == filepath.Join(s.Worktrees, r.TaskID)) && (w.Ref == "" || w.Ref == snapshot.Ref(r.TaskID))) &&
		(r.Before == nil || r.Before.Valid()) && (r.After == nil || r.After.Valid())
}

// SaveFiles keeps a list of hashes beside the record of a task, until it ends.
func (s *Store) SaveFiles(id string, list snapshot.Snapshot) error {
	b, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return s.Dir.Replace(id+".files", b)
}

// Files reads what SaveFiles kept.
func (s *Store) Files(id string) (snapshot.Snapshot, error) {
	var list snapshot.Snapshot
	b, err := s.Dir.Root().ReadFile(id + ".files")
	if err == nil {
		err = json.Unmarshal(b, &list)
	}
	return list, err
}

// clear removes what only a running task needs.
func (s *Store) clear(id string) {
	for _, suffix := range []string{".cancel", ".files", ".lock"} {
		_ = s.Dir.Root().Remove(id + suffix)
	}
}

// List returns the ids of all tasks, sorted.
func (s *Store) List() ([]string, error) {
	names, err := fs.ReadDir(s.Dir.Root().FS(), ".")
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, n := range names {
		if id, ok := strings.CutSuffix(n.Name(), suffix); ok && CheckID("", id) == nil && !strings.HasPrefix(id, ".") {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// Held returns the ids of the tasks that a server runs or ran when it ended.
func (s *Store) Held() []string {
	names, _ := fs.Glob(s.Dir.Root().FS(), "*.lock")
	for i, name := range names {
		names[i] = strings.TrimSuffix(name, ".lock")
	}
	return names
}

// free locks f, and reports whether it could.
func free(f *os.File) bool { return filelock.TryLock(f, filelock.Exclusive) == nil }

func pause() bool { time.Sleep(5 * time.Millisecond); return true }

// Orphan holds the task where the server that ran it is gone, until release is
// called; ok is false where it is not.
func (s *Store) Orphan(id string) (release func(), ok bool) {
	f, err := s.Dir.Root().OpenFile(id+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, false
	}
	if !free(f) && !(pause() && free(f)) { // Abandoned holds it for a moment
		f.Close()
		return nil, false
	}
	return func() {
		s.clear(id)
		f.Close()
	}, true
}

// Abandoned reports whether no server runs the task. Nothing is changed.
func (s *Store) Abandoned(id string) bool {
	f, err := s.Dir.Root().OpenFile(id+".lock", os.O_RDWR, 0)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close()
	return free(f)
}

// Ask asks the server that runs the task, another process, to cancel it.
func (s *Store) Ask(id string) error {
	return s.Dir.Root().WriteFile(id+".cancel", nil, 0o600)
}

// Asked reports whether somebody asked to cancel the task.
func (s *Store) Asked(id string) bool {
	_, err := s.Dir.Root().Lstat(id + ".cancel")
	return !errors.Is(err, fs.ErrNotExist)
}

// Retry is how often what another process holds is tried again.
const Retry = 100 * time.Millisecond

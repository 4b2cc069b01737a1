package journal

import (
	"errors"
	"os"
	"sync"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/parallel"
)

// A Change is what one call changes. It takes no room in the journal before
// something is changed. End it with [Change.Done].
type Change struct {
	j      *Journal
	op, of string

	mu       sync.Mutex
	id       string
	begun    bool
	broken   bool // nothing can be kept any more
	unlock   func()
	dir      *os.Root // where the record and what is kept are
	dirFile  *os.File
	record   *os.File
	pending  []byte // lines not yet written
	unsynced []string
	parts    int
	names    int // given to what is kept
	bytes    int64
	touched  int // steps, kept or not
	live     int // steps recorded
	known    map[string]*knowledge

	flushing       sync.Mutex
	kept, flushed  int // lines of what was kept
	directorySaved bool
}

// knowledge is what a change knows of a path.
type knowledge struct {
	had  state
	is   state           // what was there when it was kept
	step atomicfile.Step // that it was kept for
	left *state
}

// Begin begins a change by the op with this id.
func (j *Journal) Begin(op string) *Change {
	return &Change{j: j, op: op, known: map[string]*knowledge{}}
}

// Done ends the change.
func (c *Change) Done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.touched > 0 {
		own := &latest{op: c.op}
		if c.live > 0 {
			own.id = c.id
		}
		c.j.mu.Lock()
		c.j.own = own
		c.j.mu.Unlock()
	}
	if !c.begun {
		return
	}
	c.begun = false
	if c.live > 0 {
		c.pending = append(c.pending, encode(&line{Done: true, Bytes: c.bytes})...)
		c.write()
	}
	errs := []error{c.record.Close(), c.dirFile.Close(), c.dir.Close()}
	if err := errors.Join(errs...); err != nil {
		c.fail(err)
	}
	if c.live == 0 {
		c.j.discard(c.id)
	}
	c.unlock()
	if c.live > 0 {
		c.j.grown(c.id, c.bytes)
	}
}

// begin makes the change's directory and record. The caller holds c.mu.
func (c *Change) begin() bool {
	if c.begun || c.broken {
		return !c.broken
	}
	if c.j.use(true) != nil {
		c.broken = true
		return false
	}
	err := c.make()
	if err != nil {
		c.fail(err)
	}
	return err == nil
}

func (c *Change) make() (err error) {
	const attempts = 3 // against a server that looks at the lock just now
	for range attempts {
		c.id = c.j.newID()
		if c.unlock, err = c.j.lock(c.id); err == nil {
			break
		}
	}
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			c.j.discard(c.id)
			c.unlock()
		}
	}()
	if err := c.j.changes.Mkdir(c.id, 0o700); err != nil {
		return err
	}
	if c.dir, err = c.j.changes.OpenRoot(c.id); err != nil {
		return err
	}
	if c.dirFile, err = c.dir.Open("."); err != nil {
		c.dir.Close()
		return err
	}
	if c.record, err = c.dir.OpenFile(recordName, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600); err != nil {
		c.dirFile.Close()
		c.dir.Close()
		return err
	}
	c.pending = encode(&line{Op: c.op, Time: time.Now().UnixNano(), Of: c.of})
	c.begun = true
	return nil
}

// fail gives up keeping anything more. The caller holds c.mu.
func (c *Change) fail(err error) {
	c.broken = true
	c.j.unusable(err)
}

// write writes the pending lines. The caller holds c.mu.
func (c *Change) write() {
	if len(c.pending) == 0 || c.broken {
		return
	}
	if _, err := c.record.Write(c.pending); err != nil {
		c.fail(err)
	}
	c.pending = c.pending[:0]
}

// flush makes durable what was kept.
func (c *Change) flush() {
	c.flushing.Lock()
	defer c.flushing.Unlock()
	c.mu.Lock()
	if c.flushed == c.kept || c.broken {
		c.mu.Unlock()
		return
	}
	c.write()
	upTo, files := c.kept, c.unsynced
	c.unsynced = nil
	c.mu.Unlock()

	err := c.sync(files)

	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.fail(err)
		return
	}
	c.flushed = upTo
}

// syncers is how many files are flushed at once: file systems flush files
// together that are waited for together.
const syncers = 16

// sync flushes the copies called files, the record, and the directories that
// name them.
func (c *Change) sync(files []string) error {
	g := parallel.New()
	g.SetLimit(syncers)
	for _, name := range files {
		g.Go(func() error {
			f, err := c.dir.Open(name)
			if err != nil {
				return err
			}
			defer f.Close()
			return f.Sync()
		})
	}
	err := errors.Join(g.Wait(), c.record.Sync(), atomicfile.Sync(c.dir))
	if err == nil && !c.directorySaved {
		err = atomicfile.Sync(c.j.changes)
		c.directorySaved = true
	}
	return err
}

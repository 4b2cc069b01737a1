package journal

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/crew"
	"github.com/conduit-mcp/conduit-mcp/internal/etag"
	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
	"github.com/conduit-mcp/conduit-mcp/internal/walk"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
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

// A Part is what one entry of a call changes. It is kept whole or not at all,
// and told so in the entry's result. It is a [filetree.Keeper].
type Part struct {
	c *Change
	n int

	// Guarded by c.mu.
	bytes   int64
	blobs   []string
	void    bool
	touched int // steps, kept or not
	live    int // steps recorded
}

// Part begins another part of c.
func (c *Change) Part() *Part {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.parts++
	return &Part{c: c, n: c.parts}
}

// A Mark is what a result says of the journal. Results embed it.
type Mark struct {
	ChangeID string `json:"change_id,omitempty"` // what edit.undo takes to undo it
	Undo     *bool  `json:"undo,omitempty"`      // false where it cannot be undone
}

// Mark tells whether what p changed can be undone. It is empty where p changed
// nothing or the journal is switched off.
func (p *Part) Mark() Mark {
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	switch {
	case p.c.j.off || p.touched == 0:
		return Mark{}
	case p.void || p.c.broken || p.live == 0:
		return Mark{Undo: new(bool)}
	}
	return Mark{ChangeID: p.c.id}
}

// Done ends the change.
func (c *Change) Done() {
	c.mu.Lock()
	defer c.mu.Unlock()
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
	var g crew.Group
	slots := make(chan struct{}, syncers)
	for _, name := range files {
		slots <- struct{}{}
		g.Go(func() error {
			defer func() { <-slots }()
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

// Keep keeps what at is now; see [atomicfile.Keeper].
func (p *Part) Keep(ctx context.Context, dir *os.File, at place.Place, s atomicfile.Step) {
	c := p.c
	if c.j.off {
		return
	}
	i, err := fileinfo.At(at.Root, dir, at.Name, at.Name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.spoil()
		return
	}
	now := nothing
	if err == nil {
		now = stateOf(i)
	}
	need, first := p.needed(at.Abs, now, s)
	if !need {
		return
	}
	if at.Guard != nil && at.Guard.Denied(at.Abs) {
		p.spoil()
		return
	}
	if now.Kind == directory {
		p.keepTree(ctx, dir, at, now)
		return
	}
	p.keepOne(ctx, dir, at, now, i.Links, s, first)
}

// needed reports whether what is now at path is to be kept before s. Where only
// the size of an earlier state was kept, first is that state.
func (p *Part) needed(path string, now state, s atomicfile.Step) (need bool, first *state) {
	c := p.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.void || c.broken {
		return false, nil
	}
	k := c.known[path]
	switch {
	case k == nil:
		return now.Kind != absent, nil
	case k.left == nil: // kept, for a step that has not come yet
		return !k.is.untouched(now) || k.step != s, nil
	case !k.left.untouched(now): // others have changed it meanwhile
		return true, nil
	case k.had.Cut && k.had.Blob == "" && s != atomicfile.Extended:
		return true, &k.had
	}
	return false, nil // what is there is our own
}

// keepOne keeps a file or link, or that there is nothing.
func (p *Part) keepOne(ctx context.Context, dir *os.File, at place.Place, now state, links uint64, s atomicfile.Step, first *state) bool {
	var err error
	switch {
	case now.Kind == absent:
	case now.Kind == link:
		var target string
		target, err = at.Root.Readlink(at.Name)
		now.Text = text(target)
	case now.Kind != file:
		err = fs.ErrInvalid
	case s == atomicfile.Extended:
		now.Cut = true
	default:
		now, err = p.keepFile(ctx, dir, at, now, s == atomicfile.Replaced && links == 1)
	}
	if err != nil {
		p.spoil()
		return false
	}
	had := now
	if first != nil {
		had = *first
		had.Blob = now.Blob
	}
	return p.had(at.Abs, had, now, s)
}

// had records what was kept of path, which now is what is says.
func (p *Part) had(path string, had, is state, s atomicfile.Step) bool {
	c := p.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.void || !c.begin() {
		return false
	}
	c.pending = append(c.pending, encode(&line{Part: p.n, Path: text(path), Had: &had})...)
	c.kept++
	c.known[path] = &knowledge{had: had, is: is, step: s}
	return true
}

// reserve counts size bytes and reports whether they may be kept.
func (p *Part) reserve(size int64) bool {
	c := p.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.void || p.bytes+size > c.j.max/10 || c.bytes+size > c.j.max || !c.begin() {
		return false
	}
	p.bytes += size
	c.bytes += size
	return true
}

// blobName returns a new name for something kept.
func (p *Part) blobName(sum string) string {
	c := p.c
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names++
	name := sum + "." + strconv.Itoa(c.names)
	p.blobs = append(p.blobs, name)
	return name
}

var (
	errLarge   = errors.New("too large to be kept")
	errChanged = errors.New("changed while it was kept")
)

// keepFile keeps the content of a file, by a further name where that will do.
func (p *Part) keepFile(ctx context.Context, dir *os.File, at place.Place, now state, linked bool) (state, error) {
	if !p.reserve(now.Size) {
		return now, errLarge
	}
	const attempts = 3 // against one who writes to it meanwhile
	for range attempts {
		f, _, err := at.OpenFileOnly()
		if err != nil {
			return now, err
		}
		had, err := p.keepOpen(ctx, dir, at, f, linked)
		f.Close()
		if err == nil && had.Size > now.Size && !p.reserve(had.Size-now.Size) {
			return now, errLarge
		}
		if !errors.Is(err, errChanged) {
			return had, err
		}
	}
	return now, errChanged
}

func (p *Part) keepOpen(ctx context.Context, dir *os.File, at place.Place, f *os.File, linked bool) (had state, err error) {
	i, err := fileinfo.OfFile(f)
	if err != nil {
		return had, err
	}
	had = stateOf(i)
	if had.Sum, err = etag.Sum(ctx, io.LimitReader(f, had.Size+1)); err != nil {
		return had, err
	}
	had.Blob = p.blobName(hex.EncodeToString(had.Sum))
	if !linked || p.c.j.unlinked || atomicfile.LinkAt(dir, at.Name, p.c.dirFile, had.Blob) != nil {
		if err := p.copy(ctx, f, had, i); err != nil {
			return had, err
		}
	} else if fi, err := p.c.dir.Lstat(had.Blob); err != nil || !had.untouched(stateOf(fileinfo.From(fi))) {
		p.c.dir.Remove(had.Blob) // another file by now
		return had, errChanged
	}
	if i, err = fileinfo.OfFile(f); err != nil || !had.untouched(stateOf(i)) {
		p.c.dir.Remove(had.Blob)
		return had, errChanged
	}
	return had, nil
}

// copy copies the open file f, which is as had and i say, to the journal.
func (p *Part) copy(ctx context.Context, f *os.File, had state, i fileinfo.Info) (err error) {
	dir := p.c.dir
	to, err := dir.OpenFile(had.Blob, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := to.Close(); err == nil {
			err = cerr
		}
		if err == nil {
			err = dir.Chtimes(had.Blob, time.Time{}, i.Modified)
		}
		if err != nil {
			dir.Remove(had.Blob)
		}
	}()
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	const stretch = 32 << 20 // copied between two looks at ctx, by the kernel where it can
	for left := had.Size; left > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := io.CopyN(to, f, min(left, stretch))
		if err != nil {
			return errChanged
		}
		left -= n
	}
	atomicfile.CopyOwner(to, f)
	if err := to.Chmod(i.Mode & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)); err != nil {
		return err
	}
	p.c.mu.Lock()
	p.c.unsynced = append(p.c.unsynced, had.Blob)
	p.c.mu.Unlock()
	return nil
}

// keepTree keeps a directory and all that is in it.
func (p *Part) keepTree(ctx context.Context, dir *os.File, at place.Place, now state) {
	top, err := walk.Open(at)
	if err != nil {
		p.spoil()
		return
	}
	total, err := weigh(ctx, top, 0)
	top.Close()
	p.c.mu.Lock()
	fits := p.bytes+total <= p.c.j.max/10
	p.c.mu.Unlock()
	if err != nil || !fits {
		p.spoil()
		return
	}
	if top, err = walk.OpenRoot(at); err != nil {
		p.spoil()
		return
	}
	defer top.Close()
	k := keeping{p: p, slots: make(chan struct{}, runtime.GOMAXPROCS(0))}
	k.directory(ctx, top, now)
	if k.g.Wait() != nil || ctx.Err() != nil {
		p.spoil()
	}
}

// maxLevels is how deep a tree may be nested.
const maxLevels = 1000

var errUnkept = errors.New("cannot be kept")

// weigh sums the sizes of the files below dir.
func weigh(ctx context.Context, dir *walk.Dir, depth int) (int64, error) {
	entries, denied, err := dir.EntriesCounted()
	if err != nil {
		return 0, err
	}
	if denied > 0 || depth > maxLevels {
		return 0, errUnkept
	}
	var total int64
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		switch {
		case e.IsDir():
			sub, err := dir.Sub(e.Name)
			if err != nil {
				return 0, err
			}
			n, err := weigh(ctx, sub, depth+1)
			sub.Close()
			if err != nil {
				return 0, err
			}
			total += n
		case e.Type.IsRegular():
			i, err := dir.Info(e.Name)
			if err != nil {
				return 0, err
			}
			total += i.Size
		case !e.IsLink():
			return 0, errUnkept
		}
	}
	return total, nil
}

// A keeping is one run of keepTree.
type keeping struct {
	p     *Part
	g     crew.Group
	slots chan struct{} // one for every goroutine at work
}

const filesAtATime = 64

// directory keeps dir, which is as now says, and what is in it.
func (k *keeping) directory(ctx context.Context, dir *walk.Dir, now state) {
	if !k.p.had(dir.Place().Abs, now, now, atomicfile.Replaced) {
		return
	}
	entries, err := dir.Entries()
	if err != nil {
		k.p.spoil()
		return
	}
	var files []string
	for _, e := range entries {
		if ctx.Err() != nil || k.g.Err() != nil {
			return
		}
		if !e.IsDir() {
			files = append(files, e.Name)
			continue
		}
		sub, err := dir.Sub(e.Name)
		if err != nil {
			k.p.spoil()
			return
		}
		i, err := fileinfo.OfFile(sub.File())
		if err == nil {
			k.directory(ctx, sub, stateOf(i))
		}
		sub.Close()
	}
	for some := range slices.Chunk(files, filesAtATime) {
		dir.Retain()
		k.slots <- struct{}{}
		k.g.Go(func() error {
			defer func() { <-k.slots }()
			defer dir.Close()
			for _, name := range some {
				if ctx.Err() != nil || !k.one(ctx, dir, name) {
					return errUnkept
				}
			}
			return nil
		})
	}
}

func (k *keeping) one(ctx context.Context, dir *walk.Dir, name string) bool {
	i, err := dir.Info(name)
	if err != nil {
		return false
	}
	at := dir.Place().Child(name)
	at.Root, at.Name = dir.Root(), name
	return k.p.keepOne(ctx, dir.File(), at, stateOf(i), i.Links, atomicfile.Replaced, nil)
}

// spoil gives up the part: it will not be undone.
func (p *Part) spoil() {
	c := p.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.void {
		return
	}
	p.void = true
	c.bytes -= p.bytes
	c.live -= p.live
	if !c.begun {
		return
	}
	c.pending = append(c.pending, encode(&line{Part: p.n, Void: true})...)
	c.write() // before what it speaks of is gone
	for _, name := range p.blobs {
		c.dir.Remove(name)
	}
	p.blobs = nil
}

// Leave records what the next step leaves; see [atomicfile.Keeper].
func (p *Part) Leave(abs string, left *fileinfo.Info, sum []byte) (cancel func()) {
	is := nothing
	if left != nil {
		is = stateOf(*left)
		is.Sum = sum
		if is.Kind == directory && sum != nil {
			is.Kind = tree
		}
	}
	return p.step(&line{Path: text(abs), Left: &is})
}

// Move records that the next step moves from to to; see [filetree.Keeper].
func (p *Part) Move(from, to string, moved fileinfo.Info) (cancel func()) {
	is := stateOf(moved)
	return p.step(&line{Path: text(from), To: text(to), Left: &is})
}

// step records l once what was kept is durable.
func (p *Part) step(l *line) (cancel func()) {
	c := p.c
	if c.j.off {
		return func() {}
	}
	c.flush()
	c.mu.Lock()
	defer c.mu.Unlock()
	p.touched++
	if p.void || !c.begin() {
		return p.uncount
	}
	l.Part = p.n
	c.pending = append(c.pending, encode(l)...)
	c.write()
	p.live++
	c.live++
	at := string(l.Path)
	forget := func() {}
	if l.To != "" {
		delete(c.known, at)
		delete(c.known, string(l.To))
		at = string(l.To)
	} else {
		k := c.known[at]
		if k == nil {
			k = &knowledge{had: nothing}
			c.known[at] = k
		}
		before := k.left
		k.left = l.Left
		forget = func() { k.left = before }
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		p.touched--
		if p.void || c.broken || !c.begun {
			return
		}
		c.pending = append(c.pending, encode(&line{Part: p.n, Path: text(at), Cancel: true})...)
		c.write()
		p.live--
		c.live--
		forget()
	}
}

// uncount takes back a step that was not recorded.
func (p *Part) uncount() {
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	p.touched--
}

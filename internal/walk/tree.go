package walk

import (
	"cmp"
	"context"
	"runtime"
	"strings"
	"sync"

	"github.com/conduit-mcp/conduit-mcp/internal/ignore"
	"github.com/conduit-mcp/conduit-mcp/internal/panics"
	"github.com/conduit-mcp/conduit-mcp/internal/parallel"
)

// TreeOptions say which part of a tree is walked.
type TreeOptions struct {
	Depth     int    // levels of directories below the top that are entered; 0 means the top's own entries only
	GitIgnore bool   // leave out what .gitignore files name, and .git
	Skip      string // name of directories that are left out
	After     string // go on after the entry with this relative path; empty starts at the beginning
}

// A Node is an entry met on a walk.
type Node struct {
	Entry
	Dir *Dir // the directory that holds it; open while the node is evaluated

	above string // path of Dir below the top, with a slash at its end unless it is the top
}

// NodeAt returns the entry e of d, which is the top of a walk.
func NodeAt(d *Dir, e Entry) Node { return Node{Entry: e, Dir: d} }

// Rel is the slash-separated path below the top.
func (n Node) Rel() string { return n.above + n.Name }

// A TreeReport counts what a walk passed without looking inside, up to where it
// ended.
type TreeReport struct {
	Unreadable int // directories that could not be read
	Deep       int // directories below TreeOptions.Depth
}

const (
	maxNodes   = 64  // of a segment
	maxAhead   = 512 // segments that are done while an earlier one is not
	maxWorkers = 16
)

// A segment is a part of a walk: entries of one directory that follow each
// other, and what is below the last of them where that is entered.
type segment[R any] struct {
	next    *segment[R] // in walking order
	dir     *Dir
	above   string // as in Node
	level   int    // of dir: 0 for the top
	rules   *ignore.Stack
	entries []Entry

	enter  bool   // the last entry is a directory that is entered
	passed bool   // the last entry was emitted by an earlier walk: only what is below counts
	after  string // of what is below, up to here has been emitted too

	taken, done bool
	results     []R // of the entries evaluated
	unreadable  bool
}

// Tree walks what is below top in the order of [ComparePaths]. It calls eval
// for every entry, many at a time, and emit with the results one by one, in
// order, until emit returns false. Links are not followed. Where ctx ends, what
// was evaluated by then is still emitted, and its error returned. The caller
// closes top.
//
// Directories are read and entries evaluated by as many goroutines as there are
// processors. Each takes what comes first in the order, so that what waits to be
// emitted, and the directories held open for it, stay few however large the
// tree is.
func Tree[R any](ctx context.Context, top *Dir, o TreeOptions, eval func(context.Context, Node) R, emit func(R) bool) (TreeReport, error) {
	whole := ctx
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	w := &walker[R]{ctx: ctx, stop: stop, o: o, eval: eval, emit: emit}
	w.change.L = &w.mu
	var rules *ignore.Stack
	if o.GitIgnore {
		rules = ignore.Above(top.Place()).Enter(top, "")
	}
	found, err := w.read(top, "", 0, o.After, rules)
	if err != nil {
		return w.report, err
	}
	w.put(nil, found)
	group := parallel.New()
	for range min(runtime.GOMAXPROCS(0), maxWorkers) - 1 {
		group.Go(w.work)
	}
	err = panics.Try(w.work)
	err = cmp.Or(group.Wait(), err)
	w.finish(err == nil)
	if err == nil && !w.ended {
		err = whole.Err() // the last segments may be unfinished
	}
	return w.report, err
}

type walker[R any] struct {
	ctx  context.Context
	stop context.CancelFunc
	o    TreeOptions
	eval func(context.Context, Node) R
	emit func(R) bool

	mu       sync.Mutex
	change   sync.Cond   // there is something to take, or nothing will come any more
	first    *segment[R] // the first that is not emitted
	untaken  *segment[R] // none before it waits to be taken
	ahead    int         // done, not emitted
	emitting bool        // somebody emits what is first
	ended    bool        // emit wants no more
	waiting  int         // who waits for a change
	failed   bool        // a worker gave up

	report TreeReport
}

// work takes segments until none is left.
func (w *walker[R]) work() (err error) {
	defer func() {
		if r := recover(); r != nil {
			w.mu.Lock()
			w.failed = true
			w.wake()
			w.mu.Unlock()
			panic(r)
		}
	}()
	for s := w.take(nil, nil); s != nil; {
		below := w.evaluate(s)
		s = w.take(s, below)
	}
	return nil
}

// take notes that s, unless it is nil, is done and that below follows it, emits
// what can be, and returns what is to be done next, nil at the end.
func (w *walker[R]) take(s, below *segment[R]) *segment[R] {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s != nil {
		s.done = true
		w.ahead++
		w.put(s, below)
		w.deliver()
	}
	for {
		if w.failed || w.ctx.Err() != nil || w.first == nil {
			w.wake()
			return nil
		}
		for w.untaken != nil && w.untaken.taken {
			w.untaken = w.untaken.next
		}
		// Whoever is far ahead waits, but for what all wait for.
		if n := w.untaken; n != nil && (w.ahead < maxAhead || n == w.first) {
			n.taken = true
			w.untaken = n.next
			return n
		}
		w.waiting++
		w.change.Wait()
		w.waiting--
	}
}

// put has the segments from below on follow s, or come first where s is nil.
func (w *walker[R]) put(s, below *segment[R]) {
	if below == nil {
		return
	}
	last := below
	for last.next != nil {
		last = last.next
	}
	if s == nil {
		w.first = below
	} else {
		last.next, s.next = s.next, below
	}
	w.untaken = w.first
	w.wake()
}

func (w *walker[R]) wake() {
	if w.waiting > 0 {
		w.change.Broadcast()
	}
}

// deliver emits what is done, from the first on. Only one does so at a time.
func (w *walker[R]) deliver() {
	if w.emitting {
		return
	}
	w.emitting = true
	for w.first != nil && w.first.done && !w.ended {
		s := w.first
		more := w.unlocked(func() bool { return w.send(s) })
		w.first = s.next
		w.ahead--
		if !more {
			w.ended = true
			w.stop()
		}
		w.wake()
	}
	w.emitting = false
}

// unlocked calls f without the lock.
func (w *walker[R]) unlocked(f func() bool) bool {
	w.mu.Unlock()
	defer w.mu.Lock()
	return f()
}

// send emits the results of s and reports whether more are wanted.
func (w *walker[R]) send(s *segment[R]) bool {
	for i, r := range s.results {
		if s.entries[i].IsDir() && !(s.enter && i == len(s.entries)-1) {
			w.report.Deep++
		}
		if !w.emit(r) {
			return false
		}
	}
	if s.unreadable {
		w.report.Unreadable++
	}
	return true
}

// finish ends a walk that was cut short: of what is left, that which was
// evaluated is emitted where deliver says so, and all directories are closed.
func (w *walker[R]) finish(deliver bool) {
	for s := w.first; s != nil; s = s.next {
		if deliver && !w.ended {
			w.ended = !w.send(s)
		}
		if !s.taken {
			s.dir.Close()
		}
	}
}

// evaluate fills in the results of s and returns what is below it.
func (w *walker[R]) evaluate(s *segment[R]) (below *segment[R]) {
	defer s.dir.Close()
	evaluated := s.entries
	if s.passed {
		evaluated = evaluated[:len(evaluated)-1]
	}
	s.results = make([]R, 0, len(evaluated))
	for _, e := range evaluated {
		if w.ctx.Err() != nil {
			return nil
		}
		s.results = append(s.results, w.eval(w.ctx, Node{e, s.dir, s.above}))
	}
	if !s.enter || w.ctx.Err() != nil {
		return nil
	}
	name := s.entries[len(s.entries)-1].Name
	sub, err := s.dir.Sub(name)
	if err != nil {
		s.unreadable = true
		return nil
	}
	defer sub.Close()
	rules := s.rules
	if w.o.GitIgnore {
		rules = rules.Enter(sub, s.above+name)
	}
	below, err = w.read(sub, s.above+name+"/", s.level+1, s.after, rules)
	s.unreadable = err != nil && w.ctx.Err() == nil
	return below
}

// read returns the segments of d, whose path below the top is above. Of its
// entries those up to and including the path after, relative to d, are passed
// over.
func (w *walker[R]) read(d *Dir, above string, level int, after string, rules *ignore.Stack) (first *segment[R], err error) {
	list, _, err := d.entries(w.ctx)
	if err != nil {
		return nil, err
	}
	from, inside, _ := strings.Cut(after, "/")
	var last *segment[R]
	begin, end := 0, 0 // of the next segment; entries left out are moved to its end
	add := func(enter, passed bool) {
		if begin == end {
			return
		}
		d.Retain()
		s := &segment[R]{dir: d, above: above, level: level, rules: rules, entries: list[begin:end:end], enter: enter, passed: passed}
		if passed {
			s.after = inside
		}
		begin = end
		if last == nil {
			first = s
		} else {
			last.next = s
		}
		last = s
	}
	for _, e := range list {
		if e.Name < from {
			continue
		}
		if w.o.GitIgnore && rules.Ignored(above+e.Name, e.IsDir()) || w.o.Skip != "" && w.o.Skip == e.Name && e.IsDir() {
			continue
		}
		passed := e.Name == from
		enter := e.IsDir() && level < w.o.Depth
		if passed && !enter {
			continue
		}
		list[end] = e
		if end++; enter || end-begin == maxNodes {
			add(enter, passed)
		}
	}
	add(false, false)
	return first, nil
}

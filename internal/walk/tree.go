package walk

import (
	"context"
	"runtime"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/internal/crew"
	"github.com/conduit-mcp/conduit-mcp/internal/ignore"
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
	Dir *Dir   // the directory that holds it; open while the node is evaluated
	Rel string // slash-separated path below the top
}

// A TreeReport counts what a walk passed without looking inside, up to where it
// ended.
type TreeReport struct {
	Unreadable int // directories that could not be read
	Deep       int // directories below TreeOptions.Depth
}

// Bounds of a batch. A batch keeps the directories of its nodes open.
const (
	batchNodes = 64
	batchDirs  = 8
	maxWorkers = 16
)

// A step is a node of a walk, or what became of the directory before it.
type step[R any] struct {
	Node
	deep, unreadable bool
	result           R
	evaluated        bool
}

type batch[R any] struct {
	steps []step[R]
	dirs  int
	err   error
	done  chan struct{}
}

// Tree walks what is below top in the order of [ComparePaths]. It calls eval
// for every entry, many at a time, and emit with the results one by one, in
// order, until emit returns false. Links are not followed. Where ctx ends, what
// was evaluated by then is still emitted, and its error returned. The caller
// closes top.
func Tree[R any](ctx context.Context, top *Dir, o TreeOptions, eval func(context.Context, Node) R, emit func(R) bool) (TreeReport, error) {
	whole := ctx
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	workers := min(runtime.GOMAXPROCS(0), maxWorkers)
	w := &walker[R]{o: o, work: make(chan *batch[R], 2*workers), ordered: make(chan *batch[R], 2*workers)}
	var group crew.Group
	group.Go(func() error {
		defer close(w.ordered)
		defer close(w.work)
		return w.run(ctx, top)
	})
	for range workers {
		group.Go(func() error {
			for b := range w.work {
				b.evaluate(ctx, eval)
			}
			return nil
		})
	}
	report, ended, err := consume(w.ordered, emit, stop)
	if werr := group.Wait(); err == nil && !ended {
		err = werr
	}
	if err == nil && !ended {
		err = whole.Err() // the last batches may be unfinished
	}
	return report, err
}

// consume hands the results on in order. Once emit has had enough, the rest is
// only waited for.
func consume[R any](ordered <-chan *batch[R], emit func(R) bool, stop func()) (report TreeReport, ended bool, err error) {
	for b := range ordered {
		<-b.done
		if err == nil {
			err = b.err
		}
		for _, s := range b.steps {
			if ended || err != nil {
				break
			}
			switch {
			case s.unreadable:
				report.Unreadable++
				continue
			case s.deep:
				report.Deep++
			}
			ended = s.evaluated && !emit(s.result)
		}
		if ended || err != nil {
			stop()
		}
	}
	return report, ended, err
}

// evaluate fills in the results of b and lets go of its directories.
func (b *batch[R]) evaluate(ctx context.Context, eval func(context.Context, Node) R) {
	defer close(b.done)
	defer b.release()
	b.err = crew.Safely(func() error {
		for i := range b.steps {
			if s := &b.steps[i]; !s.unreadable && ctx.Err() == nil {
				s.result, s.evaluated = eval(ctx, s.Node), true
			}
		}
		return nil
	})
}

func (b *batch[R]) release() {
	for i := range b.steps {
		if d := b.steps[i].Dir; d != nil {
			d.Close()
		}
	}
}

// A walker reads directories and makes batches of what is in them.
type walker[R any] struct {
	o             TreeOptions
	work, ordered chan *batch[R]
	next          *batch[R]
	last          *Dir
}

func (w *walker[R]) run(ctx context.Context, top *Dir) error {
	defer func() {
		if w.next != nil { // the walk was cut short
			w.next.release()
		}
	}()
	var rules *ignore.Stack
	if w.o.GitIgnore {
		rules = ignore.Above(top.Place()).Enter(top, "")
	}
	if err := w.dir(ctx, top, "", 0, w.o.After, rules); err != nil {
		return err
	}
	return w.flush(ctx)
}

// dir walks d, whose path below the top is rel. Of its entries those up to and
// including the path after, relative to d, are passed over.
func (w *walker[R]) dir(ctx context.Context, d *Dir, rel string, level int, after string, rules *ignore.Stack) error {
	list, err := d.Entries()
	if err != nil {
		if level == 0 {
			return err
		}
		return w.add(ctx, step[R]{unreadable: true})
	}
	from, inside, _ := strings.Cut(after, "/")
	for _, e := range list {
		if e.Name < from {
			continue
		}
		name := e.Name
		if rel != "" {
			name = rel + "/" + e.Name
		}
		if w.o.GitIgnore && rules.Ignored(name, e.IsDir()) || w.o.Skip != "" && w.o.Skip == e.Name && e.IsDir() {
			continue
		}
		passed := e.Name == from
		enter := e.IsDir() && level < w.o.Depth
		if !passed {
			d.Retain()
			if err := w.add(ctx, step[R]{Node: Node{e, d, name}, deep: e.IsDir() && !enter}); err != nil {
				return err
			}
		}
		if !enter {
			continue
		}
		below := ""
		if passed {
			below = inside
		}
		if err := w.enter(ctx, d, e.Name, name, level+1, below, rules); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker[R]) enter(ctx context.Context, d *Dir, name, rel string, level int, after string, rules *ignore.Stack) error {
	sub, err := d.Sub(name)
	if err != nil {
		return w.add(ctx, step[R]{unreadable: true})
	}
	defer sub.Close()
	if w.o.GitIgnore {
		rules = rules.Enter(sub, rel)
	}
	return w.dir(ctx, sub, rel, level, after, rules)
}

func (w *walker[R]) add(ctx context.Context, s step[R]) error {
	if w.next == nil {
		w.next = &batch[R]{done: make(chan struct{})}
		w.last = nil
	}
	b := w.next
	b.steps = append(b.steps, s)
	if s.Dir != w.last {
		w.last = s.Dir
		b.dirs++
	}
	if len(b.steps) < batchNodes && b.dirs < batchDirs {
		return nil
	}
	return w.flush(ctx)
}

// flush hands the batch over, first to who consumes it, so that batches arrive
// there in order. Both channels have the same room.
func (w *walker[R]) flush(ctx context.Context) error {
	if w.next == nil {
		return ctx.Err()
	}
	select {
	case w.ordered <- w.next:
		w.work <- w.next
		w.next = nil
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

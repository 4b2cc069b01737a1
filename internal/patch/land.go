package patch

import (
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/etag"
	"github.com/conduit-mcp/conduit-mcp/internal/filetree"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// Land writes what was planned and leaves each step's ETag, or its Err. What
// belongs together and cannot be written whole is put back. The error is that
// of ctx, and then nothing of the patch that was not complete is left.
// progress, which may be nil, is told of the files written, by several
// goroutines at a time.
//
// Everything that a patch does to the disk is done by the four phases here and
// by what undoes them.
func (p *Plan) Land(ctx context.Context, w *atomicfile.Writer, progress func(done, total int64)) error {
	l := &landing{Plan: p, w: w}
	err := l.phases(ctx, progress)
	if err != nil {
		for _, s := range p.Steps {
			if s.Err == nil {
				s.Err = err
			}
		}
	}
	l.revert(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	return l.tags(ctx)
}

// A landing is a plan being written.
type landing struct {
	*Plan
	w    *atomicfile.Writer
	done []deed
}

// A deed is a change on the disk, and what takes it back.
type deed struct {
	node *node
	undo func(context.Context) error
}

// phases move, write, set modes and delete, each for all nodes whose steps are
// still well.
func (l *landing) phases(ctx context.Context, progress func(done, total int64)) error {
	for _, s := range l.Steps {
		if s.Err == nil && s.moved {
			l.blame(s.at, l.move(ctx, s))
		}
	}
	l.spread()
	if err := l.write(ctx, progress); err != nil {
		return err
	}
	for _, n := range l.order {
		if n.well() && n.x != nil && n.is.exists {
			l.blame(n, l.chmod(n))
		}
	}
	l.spread()
	for _, n := range l.order {
		if err := ctx.Err(); err != nil {
			return err
		}
		if n.well() && n.was.exists && !n.is.exists && !n.movedAway() {
			l.blame(n, l.remove(ctx, n))
		}
	}
	l.spread()
	return ctx.Err()
}

// blame records that the steps of a node have failed with err, where it is one.
func (l *landing) blame(n *node, err error) {
	if err != nil {
		for _, s := range n.steps {
			if s.Err == nil {
				s.Err = err
			}
		}
	}
}

// well reports whether no step of n has failed.
func (n *node) well() bool {
	return !slices.ContainsFunc(n.steps, func(s *Step) bool { return s.Err != nil })
}

// movedAway reports whether a move has taken n.
func (n *node) movedAway() bool {
	return slices.ContainsFunc(n.steps, func(s *Step) bool { return s.moved && s.from == n })
}

// keep is what keeps what happens to n.
func (n *node) keep() filetree.Keeper { return n.steps[0].Keep }

func (l *landing) did(n *node, undo func(context.Context) error) {
	l.done = append(l.done, deed{n, undo})
}

func (l *landing) move(ctx context.Context, s *Step) error {
	from, to, o := s.from.at, s.at.at, filetree.Options{Create: true, Keep: s.Keep}
	if _, err := filetree.Move(ctx, l.w, from, to, o); err != nil {
		return err
	}
	l.did(s.at, func(ctx context.Context) error {
		_, err := filetree.Move(ctx, l.w, to, from, o)
		return err
	})
	return nil
}

// write writes the files whose text is new.
func (l *landing) write(ctx context.Context, progress func(done, total int64)) error {
	var jobs []*atomicfile.Job
	var nodes, olds []*node
	for _, n := range l.order {
		if !n.well() || n.is.text == nil || n.is.of == n && n.is.text == n.was.text {
			continue
		}
		old := n // the file that is there by now
		if of := n.is.of; of != nil && of != n && of.movedAway() {
			if old = of; n.is.text == of.was.text {
				continue
			}
		}
		j := &atomicfile.Job{Place: n.at, Content: *n.is.text, Mode: atomicfile.Create, Keep: n.keep()}
		if old.was.exists {
			tag, err := l.etag(ctx, old)
			if err != nil {
				l.blame(n, err)
				continue
			}
			j.Mode, j.IfMatch = atomicfile.Overwrite, tag
		}
		jobs, nodes, olds = append(jobs, j), append(nodes, n), append(olds, old)
	}
	l.spread()
	var done atomic.Int64
	err := l.w.Run(ctx, jobs, func() {
		if n := done.Add(1); progress != nil {
			progress(n, int64(len(jobs)))
		}
	})
	for i, n := range nodes {
		switch j := jobs[i]; {
		case j.Err != nil:
			l.blame(n, l.meanwhile(n, j.Err))
		case j.Sum != nil: // else the call was cancelled before
			l.wrote(n, olds[i], j)
		}
	}
	l.spread()
	return err
}

// wrote records a file written.
func (l *landing) wrote(n, old *node, j *atomicfile.Job) {
	n.now = etag.Of(j.Sum)
	if note := strings.TrimSpace(j.Note()); note != "" {
		s := n.steps[len(n.steps)-1]
		s.Notes = append(s.Notes[:len(s.Notes):len(s.Notes)], note)
	}
	l.did(n, func(ctx context.Context) error {
		if !old.was.exists {
			return l.take(ctx, n)
		}
		return l.put(ctx, n, old, atomicfile.Options{IfMatch: n.now, Like: old.info, Keep: n.keep()})
	})
}

// put writes at n what old was.
func (l *landing) put(ctx context.Context, n, old *node, o atomicfile.Options) error {
	text, err := l.text(ctx, &old.was)
	if err == nil {
		_, err = l.w.Write(ctx, n.at, o, func(f *os.File) error {
			_, err := f.WriteString(text)
			return err
		})
	}
	return err
}

// take removes the file of n.
func (l *landing) take(ctx context.Context, n *node) error {
	_, err := filetree.Delete(ctx, l.w, n.at, false, n.keep(), nil)
	return err
}

// chmod makes the file of n executable for those who may read it, or for
// nobody. Systems without that permission are left alone.
func (l *landing) chmod(n *node) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	fi, err := n.at.Stat()
	if err != nil {
		return err
	}
	old := fi.Mode()
	mode := old &^ 0o111
	if *n.x {
		mode = old | old&0o444>>2
	}
	if mode == old {
		return nil
	}
	if err := n.at.Explain(n.at.Root.Chmod(n.at.Name, mode)); err != nil {
		return err
	}
	l.did(n, func(context.Context) error { return n.at.Root.Chmod(n.at.Name, old) })
	return nil
}

// remove removes the file of n if it still is what the patch has seen.
func (l *landing) remove(ctx context.Context, n *node) error {
	f, _, err := n.at.OpenFileOnly()
	if err != nil {
		return err
	}
	sum, err := etag.Sum(ctx, f)
	f.Close()
	if err != nil {
		return err
	}
	tag, err := l.etag(ctx, n)
	if err != nil {
		return err
	}
	if etag.Of(sum) != tag {
		return l.meanwhile(n, fault.New(fault.PreconditionFailed, "%s has changed", n.at.Abs))
	}
	if err := l.take(ctx, n); err != nil {
		return err
	}
	l.did(n, func(ctx context.Context) error {
		return l.put(ctx, n, n, atomicfile.Options{Mode: atomicfile.Create, Like: n.info, Keep: n.keep()})
	})
	return nil
}

// meanwhile words the refusal of a file that has changed since it was read.
func (l *landing) meanwhile(n *node, err error) error {
	if code, _ := fault.Of(err); code == fault.PreconditionFailed && l.o.IfMatch == "" {
		return fault.New(code, "%s was changed by someone else while the patch was applied, and is left as they wrote it; read it again", n.at.Abs)
	}
	return err
}

// revert takes back what was done to nodes whose steps failed, the last first.
func (l *landing) revert(ctx context.Context) {
	for _, d := range slices.Backward(l.done) {
		if d.node.well() {
			continue
		}
		if err := d.undo(ctx); err != nil {
			why := atomicfile.Cause(err)
			for _, s := range d.node.steps {
				code, message := fault.Of(s.Err)
				s.Err = fault.Hide(code, errors.Join(s.Err, err), "%s; and %s could not be put back: %s", message, d.node.at.Abs, why)
			}
		}
	}
}

// tags gives the steps that went well the etags of their files.
func (l *landing) tags(ctx context.Context) error {
	for _, s := range l.Steps {
		if s.Err != nil || s.Action == Delete {
			continue
		}
		n := s.at
		if n.now == "" && n.is.text != nil {
			tag, err := tagOf(ctx, *n.is.text)
			if err != nil {
				return err
			}
			n.now = tag
		}
		s.ETag = n.now
	}
	return nil
}

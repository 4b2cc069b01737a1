package patch

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/etag"
	"github.com/conduit-mcp/conduit-mcp/internal/filetree"
	"github.com/conduit-mcp/conduit-mcp/internal/rewrite"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// Land writes what was planned and leaves each step's ETag, or its Err. What
// belongs together and cannot be written whole is rolled back. The error is that
// of ctx, and then nothing of the patch that was not complete is left.
// progress, which may be nil, is told of the files written, by several
// goroutines at a time.
func (p *Plan) Land(ctx context.Context, w *atomicfile.Writer, progress func(done, total int64)) error {
	l := &landing{Plan: p, tx: rewrite.Tx{Writer: w}}
	err := l.phases(ctx, progress)
	if err != nil {
		for _, s := range p.Steps {
			if s.Err == nil {
				s.Err = err
			}
		}
	}
	l.tx.Rollback(context.WithoutCancel(ctx), func(abs string) bool { return !l.nodes[abs].well() }, func(abs string, err error) {
		why := atomicfile.Cause(err)
		for _, s := range l.nodes[abs].steps {
			code, message := fault.Of(s.Err)
			s.Err = fault.Hide(code, errors.Join(s.Err, err), "%s; and %s could not be put back: %s", message, abs, why)
		}
	})
	if err != nil {
		return err
	}
	return l.tags(ctx)
}

// A landing is a plan being written.
type landing struct {
	*Plan
	tx rewrite.Tx
}

// phases move, write, set modes and delete, each for all nodes whose steps are
// still well.
func (l *landing) phases(ctx context.Context, progress func(done, total int64)) error {
	for _, s := range l.Steps {
		if s.Err == nil && s.moved {
			l.blame(s.at, l.tx.Move(ctx, s.from.at, s.at.at, s.Keep))
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

// old returns what n held.
func (l *landing) old(n *node) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) { return l.text(ctx, &n.was) }
}

// write writes the files whose text is new.
func (l *landing) write(ctx context.Context, progress func(done, total int64)) error {
	var writes []*rewrite.Write
	var nodes []*node
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
		w := &rewrite.Write{Job: atomicfile.Job{Place: n.at, Content: *n.is.text, Mode: atomicfile.Create, Keep: n.keep()}}
		if old.was.exists {
			tag, err := l.etag(ctx, old)
			if err != nil {
				l.blame(n, err)
				continue
			}
			w.Mode, w.IfMatch, w.Old, w.Like = atomicfile.Overwrite, tag, l.old(old), old.info
		}
		writes, nodes = append(writes, w), append(nodes, n)
	}
	l.spread()
	var done atomic.Int64
	err := l.tx.Write(ctx, writes, func() {
		if n := done.Add(1); progress != nil {
			progress(n, int64(len(writes)))
		}
	})
	for i, n := range nodes {
		w := writes[i]
		if w.Err != nil {
			l.blame(n, l.meanwhile(n, w.Err))
			continue
		}
		n.now = etag.Of(w.Sum)
		if note := strings.TrimSpace(w.Note()); note != "" {
			s := n.steps[len(n.steps)-1]
			s.Notes = append(s.Notes[:len(s.Notes):len(s.Notes)], note)
		}
	}
	l.spread()
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
	mode := fi.Mode() &^ 0o111
	if *n.x {
		mode = fi.Mode() | fi.Mode()&0o444>>2
	}
	return l.tx.Chmod(n.at, mode)
}

// remove removes the file of n if it still is what the patch has seen.
func (l *landing) remove(ctx context.Context, n *node) error {
	tag, err := l.etag(ctx, n)
	if err != nil {
		return err
	}
	return l.meanwhile(n, l.tx.Remove(ctx, n.at, tag, n.keep(), l.old(n), n.info))
}

// meanwhile words the refusal of a file that has changed since it was read.
func (l *landing) meanwhile(n *node, err error) error {
	if code, _ := fault.Of(err); err != nil && code == fault.PreconditionFailed && l.o.IfMatch == "" {
		return fault.New(code, "%s was changed by someone else while the patch was applied, and is left as they wrote it; read it again", n.at.Abs)
	}
	return err
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

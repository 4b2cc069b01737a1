package pack

import (
	"context"
	"errors"

	"github.com/conduit-mcp/conduit-mcp/internal/panics"
	"github.com/conduit-mcp/conduit-mcp/internal/parallel"
)

// A line is a production line: tasks are done on several workers at once and
// finished one by one, in the order in which they were put on it.
type line struct {
	ctx           context.Context
	stop          context.CancelFunc
	work, ordered chan *task
	group         *parallel.Group
}

// A task is done on any worker, even once the line has stopped, and then
// finished, unless it has. Either may be nil.
type task struct {
	do, finish func() error
	done       chan struct{}
	err        error
}

// newLine starts a line on which at most room tasks wait at a time. It must be
// closed.
func newLine(ctx context.Context, workers, room int) *line {
	l := &line{work: make(chan *task, room), ordered: make(chan *task, room), group: parallel.New()}
	l.ctx, l.stop = context.WithCancel(ctx)
	for range workers {
		l.group.Go(func() error {
			for t := range l.work {
				if t.do != nil {
					t.err = panics.Try(t.do)
				}
				close(t.done)
			}
			return nil
		})
	}
	l.group.Go(l.finish)
	return l
}

// finish takes the tasks in order. After a failure the rest is only waited for.
func (l *line) finish() error {
	var failed error
	for t := range l.ordered {
		<-t.done
		if failed == nil {
			failed = t.err
		}
		if failed == nil && t.finish != nil {
			failed = panics.Try(t.finish)
		}
		if failed != nil {
			l.stop()
		}
	}
	return failed
}

// put adds a task. Its error says that the line has stopped; why, close tells.
func (l *line) put(do, finish func() error) error {
	t := &task{do: do, finish: finish, done: make(chan struct{})}
	select {
	case l.ordered <- t:
		l.work <- t // it has the same room
		return nil
	case <-l.ctx.Done():
		return l.ctx.Err()
	}
}

// close waits for all tasks. cause is the error with which the one who put them
// ended; that of a task, which came first, takes precedence.
func (l *line) close(cause error) error {
	close(l.work)
	close(l.ordered)
	if cause != nil {
		l.stop()
	}
	err := l.group.Wait()
	l.stop()
	if err == nil || errors.Is(err, context.Canceled) && cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

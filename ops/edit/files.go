package edit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/crew"
	"github.com/conduit-mcp/conduit-mcp/internal/etag"
	"github.com/conduit-mcp/conduit-mcp/internal/journal"
	"github.com/conduit-mcp/conduit-mcp/internal/textedit"
	"github.com/conduit-mcp/conduit-mcp/ops/change"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// Settings are those that all ops of the tool have. Ops embed them.
type Settings struct {
	journal.Settings
	MaxRead int64 `env:"CONDUIT_MAX_FILE_READ_BYTES" default:"52428800" min:"1" doc:"Most bytes read of one file."`
}

// A Task is one file to change. Edit returns the changes of its text and notes
// in r what is to be told of them; no changes leave the file alone.
type Task struct {
	Path    string // as the caller has it
	Place   place.Place
	Err     error  // why it cannot be done; the rest is not looked at then
	IfMatch string // the etag that the file must have, or ""
	Charset string
	Edit    func(ctx context.Context, d *textedit.Doc, r *Result) ([]textedit.Splice, error)
}

// Options say how tasks are carried out.
type Options struct {
	Op           string // id of the op, under which the undo journal has the change
	DryRun       bool   // only tell what would be done
	AllOrNothing bool   // one task that fails stops all
}

// Files changes files, each whole or not at all.
type Files struct {
	*change.Files
	max int64
}

// New returns the Files of a server.
func New(s Settings, env *registry.Env) (*Files, error) {
	shared, err := change.Shared(s.Settings, env)
	return &Files{shared, s.MaxRead}, err
}

// Bounds of what is held in memory before it is written.
const (
	batchTasks = 512
	batchBytes = 64 << 20
	holdFiles  = 4 // times CONDUIT_MAX_FILE_READ_BYTES, for a call that is all or nothing
)

// around is how many lines diffs show around a change.
const around = 3

// A work is a task under way.
type work struct {
	*Task
	*Result
	size    int64 // of the file as it was found
	old     []byte
	content [][]byte // pieces of the new content, most of them of old; nil where nothing is to be written
	was     string   // etag of old
	job     *atomicfile.Job
	part    *journal.Part // keeps what writing destroys
	written bool
	twin    *work // of one that puts back: the one that was written
	err     error
}

// Run carries out tasks and returns a result for each, in order. Two tasks for
// one file both fail.
func (f *Files) Run(ctx context.Context, tasks []Task, o Options) (Results, error) {
	c := f.Journal.Begin(o.Op)
	defer c.Done()
	results := make(Results, len(tasks))
	all := make([]*work, len(tasks))
	first := map[string]int{}
	for i := range tasks {
		w := &work{Task: &tasks[i], Result: &results[i], part: c.Part(), err: tasks[i].Err}
		w.Result.Path = w.Task.Path
		all[i] = w
		if w.err != nil {
			continue
		}
		if k, twice := first[w.Place.Abs]; twice {
			w.err = fault.New(fault.InvalidParameter, "%s is named twice in this call (as %s); name it once, with all that is to be done", w.Task.Path, tasks[k].Path)
			all[k].err = w.err
			continue
		}
		first[w.Place.Abs] = i
		if fi, err := w.Place.Stat(); err == nil {
			w.size = fi.Size()
		}
	}
	var err error
	if o.AllOrNothing {
		err = f.together(ctx, all, o)
	} else {
		var done int64
		for batch := range batches(all) {
			if err = f.batch(ctx, batch, o); err != nil {
				break
			}
			done += int64(len(batch))
			registry.Progress(ctx, done, int64(len(all)), "files edited")
		}
	}
	for _, w := range all {
		w.Settle(w.err)
		if w.err != nil {
			*w.Result = Result{Outcome: w.Outcome, Path: w.Task.Path}
		} else {
			w.Mark = w.part.Mark()
		}
	}
	return results, err
}

// batches divides all into parts that fit into memory together.
func batches(all []*work) func(yield func([]*work) bool) {
	return func(yield func([]*work) bool) {
		for len(all) > 0 {
			n, bytes := 1, all[0].size
			for n < min(len(all), batchTasks) && bytes+all[n].size <= batchBytes {
				bytes += all[n].size
				n++
			}
			if !yield(all[:n]) {
				return
			}
			all = all[n:]
		}
	}
}

// batch carries out some tasks, each by itself.
func (f *Files) batch(ctx context.Context, some []*work, o Options) error {
	ctx, unlock, err := f.lock(ctx, some, o)
	if err != nil {
		return err
	}
	defer unlock()
	if err := f.prepare(ctx, some); err != nil {
		return err
	}
	if o.DryRun {
		f.rehearse(some)
	}
	if !o.DryRun {
		err = f.write(ctx, some)
	}
	for _, w := range some {
		w.old, w.content = nil, nil
	}
	return err
}

// lock keeps others from the files from before they are read until they are
// written.
func (f *Files) lock(ctx context.Context, some []*work, o Options) (context.Context, func(), error) {
	var places []place.Place
	for _, w := range some {
		if w.err == nil && !o.DryRun {
			places = append(places, w.Place)
		}
	}
	return f.Writer.Lock(ctx, places...)
}

// together carries out all tasks or none.
func (f *Files) together(ctx context.Context, all []*work, o Options) error {
	var bytes int64
	for _, w := range all {
		bytes += w.size
	}
	if bytes > holdFiles*f.max {
		return fault.New(fault.LimitExceeded, "with all_or_nothing the files may have %d bytes together (%d times CONDUIT_MAX_FILE_READ_BYTES), and have %d; divide the call, or leave all_or_nothing out", holdFiles*f.max, holdFiles, bytes)
	}
	ctx, unlock, err := f.lock(ctx, all, o)
	if err != nil {
		return err
	}
	defer unlock()
	if err := f.prepare(ctx, all); err != nil {
		return err
	}
	switch {
	case stop(all):
		return nil
	case o.DryRun:
		f.rehearse(all)
		return nil
	}
	err = f.write(ctx, all)
	if err == nil && !anyFailed(all) {
		return nil
	}
	// What was written is put back even where the call was cancelled.
	if rerr := f.putBack(context.WithoutCancel(ctx), all); rerr != nil {
		return rerr
	}
	stop(all)
	return err
}

func anyFailed(all []*work) bool {
	for _, w := range all {
		if w.err != nil {
			return true
		}
	}
	return false
}

// stop fails all tasks where one has failed.
func stop(all []*work) bool {
	if !anyFailed(all) {
		return false
	}
	var culprit *work
	for _, w := range all {
		if w.err != nil && culprit == nil {
			culprit = w
		}
	}
	for _, w := range all {
		if w.err == nil {
			w.err = fault.New(fault.PreconditionFailed, "%s is left as it was, since the call is all_or_nothing and %s failed; see the error there", w.Task.Path, culprit.Task.Path)
		}
	}
	return true
}

// prepare reads files and works out what is to become of them.
func (f *Files) prepare(ctx context.Context, some []*work) error {
	var next atomic.Int64
	var g crew.Group
	for range min(runtime.GOMAXPROCS(0), len(some)) {
		g.Go(func() error {
			for i := next.Add(1) - 1; int(i) < len(some); i = next.Add(1) - 1 {
				if err := ctx.Err(); err != nil {
					return err
				}
				if w := some[i]; w.err == nil {
					w.err = f.edit(ctx, w)
				}
			}
			return ctx.Err() // which a file's own error may have been
		})
	}
	return g.Wait()
}

// edit works out what is to become of one file.
func (f *Files) edit(ctx context.Context, w *work) error {
	var err error
	if w.old, err = f.read(w.Place); err != nil {
		return err
	}
	sum := sha256.Sum256(w.old)
	w.was = etag.Of(sum[:])
	w.ETag = w.was
	if w.IfMatch != "" && w.IfMatch != w.was {
		return fault.New(fault.PreconditionFailed, "%s has changed: its etag is %s, not the if_match given; read it again before editing", w.Place.Abs, w.was)
	}
	doc, err := textedit.Parse(w.old, w.Task.Charset)
	if err != nil {
		return about(w.Task.Path, err)
	}
	if name := doc.Charset(); name != "utf-8" {
		w.Result.Charset = name
	}
	splices, err := w.Edit(ctx, doc, w.Result)
	if err != nil {
		return about(w.Task.Path, err)
	}
	text := doc.Text()
	splices = slices.DeleteFunc(splices, func(p textedit.Splice) bool { return text[p.From:p.To] == p.New })
	if len(splices) == 0 {
		if w.Message == "" {
			w.say("Nothing to change: the file has the new text already.")
		}
		return nil
	}
	if w.content, err = doc.Pieces(splices); err != nil {
		return about(w.Task.Path, err)
	}
	name := nameIn(w.Task.Path, w.Place.Name)
	diff, err := doc.Diff(ctx, splices, "a/"+name, "b/"+name, around)
	if err != nil {
		return err
	}
	w.Diff, w.Added, w.Removed = diff.Text, diff.Added, diff.Removed
	return nil
}

// about puts the name of the file in front of a message.
func about(path string, err error) error {
	if coded := new(fault.Error); errors.As(err, &coded) {
		return fault.Hide(coded.Code, coded, "%s: %s", path, coded.Message)
	}
	return err
}

func (f *Files) read(p place.Place) ([]byte, error) {
	file, fi, err := p.OpenFileOnly()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if fi.Size() > f.max {
		return nil, fault.New(fault.LimitExceeded, "%s has %d bytes, more than CONDUIT_MAX_FILE_READ_BYTES (%d)", p.Abs, fi.Size(), f.max)
	}
	b := make([]byte, fi.Size())
	switch n, err := io.ReadFull(file, b); {
	case err == io.EOF || err == io.ErrUnexpectedEOF:
		return b[:n], nil // it has become shorter; its etag tells whether it goes on changing
	case err != nil:
		return nil, fault.Hide(fault.FSReadFailed, err, "reading %s failed at byte %d", p.Abs, n)
	}
	return b, nil
}

// rehearse tells what a dry run comes to.
func (f *Files) rehearse(some []*work) {
	for _, w := range some {
		if w.err == nil && w.content != nil {
			w.say("Dry run: nothing was written; etag is that of the file as it is.")
		}
	}
}

// streamed is the size from which a file is written from its pieces, so that the
// new content is never held beside the old.
const streamed = 1 << 20

// write is the one place where files are changed. Each must still be what it was
// when it was read.
func (f *Files) write(ctx context.Context, some []*work) error {
	var jobs []*atomicfile.Job
	var large []*work
	for _, w := range some {
		switch {
		case w.err != nil || w.content == nil:
		case len(w.old) >= streamed:
			large = append(large, w)
		default:
			w.job = &atomicfile.Job{Place: w.Place, Content: string(bytes.Join(w.content, nil)), IfMatch: w.was, Keep: w.part}
			jobs = append(jobs, w.job)
		}
	}
	err := f.Writer.Run(ctx, jobs, nil)
	for _, w := range some {
		if w.job != nil {
			f.settle(w, w.job.Report, w.job.Sum, w.job.Err)
		}
	}
	for _, w := range large {
		if err != nil {
			w.err = err
			continue
		}
		f.stream(ctx, w)
	}
	return err
}

// stream writes one large file.
func (f *Files) stream(ctx context.Context, w *work) {
	var sum []byte
	report, err := f.Writer.Write(ctx, w.Place, atomicfile.Options{IfMatch: w.was, Keep: w.part, Sum: &sum}, func(to *os.File) error {
		h := sha256.New()
		for _, p := range w.content {
			for chunk := range slices.Chunk(p, streamed) {
				if err := ctx.Err(); err != nil {
					return err
				}
				h.Write(chunk)
				if _, err := to.Write(chunk); err != nil {
					return err
				}
			}
		}
		sum = h.Sum(nil)
		return nil
	})
	f.settle(w, report, sum, err)
}

// settle notes how writing w ended.
func (f *Files) settle(w *work, report atomicfile.Report, sum []byte, err error) {
	switch code, _ := fault.Of(err); {
	case err == nil && sum != nil:
		w.written = true
		w.ETag = etag.Of(sum)
		w.say(report.Note())
	case err == nil: // the call ended before
		w.err = context.Canceled
	case code == fault.PreconditionFailed:
		w.err = fault.Hide(fault.PreconditionFailed, err, "%s changed while it was edited, and was left as it is; call again", w.Place.Abs)
	default:
		w.err = err
	}
}

// putBack gives the files that were written their old content again.
func (f *Files) putBack(ctx context.Context, all []*work) error {
	var back []*work
	for _, w := range all {
		if w.written {
			now := *w
			now.twin = w
			now.Result = &Result{}
			now.content, now.was, now.job, now.err = [][]byte{w.old}, w.ETag, nil, nil
			back = append(back, &now)
		}
	}
	err := f.write(ctx, back)
	for _, now := range back {
		if now.err != nil {
			now.twin.err = fault.Hide(fault.FSWriteFailed, now.err, "%s was changed before another file failed, and could not be put back; its etag is %s now", now.Task.Path, now.was)
		}
	}
	return err
}

// Count says a number of things in words, such as "3 files".
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

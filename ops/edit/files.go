package edit

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/conduit-mcp/conduit-mcp/internal/journal"
	"github.com/conduit-mcp/conduit-mcp/internal/rewrite"
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
	journal *journal.Journal
	engine  rewrite.Engine
}

// New returns the Files of a server.
func New(s Settings, env *registry.Env) (*Files, error) {
	shared, err := change.Shared(s.Settings, env)
	if err != nil {
		return nil, err
	}
	return &Files{shared.Journal, rewrite.Engine{Writer: shared.Writer, MaxBytes: s.MaxRead}}, nil
}

// around is how many lines diffs show around a change.
const around = 3

// Run carries out tasks and returns a result for each, in order. Two tasks for
// one file both fail.
func (f *Files) Run(ctx context.Context, tasks []Task, o Options) (Results, error) {
	c := f.journal.Begin(o.Op)
	defer c.Done()
	results := make(Results, len(tasks))
	parts := make([]*journal.Part, len(tasks))
	files := make([]*rewrite.File, len(tasks))
	first := map[string]int{}
	for i := range tasks {
		t, r := &tasks[i], &results[i]
		r.Path, parts[i] = t.Path, c.Part()
		files[i] = &rewrite.File{
			Place: t.Place, Name: t.Place.Abs, Path: t.Path, IfMatch: t.IfMatch, Keep: parts[i], Err: t.Err,
			Plan: func(ctx context.Context, old []byte) ([][]byte, error) { return t.plan(ctx, old, r) },
		}
		if t.Err != nil {
			continue
		}
		if k, twice := first[t.Place.Abs]; twice {
			files[i].Err = fault.New(fault.InvalidParameter, "%s is named twice in this call (as %s); name it once, with all that is to be done", t.Path, tasks[k].Path)
			files[k].Err = files[i].Err
			continue
		}
		first[t.Place.Abs] = i
	}
	err := f.engine.Run(ctx, files, rewrite.Options{DryRun: o.DryRun, Together: o.AllOrNothing, Progress: func(done, total int64) {
		registry.Progress(ctx, done, total, "files edited")
	}})
	for i := range results {
		r, file := &results[i], files[i]
		if r.Settle(file.Err); file.Err != nil {
			*r = Result{Outcome: r.Outcome, Path: r.Path}
			continue
		}
		r.ETag, r.Mark = file.ETag, parts[i].Mark()
		if o.DryRun && file.Changed {
			r.say("Dry run: nothing was written; etag is that of the file as it is.")
		}
		r.say(file.Note)
	}
	return results, err
}

// plan works out what is to become of a file.
func (t *Task) plan(ctx context.Context, old []byte, r *Result) ([][]byte, error) {
	doc, err := textedit.Parse(old, t.Charset)
	if err != nil {
		return nil, about(t.Path, err)
	}
	if name := doc.Charset(); name != "utf-8" {
		r.Charset = name
	}
	splices, err := t.Edit(ctx, doc, r)
	if err != nil {
		return nil, about(t.Path, err)
	}
	text := doc.Text()
	splices = slices.DeleteFunc(splices, func(p textedit.Splice) bool { return text[p.From:p.To] == p.New })
	if len(splices) == 0 {
		if r.Message == "" {
			r.say("Nothing to change: the file has the new text already.")
		}
		return nil, nil
	}
	content, err := doc.Pieces(splices)
	if err != nil {
		return nil, about(t.Path, err)
	}
	name := nameIn(t.Path, t.Place.Name)
	diff, err := doc.Diff(ctx, splices, "a/"+name, "b/"+name, around)
	if err != nil {
		return nil, err
	}
	r.Diff, r.Added, r.Removed = diff.Text, diff.Added, diff.Removed
	return content, nil
}

// about puts the name of the file in front of a message.
func about(path string, err error) error {
	if coded := new(fault.Error); errors.As(err, &coded) {
		return fault.Hide(coded.Code, coded, "%s: %s", path, coded.Message)
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

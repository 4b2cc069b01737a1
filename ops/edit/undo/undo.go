// Package undo adds edit.undo: changes taken back.
package undo

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
	"github.com/conduit-mcp/conduit-mcp/internal/journal"
	"github.com/conduit-mcp/conduit-mcp/internal/textdiff"
	"github.com/conduit-mcp/conduit-mcp/ops/change"
	"github.com/conduit-mcp/conduit-mcp/ops/edit"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

func init() { registry.Register(desc, build) }

var desc = registry.Desc{
	Tool:    edit.Tool,
	Name:    "undo",
	Summary: "Undo the last change of edit or write, or change_id; itself undoable.",
	Effect:  registry.Destructive,
	Errors: []fault.Code{
		fault.InvalidParameter, fault.FSNotFound, fault.FSAccessDenied, fault.FSOperation, fault.PreconditionFailed,
		fault.FSPathResolution, fault.FSWriteFailed, fault.FSDeleteFailed,
	},
	Examples: []registry.Example{
		{Title: "The last change", Args: `{}`},
		{Title: "What taking back a certain change would do", Args: `{"change_id": "2q5hdm0v8c1", "dry_run": true}`},
	},
}

type settings struct{ journal.Settings }

type params struct {
	ID     string `json:"change_id,omitempty" jsonschema_description:"From a result; default the last."`
	DryRun bool   `json:"dry_run,omitempty" jsonschema_description:"Write nothing."`
}

type result struct {
	registry.Outcome
	journal.Mark        // of the undo itself
	Undone       string `json:"undone"`
	Files        []file `json:"files"`
	Message      string `json:"message"`
	Diff         string `json:"diff,omitempty"` // of small text files
}

type file struct {
	Path   string `json:"path"`
	From   string `json:"from,omitempty"` // where it had been moved to
	Action string `json:"action"`
	ETag   string `json:"etag,omitempty"`

	shown bool // in the diff
}

// Lean writes the diff, after a line for each file that is not in it. Where
// something was undone, the first line is the change_id that takes it back.
func (r result) Lean(w io.Writer) error {
	var b strings.Builder
	if r.ChangeID != "" {
		fmt.Fprintf(&b, "change_id: %s\n", r.ChangeID)
	}
	for _, f := range r.Files {
		if !f.shown {
			fmt.Fprintf(&b, "%s: %s\n", f.Action, f.Path)
		}
	}
	b.WriteString(r.Diff)
	_, err := io.WriteString(w, b.String())
	return err
}

func build(cfg settings, env *registry.Env) (registry.Func[params, result], error) {
	files, err := change.Shared(cfg.Settings, env)
	return func(ctx context.Context, in params) (result, error) {
		d := diffs{ctx: ctx, shown: map[string]bool{}}
		u := journal.Undoer{Journal: files.Journal, Writer: files.Writer, Resolve: env.Paths.Resolve, Show: d.add}
		r, err := u.Undo(ctx, in.ID, in.DryRun)
		if err != nil {
			return result{}, err
		}
		return report(r, &d, in.DryRun), nil
	}, err
}

func report(r journal.Report, d *diffs, dry bool) result {
	out := result{Mark: r.Mark, Undone: r.Undone, Files: []file{}, Diff: d.text.String()}
	out.Settle(nil)
	for _, f := range r.Files {
		out.Files = append(out.Files, file{Path: f.Path, From: f.From, Action: f.Action, ETag: f.ETag, shown: d.shown[f.Path]})
	}
	verb := "Undid"
	if dry {
		verb = "Dry run: would undo"
	}
	out.Message = fmt.Sprintf("%s the %s of %s.", verb, r.Op, fileinfo.ISO(r.Time))
	for _, f := range r.Files {
		if f.Files > 0 {
			out.Message += fmt.Sprintf(" %s comes with %d files.", f.Path, f.Files)
		}
	}
	if r.Lost {
		out.Message += " Parts of it had not been kept and stay as they are."
	}
	if d.left > 0 {
		out.Message += fmt.Sprintf(" The diff leaves out %d files.", d.left)
	}
	if r.ChangeID != "" {
		out.Message += " Undo that with its change_id; go further back with an earlier one."
	}
	return out
}

// diffs gathers the diff of small text files, up to a size.
type diffs struct {
	ctx   context.Context
	text  strings.Builder
	shown map[string]bool // absolute paths
	left  int             // files without
}

const longestDiff = 20 << 10

func (d *diffs) add(p place.Place, now, then []byte) error {
	if bytes.IndexByte(now, 0) >= 0 || bytes.IndexByte(then, 0) >= 0 {
		return nil
	}
	a, b := "a/"+filepath.ToSlash(p.Name), "b/"+filepath.ToSlash(p.Name)
	if now == nil {
		a = textdiff.DevNull
	}
	if then == nil {
		b = textdiff.DevNull
	}
	text, err := textdiff.Unified(d.ctx, now, then, a, b, textdiff.Options{Context: 3})
	if err != nil {
		return err
	}
	if d.text.Len()+len(text) > longestDiff {
		d.left++
		return nil
	}
	d.text.WriteString(text)
	d.shown[p.Abs] = true
	return nil
}

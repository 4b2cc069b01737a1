// Package patch adds edit.patch: unified diffs applied to files.
package patch

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/internal/journal"
	"github.com/conduit-mcp/conduit-mcp/internal/patch"
	"github.com/conduit-mcp/conduit-mcp/ops/change"
	"github.com/conduit-mcp/conduit-mcp/ops/edit"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func init() { registry.Register(desc, build) }

var desc = registry.Desc{
	Tool:    edit.Tool,
	Name:    "patch",
	Summary: "Apply a unified diff.",
	Effect:  registry.Destructive,
	Errors: []fault.Code{
		fault.InvalidParameter, fault.FSAccessDenied, fault.FSPathResolution, fault.FSBadPathInput, fault.FSNotFound,
		fault.FSIsFile, fault.FSIsDirectory, fault.FSAlreadyExists, fault.FSOperation, fault.FSReadFailed,
		fault.FSWriteFailed, fault.FSDeleteFailed, fault.LimitExceeded, fault.PreconditionFailed,
	},
	Examples: []registry.Example{
		{Title: "Change one file and make another", Args: `{"base_path": ".", "patch": "--- a/main.go\n+++ b/main.go\n@@ -1,3 +1,3 @@\n package main\n \n-var name = \"old\"\n+var name = \"new\"\n--- /dev/null\n+++ b/docs/new.md\n@@ -0,0 +1 @@\n+# New\n"}`},
		{Title: "Look at what a rename would do", Args: `{"base_path": ".", "patch": "diff --git a/a.txt b/b.txt\nrename from a.txt\nrename to b.txt\n", "dry_run": true}`},
	},
}

type params struct {
	Patch    string        `json:"patch" log:"content" jsonschema_description:"Unified diff."`
	Base     registry.Path `json:"base_path,omitempty" jsonschema:"default=./" jsonschema_description:"Names start here."`
	IfMatch  string        `json:"if_match,omitempty" jsonschema_description:"Etag the file must still have."`
	DryRun   bool          `json:"dry_run,omitempty" jsonschema_description:"Write nothing."`
	Together bool          `json:"all_or_nothing,omitempty" jsonschema_description:"One failed file stops all."`
}

type result struct {
	registry.Outcome
	Path    string       `json:"path"`
	Source  string       `json:"source_path,omitempty"` // of a renamed or copied file
	Action  patch.Action `json:"action,omitempty"`
	Hunks   *int         `json:"hunks_applied,omitempty"`
	Added   int          `json:"lines_added,omitempty"`
	Removed int          `json:"lines_removed,omitempty"`
	Diff    string       `json:"diff,omitempty"` // of what was really changed
	ETag    string       `json:"etag,omitempty"`
	journal.Mark
	Message string `json:"message,omitempty"`
}

// Trim leaves out the diff, for which the response has no room. What was done to
// the file is told all the same.
func (r *result) Trim(err error) {
	_, why := fault.Of(err)
	r.Diff = ""
	r.Message = strings.TrimSpace(r.Message + " The diff is left out: " + why + ".")
}

type results []result

// Lean writes the bare diffs. A file that failed is told by its error, and one
// that has no diff by its message.
func (list results) Lean(w io.Writer) error {
	for _, r := range list {
		text := r.Diff
		switch {
		case r.Failed():
			text = fmt.Sprintf("%s: %s\n", r.ErrorCode, r.ErrorMessage)
		case text == "":
			text = fmt.Sprintf("%s: %s\n", r.Path, r.Message)
		}
		if _, err := io.WriteString(w, text); err != nil {
			return err
		}
	}
	return nil
}

func build(cfg edit.Settings, env *registry.Env) (registry.Func[params, results], error) {
	shared, err := change.Shared(cfg.Settings, env)
	return func(ctx context.Context, in params) (results, error) {
		files, err := patch.Parse(in.Patch, patch.StripAuto)
		if err != nil {
			return nil, err
		}
		base, err := in.Base.Place()
		if err != nil {
			return nil, err
		}
		if !in.DryRun {
			var unlock func()
			if ctx, unlock, err = patch.Lock(ctx, shared.Writer, files, base); err != nil {
				return nil, err
			}
			defer unlock()
		}
		plan, err := patch.NewPlan(ctx, files, patch.Options{Base: base, MaxBytes: cfg.MaxRead, IfMatch: in.IfMatch, Together: in.Together})
		if err != nil {
			return nil, err
		}
		c := shared.Journal.Begin(desc.ID())
		defer c.Done()
		parts := make([]*journal.Part, len(plan.Steps))
		if !in.DryRun {
			for i, s := range plan.Steps {
				parts[i] = c.Part()
				s.Keep = parts[i]
			}
			err := plan.Land(ctx, shared.Writer, func(done, total int64) { registry.Progress(ctx, done, total, "") })
			if err != nil {
				return nil, err
			}
		}
		list := make(results, len(plan.Steps))
		for i, s := range plan.Steps {
			if list[i] = report(in, s); parts[i] != nil && s.Err == nil {
				list[i].Mark = parts[i].Mark()
			}
		}
		return list, nil
	}, err
}

func report(in params, s *patch.Step) result {
	r := result{Path: below(in.Base, s.Name())}
	if s.Old != s.Name() && s.Old != "" {
		r.Source = below(in.Base, s.Old)
	}
	if r.Settle(s.Err); s.Err != nil {
		return r
	}
	var notes []string
	if in.DryRun {
		notes = append(notes, "Dry run: nothing was written.")
	}
	if s.Diff == "" {
		notes = append(notes, "Nothing to change: the file has the new text already.")
	}
	r.Action, r.Hunks, r.Added, r.Removed = s.Action, new(len(s.Hunks)), s.Added, s.Removed
	r.Diff, r.ETag, r.Message = s.Diff, s.ETag, strings.Join(append(notes, s.Notes...), " ")
	return r
}

// below is the path of a name in the patch, as other calls would give it.
func below(base registry.Path, name string) string {
	if path.IsAbs(name) { // refused
		return name
	}
	return path.Join(cmp.Or(filepath.ToSlash(base.String()), "."), name)
}

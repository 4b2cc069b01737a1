// Package apply adds edit.apply: edits by old text or line numbers.
package apply

import (
	"context"
	"fmt"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/internal/textedit"
	"github.com/conduit-mcp/conduit-mcp/ops/edit"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func init() { registry.Register(desc, build) }

var desc = registry.Desc{
	Tool:    edit.Tool,
	Name:    "apply",
	Summary: "Change by old text, or by lines as numbered before the call.",
	Effect:  registry.Destructive,
	Errors: []fault.Code{
		fault.InvalidParameter, fault.FSNotFound, fault.FSAccessDenied, fault.FSIsDirectory, fault.FSPathResolution, fault.FSBadPathInput,
		fault.FSOperation, fault.FSReadFailed, fault.FSWriteFailed, fault.PreconditionFailed, fault.LimitExceeded,
	},
	Examples: []registry.Example{
		{Title: "Replace text", Args: `{"changes": [{"path": "main.go", "edits": [{"old_text": "0", "new_text": "1"}]}]}`},
		{Title: "Insert in front of the first line, and only show the diff", Args: `{"changes": [{"path": "notes.md", "edits": [{"insert_at_line": 1, "new_text": "# Notes\n"}]}], "dry_run": true}`},
	},
}

type settings struct{ edit.Settings }

type params struct {
	Changes      []change `json:"changes" jsonschema:"minItems=1" jsonschema_description:"One a file."`
	Match        string   `json:"match,omitempty" jsonschema:"enum=exact,enum=whitespace" jsonschema_description:"Default: exact, else whitespace for several lines."`
	DryRun       bool     `json:"dry_run,omitempty" jsonschema_description:"Write nothing."`
	AllOrNothing bool     `json:"all_or_nothing,omitempty" jsonschema_description:"One failed file stops all."`
}

type change struct {
	Path    registry.Path `json:"path" jsonschema_description:"File."`
	Edits   []item        `json:"edits" jsonschema:"minItems=1" jsonschema_description:"By old_text, start_line or insert_at_line."`
	IfMatch string        `json:"if_match,omitempty" jsonschema_description:"Etag it must have."`
	Charset string        `json:"charset,omitempty" jsonschema_description:"If not UTF-8."`
}

type item struct {
	Old        string  `json:"old_text,omitempty" log:"content" jsonschema_description:"Unique text."`
	New        *string `json:"new_text,omitempty" log:"content" jsonschema_description:"Empty deletes."`
	Occurrence int     `json:"occurrence,omitempty" jsonschema_description:"Which one, from 1."`
	Expect     int     `json:"expect_count,omitempty" jsonschema:"minimum=1" jsonschema_description:"Replace all, so many."`
	First      int     `json:"start_line,omitempty" jsonschema_description:"From 1; -1 is the last."`
	Last       int     `json:"end_line,omitempty" jsonschema_description:"Included."`
	At         int     `json:"insert_at_line,omitempty" jsonschema_description:"Line."`
	Position   string  `json:"position,omitempty" jsonschema:"enum=before,enum=after,default=before"`
}

var matchings = map[string]textedit.Matching{"": textedit.Auto, "exact": textedit.Exact, "whitespace": textedit.Whitespace}

func build(cfg settings, env *registry.Env) (registry.Func[params, edit.Results], error) {
	files, err := edit.New(cfg.Settings, env)
	return func(ctx context.Context, in params) (edit.Results, error) {
		tasks := make([]edit.Task, len(in.Changes))
		for i, c := range in.Changes {
			at, err := c.Path.Place()
			tasks[i] = edit.Task{Path: c.Path.String(), Place: at, Err: err, IfMatch: c.IfMatch, Charset: c.Charset, Edit: c.edit(matchings[in.Match])}
		}
		return files.Run(ctx, tasks, edit.Options{Op: desc.ID(), DryRun: in.DryRun, AllOrNothing: in.AllOrNothing})
	}, err
}

// words are what the parameters are called in errors.
var words = textedit.Vocabulary{Edit: func(i int) string { return fmt.Sprintf("edits[%d]", i) }, Old: "old_text", At: "insert_at_line"}

// check refuses an edit that is none of the three, or more than one.
func (e *item) check(i int) error {
	wrong := func(what string) error { return fault.New(fault.InvalidParameter, "edits[%d]%s", i, what) }
	lines := e.First != 0 || e.Last != 0
	kinds := 0
	for _, is := range []bool{e.Old != "", lines, e.At != 0} {
		if is {
			kinds++
		}
	}
	switch {
	case e.New == nil && e.First == 0:
		return wrong(`.new_text is required; "" deletes old_text`)
	case kinds == 0:
		return wrong(" names no place; give old_text, or start_line and end_line (from 1), or insert_at_line (from 1)")
	case kinds > 1:
		return wrong(" names more than one place; give old_text, or start_line with end_line, or insert_at_line, and use one edit for each")
	case e.Old == "" && (e.Occurrence != 0 || e.Expect != 0):
		return wrong(": occurrence and expect_count belong to old_text; leave them out")
	case e.At == 0 && e.Position == "after":
		return wrong(": position belongs to insert_at_line; leave it out")
	case lines && e.First == 0:
		return wrong(" has an end_line but no start_line; give both (from 1)")
	case e.At != 0 && *e.New == "":
		return wrong(`.new_text is required with insert_at_line; an empty line is "\n"`)
	}
	return nil
}

// edit returns how the change is made.
func (c change) edit(m textedit.Matching) func(context.Context, *textedit.Doc, *edit.Result) ([]textedit.Splice, error) {
	return func(ctx context.Context, d *textedit.Doc, r *edit.Result) ([]textedit.Splice, error) {
		edits := make([]textedit.Edit, len(c.Edits))
		for i, e := range c.Edits {
			if err := e.check(i); err != nil {
				return nil, err
			}
			edits[i] = textedit.Edit{Old: e.Old, Occurrence: e.Occurrence, Expect: e.Expect, First: e.First, Last: e.Last, At: e.At, After: e.Position == "after"}
			if e.New != nil {
				edits[i].New = *e.New
			}
		}
		plan, err := d.Plan(ctx, edits, m)
		if err != nil {
			return nil, words.Word(err)
		}
		r.Edits = len(edits)
		if len(plan.Loose) > 0 {
			r.Matched = "whitespace"
			r.Message = loosely(plan.Loose)
		}
		return plan.Splices, nil
	}
}

// loosely names the edits whose old text was found with other white space.
func loosely(edits []int) string {
	var names []string
	for _, i := range edits[:min(len(edits), 10)] {
		names = append(names, fmt.Sprintf("edits[%d]", i))
	}
	more := ""
	if n := len(edits) - len(names); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return "Found with other white space, and indented as the file is: " + strings.Join(names, ", ") + more + "."
}

package filesystem

import (
	"context"
	"fmt"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/conduit-mcp/conduit-mcp/internal/journal"
	"github.com/conduit-mcp/conduit-mcp/internal/textedit"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func init() { register(diffDesc, buildDiff) }

var diffDesc = registry.Desc{
	Tool:    "apply_diff",
	Summary: "Replace or insert lines by number, each block checked against the lines it names; numbers speak of the file as it is before the call, and each file is changed whole or not at all.",
	Effect:  registry.Destructive,
	Errors:  rewriteErrors,
	Examples: []registry.Example{
		{Title: "Replace the first line", Args: `{"changes": [{"path": "main.txt", "diffs": [{"search": "file 0", "replace": "file 1", "start_line": 1, "end_line": 1}]}]}`},
		{Title: "Insert in front of it", Args: `{"changes": [{"path": "main.txt", "diffs": [{"search": "", "replace": "first", "start_line": 1, "end_line": 0, "operation": "insert"}]}]}`},
	},
}

type diffParams struct {
	Changes []diffChange `json:"changes" jsonschema:"minItems=1" jsonschema_description:"One object a file."`
}

type diffChange struct {
	Path  registry.Path `json:"path" jsonschema_description:"File."`
	Diffs []block       `json:"diffs" jsonschema:"minItems=1" jsonschema_description:"Blocks, in any order."`
}

type block struct {
	Search    string `json:"search" log:"content" jsonschema_description:"The lines as they are; empty to insert."`
	Replace   string `json:"replace" log:"content" jsonschema_description:"The lines to be; empty deletes."`
	Start     int    `json:"start_line" jsonschema:"minimum=1" jsonschema_description:"First line, from 1."`
	End       int    `json:"end_line" jsonschema:"minimum=0" jsonschema_description:"Last line, included; start_line - 1 to insert."`
	Operation string `json:"operation,omitempty" jsonschema:"enum=replace,enum=insert,default=replace" jsonschema_description:"insert: before start_line."`
}

type diffResult struct {
	Path string `json:"path"`
	outcome
	Context string `json:"context,omitempty"` // the lines of the file where a block does not agree
	journal.Mark
}

type diffResults []diffResult

// judged is what diffResults are written as.
type judged struct {
	Success bool         `json:"success"` // of all
	Results []diffResult `json:"results"`
}

// MarshalJSON writes {"success": …, "results": […]}.
func (r diffResults) MarshalJSON() ([]byte, error) {
	all := true
	for _, one := range r {
		all = all && one.Success
	}
	return encoded(judged{all, r})
}

// JSONSchema is that of what MarshalJSON writes.
func (diffResults) JSONSchema() *jsonschema.Schema { return schemaOf[judged]() }

func buildDiff(cfg rewriteSettings, env *registry.Env) (registry.Func[diffParams, diffResults], error) {
	files, engine, err := rewriting(cfg, env)
	return func(ctx context.Context, in diffParams) (diffResults, error) {
		if err := in.unique(); err != nil {
			return nil, err
		}
		c := files.Journal.Begin(diffDesc.ID())
		defer c.Done()
		return registry.Each(ctx, in.Changes, func(ctx context.Context, f diffChange) (diffResult, error) {
			r := diffResult{Path: f.Path.String()}
			part := c.Part()
			_, err := rewritten(ctx, engine, f.Path, part, true, func(old []byte) ([]byte, error) {
				d, err := parsed(f.Path, old)
				if err != nil {
					return nil, err
				}
				edits, err := f.edits(d, &r)
				if err != nil {
					return nil, about(f.Path, err)
				}
				plan, err := d.Plan(ctx, edits, textedit.Exact)
				if err != nil {
					return nil, about(f.Path, blocks.Word(err))
				}
				content, err := d.Apply(plan.Splices)
				if err != nil {
					return nil, about(f.Path, err)
				}
				return content, nil
			})
			r.Mark = part.Mark()
			return r, err
		})
	}, err
}

// unique refuses a call that names a file twice.
func (in diffParams) unique() error {
	known := map[string]int{}
	for i, f := range in.Changes {
		at, err := f.Path.Place()
		if err != nil {
			continue
		}
		if k, twice := known[at.Abs]; twice {
			return fault.New(fault.InvalidParameter, "apply_diff: changes[%d] and changes[%d] name the same file (%s); name it once, with all blocks", k, i, f.Path)
		}
		known[at.Abs] = i
	}
	return nil
}

// blocks are what edits are called in errors.
var blocks = textedit.Vocabulary{Edit: func(i int) string { return fmt.Sprintf("diffs[%d]", i) }, Old: "search", At: "start_line"}

// edits checks the blocks against the file. Where one does not agree r gets the
// lines it names.
func (f diffChange) edits(d *textedit.Doc, r *diffResult) ([]textedit.Edit, error) {
	edits := make([]textedit.Edit, len(f.Diffs))
	for i, b := range f.Diffs {
		wrong := func(format string, args ...any) error {
			return fault.New(fault.InvalidParameter, "diffs[%d]%s", i, fmt.Sprintf(format, args...))
		}
		insert := b.Operation == "insert" || b.End == b.Start-1 && b.Search == ""
		switch {
		case insert && b.End != b.Start-1:
			return nil, wrong(": to insert, end_line must be start_line - 1 (%d), not %d; to replace lines, leave operation out", b.Start-1, b.End)
		case insert && b.Search != "":
			return nil, wrong(".search must be empty to insert; to replace lines, leave operation out and give start_line and end_line of them")
		case insert && b.Replace == "":
			return nil, wrong(`.replace is empty, so there is nothing to insert; an empty line is "\n"`)
		case insert:
			edits[i] = textedit.Edit{At: b.Start, New: b.Replace}
			continue
		case b.End < b.Start:
			return nil, wrong(": end_line %d lies before start_line %d", b.End, b.Start)
		case b.End > d.Lines():
			r.Context = numberedLines(d, d.Lines(), d.Lines())
			return nil, wrong(".end_line is %d, but the lines of the file end at %d; read it again", b.End, d.Lines())
		}
		if have := d.Text()[d.Start(b.Start):d.Start(b.End+1)]; bare(have) != bare(b.Search) {
			r.Context = numberedLines(d, b.Start, b.End)
			return nil, wrong(".search does not agree with the lines from %d to %d, which context shows; read the file again and correct search or the line numbers", b.Start, b.End)
		}
		edits[i] = textedit.Edit{First: b.Start, Last: b.End, New: b.Replace}
	}
	return edits, nil
}

// bare is text without what does not count where a block is checked: white
// space around it, and how lines end.
func bare(text string) string {
	return strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
}

const (
	contextLines = 3  // shown on either side of a block
	contextMost  = 40 // shown at all
)

// numberedLines shows the lines first to last of d and some around them.
func numberedLines(d *textedit.Doc, first, last int) string {
	var b strings.Builder
	from, to := max(1, first-contextLines), min(d.Lines(), last+contextLines)
	for n := from; n <= to; n++ {
		mark := ' '
		if n >= first && n <= last {
			mark = '>'
		}
		if n == from+contextMost {
			b.WriteString("…\n")
			break
		}
		fmt.Fprintf(&b, "%c %d | %s\n", mark, n, clipped(lineOf(d, n)))
	}
	return b.String()
}

package filesystem

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/conduit-mcp/conduit-mcp/internal/journal"
	"github.com/conduit-mcp/conduit-mcp/internal/search"
	"github.com/conduit-mcp/conduit-mcp/internal/textedit"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func init() { register(editDesc, buildEdit) }

var editDesc = registry.Desc{
	Tool:    "edit_file",
	Summary: "Replace, delete or insert blocks of lines in files; all changes of a file speak of it as it is before the call, and are made together or not at all.",
	Effect:  registry.Destructive,
	Errors:  rewriteErrors,
	Examples: []registry.Example{
		{Title: "Insert a line in front of the first", Args: `{"changes": [{"path": "notes.md", "start_line": 1, "replace_content": "# Notes"}]}`},
		{Title: "Look at what replacing a line would do", Args: `{"changes": [{"path": "main.txt", "search_pattern": "file 0", "start_line": 1, "replace_content": "file 1"}], "dry_run": true}`},
	},
}

type editParams struct {
	Changes []editChange `json:"changes" jsonschema:"minItems=1" jsonschema_description:"In any order."`
	DryRun  bool         `json:"dry_run,omitempty" jsonschema_description:"Write nothing."`
	Diff    bool         `json:"output_diff,omitempty" jsonschema:"default=true" jsonschema_description:"Return unified diffs."`
}

type editChange struct {
	Path       registry.Path `json:"path" jsonschema_description:"File."`
	Search     string        `json:"search_pattern,omitempty" log:"content" jsonschema_description:"Whole lines, or an expression; without it replace_content is inserted before start_line."`
	Start      int           `json:"start_line" jsonschema:"minimum=1" jsonschema_description:"Line, from 1, at which the search begins."`
	Replace    *string       `json:"replace_content,omitempty" log:"content" jsonschema_description:"New text; without it the match is deleted. For expressions it may have $1, $&."`
	Regex      bool          `json:"use_regex,omitempty" jsonschema_description:"search_pattern is a JavaScript expression."`
	Loose      bool          `json:"ignore_leading_whitespace,omitempty" jsonschema:"default=true" jsonschema_description:"Indentation need not agree."`
	Indent     bool          `json:"preserve_indentation,omitempty" jsonschema:"default=true" jsonschema_description:"Indent replace_content as the file is."`
	Occurrence int           `json:"match_occurrence,omitempty" jsonschema:"minimum=1,default=1" jsonschema_description:"Which match from start_line on."`
}

type editResult struct {
	Path    string     `json:"path"`
	Status  string     `json:"status"` // success, skipped or failed
	Message string     `json:"message"`
	Diff    string     `json:"diff,omitempty"`
	Code    fault.Code `json:"error_code,omitempty"`
	journal.Mark

	cause error
}

// Settle fills r from err; nil means that the status is known.
func (r *editResult) Settle(err error) {
	if r.cause = err; err != nil {
		r.Status, r.Diff = "failed", ""
		r.Code, r.Message = fault.Of(err)
	}
}

// Failed reports whether the file was left as it was because of an error.
func (r editResult) Failed() bool { return r.cause != nil }

// Cause returns the error that r was settled with, for the log.
func (r editResult) Cause() error { return r.cause }

type editResults []editResult

// MarshalJSON writes {"results": […]}.
func (r editResults) MarshalJSON() ([]byte, error) {
	return encoded(wrapped[editResult]{Results: r})
}

// JSONSchema is that of what MarshalJSON writes.
func (editResults) JSONSchema() *jsonschema.Schema { return schemaOf[wrapped[editResult]]() }

// An edited is a file with its changes.
type edited struct {
	path    registry.Path
	changes []int // indexes into the changes of the call
}

func buildEdit(cfg rewriteSettings, env *registry.Env) (registry.Func[editParams, editResults], error) {
	files, engine, err := rewriting(cfg, env)
	return func(ctx context.Context, in editParams) (editResults, error) {
		matchers, err := in.matchers()
		if err != nil {
			return nil, err
		}
		c := files.Journal.Begin(editDesc.ID())
		defer c.Done()
		return registry.Each(ctx, in.files(), func(ctx context.Context, e edited) (editResult, error) {
			r := editResult{Path: e.path.String(), Status: "success"}
			part := c.Part()
			changed, err := rewritten(ctx, engine, e.path, part, !in.DryRun, func(old []byte) ([]byte, error) {
				d, err := parsed(e.path, old)
				if err != nil {
					return nil, err
				}
				splices, err := in.plan(ctx, d, e, matchers)
				if err != nil {
					return nil, about(e.path, err)
				}
				if in.Diff {
					name := filepath.ToSlash(filepath.Clean(e.path.String()))
					diff, err := d.Diff(ctx, splices, "a/"+name, "b/"+name, 3)
					if err != nil {
						return nil, err
					}
					r.Diff = diff.Text
				}
				content, err := d.Apply(splices)
				if err != nil {
					return nil, about(e.path, err)
				}
				return content, nil
			})
			r.Mark = part.Mark()
			switch {
			case err != nil:
			case !changed:
				r.Status, r.Message, r.Diff = "skipped", "Nothing to change: the file has the new text already.", ""
			case in.DryRun:
				r.Message = "Dry run: nothing was written."
			default:
				r.Message = fmt.Sprintf("Changes made: %d.", len(e.changes))
			}
			return r, err
		})
	}, err
}

// matchers checks the changes and compiles their expressions, by index.
func (in editParams) matchers() (map[int]search.Matcher, error) {
	list := map[int]search.Matcher{}
	for i, c := range in.Changes {
		switch {
		case c.Search == "" && c.Replace == nil:
			return nil, fault.New(fault.InvalidParameter, "edit_file: changes[%d] has neither search_pattern nor replace_content; give what to replace, or what to insert before start_line", i)
		case c.Search == "" && *c.Replace == "":
			return nil, fault.New(fault.InvalidParameter, `edit_file: changes[%d].replace_content is empty, so there is nothing to insert; an empty line is "\n"`, i)
		case c.Search != "" && c.Regex:
			m, err := expression(fmt.Sprintf("edit_file: changes[%d].search_pattern", i), c.Search, false)
			if err != nil {
				return nil, err
			}
			list[i] = m
		}
	}
	return list, nil
}

// files groups the changes by file, in the order in which files are first named.
func (in editParams) files() []edited {
	var list []edited
	known := map[string]int{}
	for i, c := range in.Changes {
		key := c.Path.String()
		if at, err := c.Path.Place(); err == nil {
			key = at.Abs
		}
		k, ok := known[key]
		if !ok {
			k = len(list)
			known[key] = k
			list = append(list, edited{path: c.Path})
		}
		list[k].changes = append(list[k].changes, i)
	}
	return list
}

// A claim is the part of the text that a change speaks of.
type claim struct {
	change, from, to int
}

// plan turns the changes of one file into splices.
func (in editParams) plan(ctx context.Context, d *textedit.Doc, e edited, matchers map[int]search.Matcher) ([]textedit.Splice, error) {
	var splices []textedit.Splice
	var claims []claim
	for _, i := range e.changes {
		var own []textedit.Splice
		var of claim
		var err error
		if m := matchers[i]; m != nil {
			own, of, err = in.Changes[i].byExpression(ctx, d, m)
			err = searched(e.path, err)
		} else {
			own, of, err = in.Changes[i].byLines(ctx, d)
		}
		if err != nil {
			if why, ok := err.(missing); ok {
				err = fault.New(fault.InvalidParameter, "changes[%d]%s", i, why)
			}
			return nil, words(i).Word(err)
		}
		of.change = i
		splices, claims = append(splices, own...), append(claims, of)
	}
	slices.SortStableFunc(claims, func(a, b claim) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	for k := 1; k < len(claims); k++ {
		if a, b := claims[k-1], claims[k]; b.from < a.to {
			return nil, fault.New(fault.InvalidParameter, "changes[%d] and changes[%d] overlap at line %d; join them into one. Every change speaks of the file as it is before the call",
				min(a.change, b.change), max(a.change, b.change), d.Line(b.from))
		}
	}
	return splices, nil
}

// words are what a change and its parameters are called in errors. It is planned
// by itself, as the first of one.
func words(change int) textedit.Vocabulary {
	return textedit.Vocabulary{Edit: func(int) string { return fmt.Sprintf("changes[%d]", change) }, Old: "search_pattern", At: "start_line"}
}

// byExpression replaces or deletes a match of m.
func (c editChange) byExpression(ctx context.Context, d *textedit.Doc, m search.Matcher) ([]textedit.Splice, claim, error) {
	replacement := ""
	if c.Replace != nil {
		replacement = *c.Replace
	}
	var s *textedit.Splice
	found := 0
	if c.Start <= d.Lines() {
		start := d.Start(c.Start)
		err := search.Replacements(ctx, d.Text()[start:], m, replacement, func(from, to int, put string) bool {
			if found++; found == c.Occurrence {
				s = &textedit.Splice{From: start + from, To: start + to, New: put}
			}
			return s == nil
		})
		if err != nil {
			return nil, claim{}, err
		}
	}
	if s == nil {
		return nil, claim{}, c.tooFew(found)
	}
	of := claim{from: s.From, to: s.To}
	if c.Indent {
		s.New = c.inPlace(d, *s)
	}
	s.New = d.Fit(s.From, s.New)
	return []textedit.Splice{*s}, of, nil
}

// inPlace is what s puts, indented as the line is where the match begins. Where
// something else stands in front of the match it is left as it is.
func (c editChange) inPlace(d *textedit.Doc, s textedit.Splice) string {
	begin := strings.LastIndexByte(d.Text()[:s.From], '\n') + 1
	before := d.Text()[begin:s.From]
	if strings.TrimLeft(before, " \t") != "" {
		return s.New
	}
	return strings.TrimPrefix(indented(s.New, indentation(d.Text()[begin:])), before)
}

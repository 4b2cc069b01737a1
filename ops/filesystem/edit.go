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
	Search     string        `json:"search_pattern,omitempty" jsonschema_description:"Whole lines, or an expression; without it replace_content is inserted before start_line."`
	Start      int           `json:"start_line" jsonschema:"minimum=1" jsonschema_description:"Line, from 1, at which the search begins."`
	Replace    *string       `json:"replace_content,omitempty" jsonschema_description:"New text; without it the match is deleted. For expressions it may have $1, $&."`
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

// A missing is what a change has no match for.
type missing string

func (m missing) Error() string { return string(m) }

// byLines replaces, deletes or inserts whole lines.
func (c editChange) byLines(ctx context.Context, d *textedit.Doc) ([]textedit.Splice, claim, error) {
	e := textedit.Edit{}
	if c.Replace != nil {
		e.New = *c.Replace
	}
	var of claim
	if c.Search == "" {
		e.At = c.Start
		if c.Indent {
			e.New = indented(e.New, deeper(d, c.Start))
		}
		at := d.Start(min(c.Start, d.Lines()+1))
		of = claim{from: at, to: at}
	} else {
		first, last, err := c.find(ctx, d)
		if err != nil {
			return nil, of, err
		}
		if c.Indent && e.New != "" && !c.fits(lineOf(d, first)) {
			e.New = d.Reindent(first, last, c.Search, e.New)
		}
		e.First, e.Last = first, last
		of = claim{from: d.Start(first), to: d.Start(last + 1)}
	}
	plan, err := d.Plan(ctx, []textedit.Edit{e}, textedit.Exact)
	return plan.Splices, of, err
}

// lineOf is line n of d without its end.
func lineOf(d *textedit.Doc, n int) string {
	return strings.TrimSuffix(strings.TrimSuffix(d.Text()[d.Start(n):d.Start(n+1)], "\n"), "\r")
}

// deeper is the indentation of line n or of the line before it, whichever has
// more: what is inserted between the head of a block and its first line belongs
// to the block, and so does what comes after its last.
func deeper(d *textedit.Doc, n int) (indent string) {
	for k := max(1, n-1); k <= min(n, d.Lines()); k++ {
		if own := indentation(lineOf(d, k)); len(own) > len(indent) {
			indent = own
		}
	}
	return indent
}

func indentation(line string) string { return line[:len(line)-len(strings.TrimLeft(line, " \t"))] }

// indented puts indent in front of each line of text that is not blank; text
// that begins with an indentation has its own.
func indented(text, indent string) string {
	lines := strings.Split(text, "\n")
	if indent == "" || indentation(text) != "" {
		return text
	}
	for i, l := range lines {
		if strings.TrimSpace(l) != "" {
			lines[i] = indent + l
		}
	}
	return strings.Join(lines, "\n")
}

// fits reports whether the new text is indented as line is, which the pattern is
// not: then it was written for the file as it is.
func (c editChange) fits(line string) bool {
	indent := indentation(line)
	if indent == "" || strings.HasPrefix(c.Search, indent) {
		return false
	}
	for l := range strings.Lines(*c.Replace) {
		if strings.TrimSpace(l) != "" && !strings.HasPrefix(l, indent) {
			return false
		}
	}
	return true
}

// find returns the lines that the pattern agrees with.
func (c editChange) find(ctx context.Context, d *textedit.Doc) (first, last int, err error) {
	agreed := func(line string) string {
		if c.Loose {
			return strings.TrimLeft(line, " \t")
		}
		return line
	}
	want := strings.Split(strings.TrimSuffix(strings.ReplaceAll(c.Search, "\r\n", "\n"), "\n"), "\n")
	for i := range want {
		want[i] = agreed(want[i])
	}
	var have []string
	if c.Start <= d.Lines() {
		for l := range strings.Lines(d.Text()[d.Start(c.Start):]) {
			have = append(have, agreed(strings.TrimSuffix(strings.TrimSuffix(l, "\n"), "\r")))
		}
	}
	found := 0
	for i := 0; i+len(want) <= len(have); i++ {
		if i%1024 == 0 && ctx.Err() != nil {
			return 0, 0, ctx.Err()
		}
		if slices.Equal(have[i:i+len(want)], want) {
			if found++; found == c.Occurrence {
				return c.Start + i, c.Start + i + len(want) - 1, nil
			}
		}
	}
	if found > 0 {
		return 0, 0, c.tooFew(found)
	}
	return 0, 0, c.miss(ctx, d)
}

// tooFew is the error where fewer places are found than match_occurrence says.
func (c editChange) tooFew(found int) error {
	if found == 0 {
		return missing(fmt.Sprintf(".search_pattern has no match from line %d on", c.Start))
	}
	return missing(fmt.Sprintf(".match_occurrence is %d, but the matches of search_pattern from line %d on are no more than %d", c.Occurrence, c.Start, found))
}

// miss says what the file has that is like the pattern.
func (c editChange) miss(ctx context.Context, d *textedit.Doc) error {
	plan, err := d.Plan(ctx, []textedit.Edit{{Old: c.Search, Occurrence: 1}}, textedit.Whitespace)
	if err != nil {
		return err // it shows the nearest lines
	}
	at := d.Line(plan.Splices[0].From)
	switch {
	case at < c.Start:
		return missing(fmt.Sprintf(".search_pattern stands in the file at line %d, but not from start_line %d on", at, c.Start))
	case len(plan.Loose) > 0:
		return missing(fmt.Sprintf(".search_pattern agrees with line %d but for white space that counts; correct it%s", at, map[bool]string{false: ", or leave ignore_leading_whitespace at true"}[c.Loose]))
	}
	return missing(fmt.Sprintf(".search_pattern stands in line %d, but is not the whole line; give whole lines, or an expression with use_regex", at))
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

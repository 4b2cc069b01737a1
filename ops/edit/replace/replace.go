// Package replace adds edit.replace: search and replace in many files.
package replace

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/conduit-mcp/conduit-mcp/internal/search"
	"github.com/conduit-mcp/conduit-mcp/internal/textedit"
	"github.com/conduit-mcp/conduit-mcp/ops/edit"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func init() { registry.Register(desc, build) }

var desc = registry.Desc{
	Tool:    edit.Tool,
	Name:    "replace",
	Summary: "Replace in paths, or below base_path.",
	Effect:  registry.Destructive,
	Errors: []fault.Code{
		fault.InvalidParameter, fault.FSNotFound, fault.FSAccessDenied, fault.FSIsDirectory, fault.FSIsFile, fault.FSPathResolution, fault.FSBadPathInput,
		fault.FSOperation, fault.FSReadFailed, fault.FSWriteFailed, fault.PreconditionFailed, fault.LimitExceeded,
	},
	Examples: []registry.Example{
		{Title: "Rename a word in all Go files", Args: `{"base_path": ".", "glob": "*.go", "pattern": "\\bfoo\\b", "is_regex": true, "replacement": "bar"}`},
		{Title: "A literal text in two files, only to see the diff", Args: `{"paths": ["a.txt", "b.txt"], "pattern": "file", "replacement": "document", "dry_run": true}`},
	},
}

type settings struct {
	edit.Settings
	MaxDepth int           `env:"CONDUIT_MAX_RECURSIVE_DEPTH" default:"10" min:"0" doc:"Levels that list and find descend."`
	Timeout  time.Duration `env:"CONDUIT_FIND_TIMEOUT_MS" default:"60000" min:"1" doc:"Time for one find, in milliseconds; what was found by then is returned."`
}

type params struct {
	Paths        []registry.Path `json:"paths,omitempty"`
	Base         registry.Path   `json:"base_path,omitempty" jsonschema_description:"To search, but for what git ignores."`
	Glob         string          `json:"glob,omitempty" jsonschema_description:"Of files below base_path."`
	Pattern      string          `json:"pattern" log:"content" jsonschema:"minLength=1"`
	Regex        bool            `json:"is_regex,omitempty" jsonschema_description:"JavaScript; replacement may have $1."`
	Case         bool            `json:"case_sensitive,omitempty" jsonschema:"default=true"`
	Replacement  *string         `json:"replacement" log:"content"`
	Max          int             `json:"max_replacements,omitempty" jsonschema:"minimum=1" jsonschema_description:"A file."`
	DryRun       bool            `json:"dry_run,omitempty" jsonschema_description:"Write nothing."`
	AllOrNothing bool            `json:"all_or_nothing,omitempty" jsonschema_description:"One failed file stops all."`
}

// A summary counts what a call came to; it is the details of the REPLACED remark.
type summary struct {
	Searched     int `json:"files_searched"`
	Changed      int `json:"files_changed"`
	Replacements int `json:"replacements"`
}

func build(cfg settings, env *registry.Env) (registry.Func[params, edit.Results], error) {
	files, err := edit.New(cfg.Settings, env)
	return func(ctx context.Context, in params) (edit.Results, error) {
		m, err := in.matcher()
		if err != nil {
			return nil, err
		}
		tasks := make([]edit.Task, len(in.Paths))
		for i, p := range in.Paths {
			at, err := p.Place()
			tasks[i] = edit.Task{Path: p.String(), Place: at, Err: err}
		}
		s := summary{}
		if in.Base.String() != "" {
			h := &fileSearch{params: in, matcher: m, depth: cfg.MaxDepth, timeout: cfg.Timeout, taken: map[string]bool{}}
			for _, t := range tasks {
				h.taken[t.Place.Abs] = true
			}
			found, n, err := h.run(ctx)
			if err != nil {
				return nil, err
			}
			tasks = append(tasks, found...)
			s.Searched = n
		}
		for i := range tasks {
			tasks[i].Edit = in.edit(m)
		}
		results, err := files.Run(ctx, tasks, edit.Options{Op: desc.ID(), DryRun: in.DryRun, AllOrNothing: in.AllOrNothing})
		if err != nil {
			return nil, err
		}
		for i, r := range results {
			if i < len(in.Paths) && r.Replacements != nil {
				s.Searched++
			}
			if !r.Failed() && r.Replacements != nil && *r.Replacements > 0 {
				s.Changed++
				s.Replacements += *r.Replacements
			}
		}
		registry.AddRemark(ctx, "REPLACED", s.message(in.DryRun), s)
		return results, nil
	}, err
}

func (s summary) message(dry bool) string {
	verb := "Made"
	if dry {
		verb = "Would make"
	}
	return fmt.Sprintf("%s %s in %s; %s searched.", verb, edit.Count(s.Replacements, "replacement"), edit.Count(s.Changed, "file"), edit.Count(s.Searched, "file"))
}

func invalid(format string, args ...any) error {
	return fault.New(fault.InvalidParameter, "edit.replace: %s", fmt.Sprintf(format, args...))
}

// matcher checks the parameters and compiles the pattern.
func (in params) matcher() (search.Matcher, error) {
	switch {
	case len(in.Paths) == 0 && in.Base.String() == "":
		return nil, invalid("give paths (files), or base_path (a directory), or both")
	case in.Base.String() == "" && in.Glob != "":
		return nil, invalid("glob needs a base_path, the directory below which files are matched")
	case in.Glob != "" && !doublestar.ValidatePattern(in.Glob):
		return nil, invalid("glob is not a valid glob: check its brackets, braces and backslashes")
	case len(in.Pattern) > search.MaxPattern || len(in.Glob) > search.MaxPattern:
		return nil, invalid("pattern and glob may have at most %d bytes", search.MaxPattern)
	case !in.Regex:
		return search.NewLiteral(in.Pattern, in.Case), nil
	}
	compile := search.NewExpression
	if !in.Case {
		compile = search.NewFolded
	}
	re, err := compile(in.Pattern, true)
	if err != nil {
		return nil, invalid("pattern is not a valid JavaScript regular expression: %v", err)
	}
	return re, nil
}

// edit returns how a file is changed.
func (in params) edit(m search.Matcher) func(context.Context, *textedit.Doc, *edit.Result) ([]textedit.Splice, error) {
	return func(ctx context.Context, d *textedit.Doc, r *edit.Result) ([]textedit.Splice, error) {
		var splices []textedit.Splice
		text := d.Text()
		err := search.Replacements(ctx, text, m, *in.Replacement, func(from, to int, put string) bool {
			// Text that had no line end gets those of the file. A pattern that has
			// some has chosen its own.
			if strings.Contains(put, "\n") && !strings.Contains(text[from:to], "\n") {
				put = d.Fit(from, put)
			}
			splices = append(splices, textedit.Splice{From: from, To: to, New: put})
			return in.Max == 0 || len(splices) < in.Max
		})
		if err == search.ErrGivenUp {
			return nil, fault.New(fault.LimitExceeded, "the expression takes too long; simplify it, avoid nested repetitions")
		}
		if err != nil {
			return nil, err
		}
		n := len(splices)
		if r.Replacements = &n; n == 0 {
			r.Message = "No match."
		}
		return splices, nil
	}
}

package filesystem

import (
	"context"
	"fmt"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/conduit-mcp/conduit-mcp/internal/journal"
	"github.com/conduit-mcp/conduit-mcp/internal/search"
	"github.com/conduit-mcp/conduit-mcp/internal/textedit"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func init() { register(replaceDesc, buildReplace) }

var replaceDesc = registry.Desc{
	Tool:    "replace_content",
	Summary: "Replace every match of texts or expressions in files; the operations are applied to each file in turn, each file whole or not at all.",
	Effect:  registry.Destructive,
	Errors:  rewriteErrors,
	Examples: []registry.Example{
		{Title: "A literal text and an expression", Args: `{"paths": ["a.txt", "b.txt"], "operations": [{"search": "file", "replace": "document"}, {"search": "(\\d+)$", "replace": "#$1", "use_regex": true}]}`},
	},
}

type replaceParams struct {
	Paths      []registry.Path `json:"paths" jsonschema:"minItems=1" jsonschema_description:"Files."`
	Operations []replaceItem   `json:"operations" jsonschema:"minItems=1" jsonschema_description:"In order."`
}

type replaceItem struct {
	Search     string `json:"search" log:"content" jsonschema:"minLength=1" jsonschema_description:"Text, or JavaScript expression in which ^ and $ match at line ends."`
	Replace    string `json:"replace" log:"content" jsonschema_description:"With use_regex it may have $1, $<name>, $&."`
	Regex      bool   `json:"use_regex,omitempty" jsonschema_description:"search is an expression."`
	IgnoreCase bool   `json:"ignore_case,omitempty" jsonschema_description:"Case does not count."`
}

type replaceResult struct {
	File         string `json:"file"`
	Replacements int    `json:"replacements"`
	Modified     bool   `json:"modified"`
	trouble
	journal.Mark
}

type replaceResults []replaceResult

// MarshalJSON writes {"results": […]}.
func (r replaceResults) MarshalJSON() ([]byte, error) {
	return encoded(wrapped[replaceResult]{Results: r})
}

// JSONSchema is that of what MarshalJSON writes.
func (replaceResults) JSONSchema() *jsonschema.Schema { return schemaOf[wrapped[replaceResult]]() }

func buildReplace(cfg rewriteSettings, env *registry.Env) (registry.Func[replaceParams, replaceResults], error) {
	files, engine, err := rewriting(cfg, env)
	return func(ctx context.Context, in replaceParams) (replaceResults, error) {
		matchers := make([]search.Matcher, len(in.Operations))
		for i, op := range in.Operations {
			var err error
			if matchers[i], err = op.matcher(fmt.Sprintf("replace_content: operations[%d].search", i)); err != nil {
				return nil, err
			}
		}
		c := files.Journal.Begin(replaceDesc.ID())
		defer c.Done()
		return registry.Each(ctx, in.Paths, func(ctx context.Context, p registry.Path) (replaceResult, error) {
			r := replaceResult{File: p.String()}
			part := c.Part()
			n := 0
			changed, err := rewritten(ctx, engine, p, part, true, func(old []byte) ([]byte, error) {
				content := old
				for i, op := range in.Operations {
					next, count, err := op.apply(ctx, p, content, matchers[i])
					if err != nil {
						return nil, err
					}
					content, n = next, n+count
				}
				return content, nil
			})
			r.Mark = part.Mark()
			if err == nil {
				r.Replacements, r.Modified = n, changed
			}
			return r, err
		})
	}, err
}

func (o replaceItem) matcher(at string) (search.Matcher, error) {
	switch {
	case o.Regex:
		return expression(at, o.Search, o.IgnoreCase)
	case len(o.Search) > search.MaxPattern:
		return nil, fault.New(fault.InvalidParameter, "%s may have at most %d bytes", at, search.MaxPattern)
	}
	return search.NewLiteral(o.Search, !o.IgnoreCase), nil
}

// apply replaces every match in content and counts them.
func (o replaceItem) apply(ctx context.Context, p registry.Path, content []byte, m search.Matcher) ([]byte, int, error) {
	d, err := parsed(p, content)
	if err != nil {
		return nil, 0, err
	}
	text := d.Text()
	var splices []textedit.Splice
	err = search.Replacements(ctx, text, m, o.Replace, func(from, to int, put string) bool {
		// Text that had no line end gets those of the file. A search that has some
		// has chosen its own.
		if strings.Contains(put, "\n") && !strings.Contains(text[from:to], "\n") {
			put = d.Fit(from, put)
		}
		splices = append(splices, textedit.Splice{From: from, To: to, New: put})
		return true
	})
	if err != nil {
		return nil, 0, searched(p, err)
	}
	if len(splices) == 0 {
		return content, 0, nil
	}
	content, err = d.Apply(splices)
	if err != nil {
		return nil, 0, about(p, err)
	}
	return content, len(splices), nil
}

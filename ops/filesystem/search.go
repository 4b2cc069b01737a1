package filesystem

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/invopop/jsonschema"

	"github.com/conduit-mcp/conduit-mcp/internal/search"
	"github.com/conduit-mcp/conduit-mcp/internal/textedit"
	"github.com/conduit-mcp/conduit-mcp/internal/walk"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func init() { register(searchDesc, buildSearch) }

var searchDesc = registry.Desc{
	Tool:    "search_files",
	Summary: "Find a regular expression in the text files below a directory: file, line, match and two lines around. node_modules is left out.",
	Effect:  registry.ReadOnly,
	Errors:  codes(fault.FSNotFound, fault.FSIsFile, fault.FSReadFailed, fault.LimitExceeded),
	Examples: []registry.Example{
		{Title: "Functions in Go files", Args: `{"path": "src", "regex": "^func \\w+", "file_pattern": "*.go"}`},
		{Title: "Without regard to case", Args: `{"path": ".", "regex": "/todo/i"}`},
	},
}

type searchSettings struct {
	readSettings
	listSettings
	Timeout time.Duration `env:"CONDUIT_FIND_TIMEOUT_MS" default:"60000" min:"1" doc:"Time for one find, in milliseconds; what was found by then is returned."`
}

type searchParams struct {
	Path    registry.Path `json:"path,omitempty" jsonschema:"default=." jsonschema_description:"Directory."`
	Regex   string        `json:"regex" log:"content" jsonschema:"minLength=1" jsonschema_description:"JavaScript expression, or /…/flags; ^ and $ match at line ends."`
	Pattern string        `json:"file_pattern,omitempty" log:"plain" jsonschema:"default=*" jsonschema_description:"Glob for file names at any depth, or with a / for paths below path."`
}

// A hit is a match, or a file that could not be searched.
type hit struct {
	Type    string   `json:"type"` // match or error
	File    string   `json:"file"`
	Line    int      `json:"line,omitempty"`
	Match   *string  `json:"match,omitempty"`
	Context []string `json:"context,omitempty"` // the line and two on either side
	trouble
}

type hits []hit

// MarshalJSON writes {"results": […]}.
func (h hits) MarshalJSON() ([]byte, error) { return encoded(wrapped[hit]{Results: h}) }

// JSONSchema is that of what MarshalJSON writes.
func (hits) JSONSchema() *jsonschema.Schema { return schemaOf[wrapped[hit]]() }

const (
	maxHits  = 1000 // of a call
	around   = 2    // lines shown on either side of a match
	maxShown = 500  // bytes of a match, or of a line around it
)

// A fileSearch is one search.
type fileSearch struct {
	searchParams
	matcher search.Matcher
	most    int64 // bytes of a file whose matches are shown
}

func buildSearch(cfg searchSettings, _ *registry.Env) (registry.Func[searchParams, hits], error) {
	return func(ctx context.Context, in searchParams) (hits, error) {
		h := fileSearch{searchParams: in, most: cfg.MaxRead}
		var err error
		switch {
		case len(in.Regex) > search.MaxPattern || len(in.Pattern) > search.MaxPattern:
			return nil, fault.New(fault.InvalidParameter, "search_files: regex and file_pattern may have at most %d bytes", search.MaxPattern)
		case !doublestar.ValidatePattern(in.Pattern):
			return nil, fault.New(fault.InvalidParameter, "search_files: file_pattern is not a valid glob: check its brackets, braces and backslashes")
		}
		if h.matcher, err = search.NewExpression(in.Regex, true); err != nil {
			return nil, fault.New(fault.InvalidParameter, "search_files: regex is not a valid JavaScript regular expression: %v", err)
		}
		at, err := in.Path.Place()
		if err != nil {
			return nil, err
		}
		top, err := walk.Open(at)
		if err != nil {
			return nil, located(in.Path, err)
		}
		defer top.Close()
		limited, stop := context.WithTimeout(ctx, cfg.Timeout)
		defer stop()
		found, seen := hits{}, int64(0)
		report, err := walk.Tree(limited, top, walk.TreeOptions{Depth: cfg.MaxDepth, Skip: notEntered}, h.look, func(some []hit) bool {
			seen++
			registry.Progress(ctx, seen, 0, "entries looked at")
			found = append(found, some...)
			return len(found) <= maxHits
		})
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case limited.Err() != nil:
			registry.AddRemark(ctx, "SEARCH_INCOMPLETE", fmt.Sprintf("The search ended after CONDUIT_FIND_TIMEOUT_MS (%d) with what was found by then; narrow path, file_pattern or regex.", cfg.Timeout.Milliseconds()), nil)
		case err != nil:
			return nil, err
		}
		if len(found) > maxHits {
			found = found[:maxHits]
			registry.AddRemark(ctx, "SEARCH_INCOMPLETE", fmt.Sprintf("These are the first %d matches, and there are more; narrow path, file_pattern or regex.", maxHits), nil)
		}
		remark(ctx, report, cfg.MaxDepth)
		return found, nil
	}, nil
}

// look returns the matches in one entry of the tree.
func (h fileSearch) look(ctx context.Context, n walk.Node) []hit {
	name := n.Name
	if strings.Contains(h.Pattern, "/") {
		name = n.Rel()
	}
	if !n.Type.IsRegular() || !doublestar.MatchUnvalidated(h.Pattern, name) {
		return nil
	}
	file := below(h.Path, n.Rel())
	list, err := h.file(ctx, n, file)
	switch {
	case err == nil || errors.Is(err, fs.ErrNotExist) || ctx.Err() != nil:
		return list
	case errors.Is(err, search.ErrGivenUp):
		err = fault.New(fault.LimitExceeded, "%s: the expression takes too long; simplify it, avoid nested repetitions", file)
	}
	failed := hit{Type: "error", File: file}
	failed.Settle(err)
	return append(list, failed)
}

// file returns the matches in the file n, called name. What was found by then
// comes with an error.
func (h fileSearch) file(ctx context.Context, n walk.Node, name string) (list []hit, err error) {
	f, err := n.Dir.OpenReader(n.Name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// Most files have no match, which is found out without holding them in memory.
	if found, _, err := search.Content(ctx, f, f.Size(), n.Name, h.matcher, search.Options{}); err != nil || !found {
		return nil, err
	}
	if f.Size() > h.most {
		return nil, fault.New(fault.LimitExceeded, "%s has a match, but its %d bytes are more than CONDUIT_MAX_FILE_READ_BYTES (%d), so it cannot be shown", name, f.Size(), h.most)
	}
	b, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size()))
	if err != nil {
		return nil, fault.Hide(fault.FSReadFailed, err, "reading %s failed", name)
	}
	d, err := textedit.Parse(b, "")
	if err != nil {
		return nil, err
	}
	text := d.Text()
	err = search.Replacements(ctx, text, h.matcher, "", func(from, to int, _ string) bool {
		r := hit{Type: "match", File: name, Line: d.Line(from), Match: new(clipped(text[from:to]))}
		for k := max(1, r.Line-around); k <= min(d.Lines(), r.Line+around); k++ {
			r.Context = append(r.Context, clipped(strings.TrimRight(text[d.Start(k):d.Start(k+1)], "\r\n")))
		}
		list = append(list, r)
		return len(list) <= maxHits
	})
	return list, err
}

// clipped is s, of a long one the beginning.
func clipped(s string) string {
	return strings.Clone(fault.ClipTo(s, maxShown))
}

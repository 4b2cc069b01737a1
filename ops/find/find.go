// Package find is the find tool: entries of a tree by name, content and
// metadata.
package find

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/conduit-mcp/conduit-mcp/internal/entry"
	"github.com/conduit-mcp/conduit-mcp/internal/search"
	"github.com/conduit-mcp/conduit-mcp/internal/walk"
	"github.com/conduit-mcp/conduit-mcp/ops/core"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// Tool is the tool's name.
const Tool = "find"

func init() {
	registry.RegisterTool(registry.Tool{
		Name:    Tool,
		Toolset: core.Toolset,
		Summary: "Find files by name, content and metadata.",
		Notices: true,
	})
	registry.Register(desc, build)
}

var desc = registry.Desc{
	Tool:    Tool,
	Summary: "Find files and directories by name, content and metadata.",
	Effect:  registry.ReadOnly,
	Errors: []fault.Code{fault.InvalidParameter, fault.FSNotFound, fault.FSIsFile, fault.FSAccessDenied, fault.FSPathResolution,
		fault.FSBadPathInput, fault.FSOperation, fault.Unarchive, fault.ArchiveDetect, fault.LimitExceeded},
	Examples: []registry.Example{
		{Title: "Go files that mention a word, with the lines", Args: `{"base_path": ".", "match_criteria": [{"type": "name_pattern", "pattern": "*.go"}, {"type": "content_pattern", "pattern": "todo"}], "include_matches": true}`},
		{Title: "Large files", Args: `{"base_path": ".", "match_criteria": [{"type": "metadata_filter", "attribute": "size_bytes", "operator": "gt", "value": 1000000}], "entry_type_filter": "file"}`},
	},
}

type settings struct {
	MaxDepth int           `env:"CONDUIT_MAX_RECURSIVE_DEPTH" default:"10" min:"0" doc:"Levels that list and find descend."`
	Timeout  time.Duration `env:"CONDUIT_FIND_TIMEOUT_MS" default:"60000" min:"1" doc:"Time for one find, in milliseconds; what was found by then is returned."`
}

type params struct {
	Base       registry.Member `json:"base_path" jsonschema_description:"Directory, or archive.zip!/."`
	Recursive  bool            `json:"recursive,omitempty" jsonschema:"default=true"`
	Criteria   []criterion     `json:"match_criteria" jsonschema_description:"All must hold."`
	EntryType  string          `json:"entry_type_filter,omitempty" jsonschema:"enum=file,enum=directory,enum=any,default=any"`
	Matches    bool            `json:"include_matches,omitempty" jsonschema_description:"Return matching lines."`
	MaxMatches int             `json:"max_matches_per_file,omitempty" jsonschema:"minimum=1,default=20"`
	Lines      int             `json:"context_lines,omitempty" jsonschema:"minimum=0,maximum=10,default=0" jsonschema_description:"Lines around each match."`
	Ignore     string          `json:"ignore,omitempty" jsonschema:"enum=none,enum=gitignore,default=none"`
	MaxResults int             `json:"max_results,omitempty" jsonschema:"minimum=1" jsonschema_description:"Most results."`
	Cursor     string          `json:"cursor,omitempty" jsonschema_description:"Earlier next_cursor."`
}

type result struct {
	entry.Info
	Matches []search.Line `json:"matches,omitempty"`

	rel string // path below base_path
}

type results []result

// Lean writes a line for each entry, or for each of its matches.
func (list results) Lean(w io.Writer) error {
	for i, r := range list {
		if i > 0 {
			if _, err := io.WriteString(w, "\n"); err != nil {
				return err
			}
		}
		if _, err := io.WriteString(w, r.lean()); err != nil {
			return err
		}
	}
	return nil
}

func (r result) lean() string {
	name := strings.ToValidUTF8(r.rel, "\uFFFD")
	if len(r.Matches) == 0 {
		if r.Type == "directory" {
			name += "/"
		}
		return name
	}
	var b strings.Builder
	last := 0 // of the lines shown
	show := func(line int, sign, text string) {
		if line <= last {
			return
		}
		if last > 0 {
			b.WriteByte('\n')
		}
		last = line
		fmt.Fprintf(&b, "%s%s%d%s %s", name, sign, line, sign, text)
	}
	for k, m := range r.Matches {
		for i, text := range m.Before {
			show(m.Line-len(m.Before)+i, "-", text)
		}
		show(m.Line, ":", m.Text)
		for i, text := range m.After {
			if k+1 < len(r.Matches) && m.Line+1+i >= r.Matches[k+1].Line {
				break
			}
			show(m.Line+1+i, "-", text)
		}
	}
	return b.String()
}

func build(cfg settings, _ *registry.Env) (registry.Func[params, results], error) {
	return func(ctx context.Context, in params) (results, error) {
		q, err := compile(in)
		if err != nil {
			return nil, err
		}
		after, err := decodeCursor(in.Cursor)
		if err != nil {
			return nil, err
		}
		depth := 0
		if in.Recursive {
			depth = cfg.MaxDepth
		}
		r := &run{query: q, max: in.MaxResults, tree: walk.TreeOptions{Depth: depth, GitIgnore: in.Ignore == "gitignore", After: after},
			recursive: in.Recursive, timeout: cfg.Timeout, found: results{}}
		if at, name, ok := in.Base.Archive(); ok {
			return r.inside(ctx, at, in.Base.String(), name)
		}
		base, err := in.Base.Place()
		if err != nil {
			return nil, err
		}
		top, err := walk.Open(base)
		if err != nil {
			return nil, err
		}
		defer top.Close()
		return r.all(ctx, top)
	}, nil
}

// A run is one search.
type run struct {
	query     *query
	tree      walk.TreeOptions
	recursive bool
	max       int // of results; 0 for no limit
	timeout   time.Duration

	found  results
	seen   int64 // entries
	missed missed
}

// missed counts what was not searched; it is the details of the
// SEARCH_INCOMPLETE remark.
type missed struct {
	GivenUp    int  `json:"files_given_up,omitempty"`
	Unreadable int  `json:"files_unreadable,omitempty"`
	Dirs       int  `json:"directories_unreadable,omitempty"`
	TimedOut   bool `json:"timed_out,omitempty"`
}

func (r *run) all(ctx context.Context, top *walk.Dir) (results, error) {
	limited, stop := context.WithTimeout(ctx, r.timeout)
	defer stop()
	more := false
	report, err := walk.Tree(limited, top, r.tree, r.query.evaluate, func(o outcome) bool {
		r.note(ctx, limited, o)
		if o.hit == nil {
			return true
		}
		if more = r.max > 0 && len(r.found) == r.max; more {
			return false
		}
		r.found = append(r.found, *o.hit)
		return true
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		if limited.Err() == nil {
			return nil, err
		}
		r.missed.TimedOut = true
	}
	r.missed.Dirs = report.Unreadable
	r.remark(ctx, report.Deep, more)
	return r.found, nil
}

// note counts an entry that was looked at; limited ends when the time is up.
func (r *run) note(ctx, limited context.Context, o outcome) {
	r.seen++
	registry.Progress(ctx, r.seen, 0, "entries looked at")
	switch {
	case o.err == nil:
	case errors.Is(o.err, search.ErrGivenUp):
		r.missed.GivenUp++
	case limited.Err() == nil:
		r.missed.Unreadable++
	}
}

func (r *run) remark(ctx context.Context, deep int, more bool) {
	if more {
		next := encodeCursor(r.found[len(r.found)-1].rel)
		registry.AddRemark(ctx, "MORE_RESULTS", fmt.Sprintf("More entries match; call again with \"cursor\": %q to go on.", next), registry.More{NextCursor: next})
	}
	if r.recursive && deep > 0 {
		registry.AddRemark(ctx, "DEPTH_LIMIT_REACHED", fmt.Sprintf("Directories not searched since they lie deeper than CONDUIT_MAX_RECURSIVE_DEPTH (%d): %d. Name one as base_path to look there.", r.tree.Depth, deep), nil)
	}
	if r.missed != (missed{}) {
		registry.AddRemark(ctx, "SEARCH_INCOMPLETE", r.missed.message(r.timeout), r.missed)
	}
}

func (m missed) message(timeout time.Duration) string {
	var parts []string
	add := func(n int, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s: %d.", what, n))
		}
	}
	add(m.GivenUp, "Files given up, since the expression takes too long (simplify it, avoid nested repetitions)")
	add(m.Unreadable, "Files that cannot be read")
	add(m.Dirs, "Directories that cannot be read")
	if m.TimedOut {
		parts = append(parts, fmt.Sprintf("The search ended after CONDUIT_FIND_TIMEOUT_MS (%d) with what was found by then; narrow base_path or the criteria.", timeout.Milliseconds()))
	}
	return strings.Join(parts, " ")
}

// A cursor is the relative path of the last result. One that JSON cannot carry
// is quoted as in Go.
func encodeCursor(rel string) string {
	if utf8.ValidString(rel) && !strings.HasPrefix(rel, `"`) {
		return rel
	}
	return strconv.QuoteToASCII(rel)
}

func decodeCursor(c string) (string, error) {
	if !strings.HasPrefix(c, `"`) {
		return c, nil
	}
	rel, err := strconv.Unquote(c)
	if err != nil {
		return "", fault.New(fault.InvalidParameter, "find: cursor is not one of this tool; use the next_cursor of a MORE_RESULTS remark as it stands")
	}
	return rel, nil
}

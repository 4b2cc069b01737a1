package zipfs

import (
	"context"

	"github.com/conduit-mcp/conduit-mcp/internal/zipws"
	"github.com/conduit-mcp/conduit-mcp/registry"
)

func init() { declare(grepDesc, grep) }

var grepDesc = registry.Desc{
	Tool:     "zipfs_grep",
	Summary:  "Search the text files of a session for a regular expression (RE2 syntax), in path order.",
	Effect:   registry.ReadOnly,
	Errors:   inSession(zipws.PathNotFound, zipws.PathTraversal, zipws.ZipNotFound, zipws.ConflictDetected, zipws.LimitExceeded),
	Examples: []registry.Example{{Title: "A word in JSON files", Args: `{"pattern": "\"debug\"", "glob": "*.json", "ignore_case": true}`}},
}

type grepParams struct {
	sessionRef
	Pattern    string     `json:"pattern" log:"content" jsonschema_description:"Regular expression, matched within a line."`
	Path       zipws.Name `json:"path,omitempty" jsonschema_description:"File or directory to search. Default \"/\"."`
	Glob       string     `json:"glob,omitempty" jsonschema_description:"Files to search, like *.txt; with a slash it is matched against the path below path."`
	IgnoreCase bool       `json:"ignore_case,omitempty" jsonschema_description:"Ignore case."`
	Max        int        `json:"max_results,omitempty" jsonschema:"minimum=1,default=100" jsonschema_description:"Most lines."`
}

func grep(ctx context.Context, m *zipws.Workspaces, in grepParams) (zipws.Grep, error) {
	return m.Grep(ctx, in.Session, zipws.GrepOptions{Pattern: in.Pattern, Path: in.Path, Glob: in.Glob, IgnoreCase: in.IgnoreCase, Max: in.Max})
}

// Package zipfs adds the zipfs_* tools: sessions in which an archive is worked
// in as files and synced back.
package zipfs

import (
	"context"

	"github.com/conduit-mcp/conduit-mcp/internal/zipws"
	"github.com/conduit-mcp/conduit-mcp/ops/zipfs/cli"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// Toolset is the name by which CONDUIT_TOOLSETS picks these tools.
const Toolset = "zipfs"

// A sessionRef is the parameter that all tools have that work on a session.
type sessionRef struct {
	Session string `json:"session,omitempty" jsonschema_description:"Name or id of the session, or the start of the id; may be left out where one is open."`
}

func init() {
	registry.RegisterToolset(registry.Toolset{
		Name:     Toolset,
		Summary:  "Zip files as workspaces: open one as a session, work in its files with any tool, and sync the changes back.",
		Own:      registry.Directories[zipws.Settings],
		Commands: cli.Commands,
	})
}

// declare registers the tool of one op and the op.
func declare[In, Out any](d registry.Desc, run func(context.Context, *zipws.Workspaces, In) (Out, error)) {
	registry.RegisterTool(registry.Tool{Name: d.Tool, Toolset: Toolset, Summary: d.Summary, Structured: true, Errors: zipws.Errors})
	registry.Register(d, builder(run))
}

// builder makes an op that works on the server's one manager.
func builder[In, Out any](run func(context.Context, *zipws.Workspaces, In) (Out, error)) func(zipws.Settings, *registry.Env) (registry.Func[In, Out], error) {
	return func(s zipws.Settings, env *registry.Env) (registry.Func[In, Out], error) {
		m, err := registry.Shared(env, func(env *registry.Env) (*zipws.Workspaces, error) {
			return zipws.New(zipws.Options{Settings: s, Data: s.Dir, Host: env.Paths, Log: env.Log, Now: env.Now, Words: words}), nil
		})
		return func(ctx context.Context, in In) (Out, error) { return run(ctx, m, in) }, err
	}
}

// words are those of the tools.
var words = zipws.Words{
	Open: "zipfs_open", Status: "zipfs_status", List: "zipfs_ls", Path: "zipfs_path", Prune: "zipfs_prune with all", Unarchive: "write.unarchive",
	Session: "session", Sync: "sync", Discard: "discard", Force: "force", Recursive: "recursive", Lazy: "lazy", Parts: "offset and limit",
	CreateDirs: "create_dirs", All: "all", Stale: "stale", MaxSize: "the size that the session was opened with",
}

// always are the codes that any of the tools may answer with.
func always(more ...fault.Code) []fault.Code {
	return append([]fault.Code{zipws.InvalidParams, zipws.IOError}, more...)
}

// inSession are the codes of the tools that work on a session.
func inSession(more ...fault.Code) []fault.Code {
	return append([]fault.Code{zipws.InvalidParams, zipws.SessionNotFound, zipws.AmbiguousSession, zipws.NoSessions, zipws.Locked, zipws.IOError}, more...)
}

// progress reports how far the call of ctx has come.
func progress(ctx context.Context) func(done, total int64) {
	return func(done, total int64) { registry.Progress(ctx, done, total, "") }
}

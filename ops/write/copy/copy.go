// Package copy adds write.copy: files and directory trees copied.
package copy

import (
	"context"
	"os"

	"github.com/conduit-mcp/conduit-mcp/internal/filetree"
	"github.com/conduit-mcp/conduit-mcp/internal/journal"
	"github.com/conduit-mcp/conduit-mcp/ops/change"
	"github.com/conduit-mcp/conduit-mcp/ops/write"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func init() { registry.Register(desc, build) }

var desc = registry.Desc{
	Tool:    write.Tool,
	Name:    "copy",
	Summary: "Copy files and directories.",
	Effect:  registry.Destructive,
	Errors: []fault.Code{
		fault.InvalidParameter, fault.FSAccessDenied, fault.FSPathResolution, fault.FSBadPathInput, fault.FSNotFound, fault.FSIsFile,
		fault.FSIsDirectory, fault.FSAlreadyExists, fault.FSOperation, fault.FSReadFailed, fault.FSWriteFailed, fault.TooDeep,
	},
	Examples: []registry.Example{
		{Title: "A file", Args: `{"entries": [{"source_path": "config.json", "destination_path": "config.backup.json", "overwrite": false}]}`},
		{Title: "A directory into another", Args: `{"entries": [{"source_path": "src", "destination_path": "archive"}]}`},
	},
}

type settings struct{ journal.Settings }

type params struct {
	Entries []entry `json:"entries" jsonschema:"minItems=1" jsonschema_description:"One object each."`
}

type entry struct {
	Source      registry.Path `json:"source_path" jsonschema_description:"File or directory."`
	Destination registry.Path `json:"destination_path" jsonschema_description:"Inside, if a directory."`
	Overwrite   bool          `json:"overwrite,omitempty" jsonschema:"default=true" jsonschema_description:"Replace what exists."`
}

type result struct {
	registry.Outcome
	Action      string `json:"action_performed"`
	Source      string `json:"source_path"`
	Destination string `json:"destination_path"`
	Message     string `json:"message,omitempty"`
	journal.Mark
}

// Shed keeps of a result that does not fit into the response what identifies it.
func (r *result) Shed(err error) {
	r.Message = ""
	r.Settle(err)
}

func build(cfg settings, env *registry.Env) (registry.Func[params, []result], error) {
	files, err := change.Shared(cfg.Settings, env)
	return func(ctx context.Context, in params) ([]result, error) {
		c := files.Journal.Begin(desc.ID())
		defer c.Done()
		return registry.Each(ctx, in.Entries, func(ctx context.Context, e entry) (result, error) {
			r := result{Action: desc.Name, Source: e.Source.String(), Destination: e.Destination.String()}
			src, err := e.Source.Place()
			if err != nil {
				return r, err
			}
			dst, err := e.Destination.Place()
			if err != nil {
				return r, err
			}
			part := c.Part()
			o := filetree.Options{Create: !e.Overwrite, Keep: part, Into: os.IsPathSeparator(e.Destination.String()[len(e.Destination.String())-1])}
			if len(in.Entries) == 1 { // of several, the entries are what is counted
				o.Progress = func(done int64) { registry.Progress(ctx, done, 0, "") }
			}
			done, err := filetree.Copy(ctx, files.Writer, src, dst, o)
			r.Mark = part.Mark()
			if err == nil {
				r.Message = done.Message("Copied")
			}
			return r, err
		})
	}, err
}

package write

import (
	"context"

	"github.com/conduit-mcp/conduit-mcp/internal/filetree"
	"github.com/conduit-mcp/conduit-mcp/internal/journal"
	"github.com/conduit-mcp/conduit-mcp/ops/change"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// TransferParams are the parameters of an op that copies or moves.
type TransferParams struct {
	Entries []TransferEntry `json:"entries" jsonschema:"minItems=1" jsonschema_description:"One object each."`
}

// A TransferEntry says what goes where.
type TransferEntry struct {
	Source      registry.Path `json:"source_path" jsonschema_description:"File or directory."`
	Destination registry.Path `json:"destination_path" jsonschema_description:"Inside, if a directory."`
	Overwrite   bool          `json:"overwrite,omitempty" jsonschema:"default=true" jsonschema_description:"Replace what exists."`
}

// A TransferResult is what became of a [TransferEntry].
type TransferResult struct {
	registry.Outcome
	Action      string `json:"action_performed"`
	Source      string `json:"source_path"`
	Destination string `json:"destination_path"`
	Message     string `json:"message,omitempty"`
	journal.Mark
}

// Trim keeps of a result that does not fit into the response what identifies it.
func (r *TransferResult) Trim(err error) {
	r.Message = ""
	r.Settle(err)
}

// Transfer returns the op d, which does what transfer does: find tells what a
// source names, and verb says in the past what is done.
func Transfer(d registry.Desc, verb string, find func(registry.Path) (place.Place, error), transfer filetree.Transfer) func(journal.Settings, *registry.Env) (registry.Func[TransferParams, []TransferResult], error) {
	return func(cfg journal.Settings, env *registry.Env) (registry.Func[TransferParams, []TransferResult], error) {
		files, err := change.Shared(cfg, env)
		return func(ctx context.Context, in TransferParams) ([]TransferResult, error) {
			c := files.Journal.Begin(d.ID())
			defer c.Done()
			return registry.Each(ctx, in.Entries, func(ctx context.Context, e TransferEntry) (TransferResult, error) {
				r := TransferResult{Action: d.Name, Source: e.Source.String(), Destination: e.Destination.String()}
				src, err := find(e.Source)
				if err != nil {
					return r, err
				}
				dst, err := e.Destination.Place()
				if err != nil {
					return r, err
				}
				part := c.Part()
				o := filetree.Options{Create: !e.Overwrite, Keep: part, Into: e.Destination.NamesDirectory()}
				if len(in.Entries) == 1 { // of several, the entries are what is counted
					o.Progress = func(done int64) { registry.Progress(ctx, done, 0, "") }
				}
				done, err := transfer(ctx, files.Writer, src, dst, o)
				r.Mark = part.Mark()
				if err == nil {
					r.Message = done.Message(verb)
				}
				return r, err
			})
		}, err
	}
}

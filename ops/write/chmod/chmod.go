// Package chmod adds write.chmod: permissions set.
package chmod

import (
	"context"

	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
	"github.com/conduit-mcp/conduit-mcp/internal/filetree"
	"github.com/conduit-mcp/conduit-mcp/ops/write"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func init() { registry.Register(desc, build) }

var desc = registry.Desc{
	Tool:       write.Tool,
	Name:       "chmod",
	Summary:    "Set permissions.",
	Effect:     registry.Destructive,
	Idempotent: true,
	Errors: []fault.Code{
		fault.InvalidParameter, fault.FSAccessDenied, fault.FSPathResolution, fault.FSBadPathInput, fault.FSNotFound,
		fault.FSOperation, fault.FSWriteFailed,
	},
	Examples: []registry.Example{
		{Title: "Make a script executable", Args: `{"entries": [{"path": "build.sh", "mode": "755"}]}`},
	},
}

type settings struct{}

type params struct {
	Entries []entry `json:"entries" jsonschema:"minItems=1" jsonschema_description:"One object each."`
}

type entry struct {
	Path registry.Path `json:"path" jsonschema_description:"File or directory."`
	Mode string        `json:"mode" jsonschema_description:"Octal, such as 755."`
}

type result struct {
	registry.Outcome
	Action string `json:"action_performed"`
	Path   string `json:"path"`
	Octal  string `json:"permissions_octal,omitempty"` // as they are now
}

// Trim keeps of a result that does not fit into the response what identifies it.
func (r *result) Trim(err error) {
	r.Octal = ""
	r.Settle(err)
}

func build(_ settings, _ *registry.Env) (registry.Func[params, []result], error) {
	return func(ctx context.Context, in params) ([]result, error) {
		return registry.Each(ctx, in.Entries, func(_ context.Context, e entry) (result, error) {
			r := result{Action: desc.Name, Path: e.Path.String()}
			mode, err := fileinfo.ParseMode(e.Mode)
			if err != nil {
				return r, err
			}
			p, err := e.Path.Place()
			if err != nil {
				return r, err
			}
			if err := filetree.Chmod(p, mode); err != nil {
				return r, err
			}
			info, err := fileinfo.Of(p)
			if err == nil {
				r.Octal = info.Octal()
			}
			return r, err
		})
	}, nil
}

// Package chown adds write.chown: owner and group set.
package chown

import (
	"context"

	"github.com/conduit-mcp/conduit-mcp/internal/filetree"
	"github.com/conduit-mcp/conduit-mcp/ops/write"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func init() { registry.Register(desc, build) }

var desc = registry.Desc{
	Tool:       write.Tool,
	Name:       "chown",
	Summary:    "Set owner and group.",
	Effect:     registry.Destructive,
	Idempotent: true,
	Errors: []fault.Code{
		fault.InvalidParameter, fault.FSAccessDenied, fault.FSPathResolution, fault.FSBadPathInput, fault.FSNotFound,
		fault.FSOperation, fault.FSWriteFailed,
	},
	Examples: []registry.Example{
		{Title: "To user and group 1000", Args: `{"entries": [{"path": "data.db", "uid": 1000, "gid": 1000}]}`},
	},
}

type settings struct{}

type params struct {
	Entries []entry `json:"entries" jsonschema:"minItems=1" jsonschema_description:"One object each."`
}

type entry struct {
	Path registry.Path `json:"path" jsonschema_description:"File or directory."`
	UID  int           `json:"uid" jsonschema:"minimum=0,maximum=4294967294" jsonschema_description:"User ID."`
	GID  int           `json:"gid" jsonschema:"minimum=0,maximum=4294967294" jsonschema_description:"Group ID."`
}

type result struct {
	registry.Outcome
	Action string `json:"action_performed"`
	Path   string `json:"path"`
	UID    *int   `json:"uid,omitempty"`
	GID    *int   `json:"gid,omitempty"`
}

// Trim keeps of a result that does not fit into the response what identifies it.
func (r *result) Trim(err error) {
	r.UID, r.GID = nil, nil
	r.Settle(err)
}

func build(_ settings, _ *registry.Env) (registry.Func[params, []result], error) {
	return func(ctx context.Context, in params) ([]result, error) {
		return registry.Each(ctx, in.Entries, func(_ context.Context, e entry) (result, error) {
			r := result{Action: desc.Name, Path: e.Path.String()}
			p, err := e.Path.Place()
			if err != nil {
				return r, err
			}
			if err := filetree.Chown(p, e.UID, e.GID); err != nil {
				return r, err
			}
			r.UID, r.GID = &e.UID, &e.GID
			return r, nil
		})
	}, nil
}

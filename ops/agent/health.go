package agent

import (
	"context"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

var healthDesc = registry.Desc{
	Tool:       HealthTool,
	Summary:    "Check which coding agents can be used.",
	Effect:     registry.ReadOnly,
	Idempotent: true,
	OpenWorld:  true, // agents may ask their service whether they are logged in
	Errors:     []fault.Code{fault.InvalidParameter, fault.ConfigInvalid},
	Examples:   []registry.Example{{Title: "One agent", Args: `{"providers": ["codex"]}`}},
}

type healthParams struct {
	Providers []string `json:"providers,omitempty" jsonschema_description:"Agents to check; all by default."`
}

type healthResult struct {
	Providers []agentcli.Health `json:"providers"`
}

func buildHealth(_ agentcli.Settings, env *registry.Env) (registry.Func[healthParams, healthResult], error) {
	e, err := engine(env)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, in healthParams) (healthResult, error) {
		list := e.Check(ctx, in.Providers)
		return healthResult{list}, ctx.Err()
	}, nil
}

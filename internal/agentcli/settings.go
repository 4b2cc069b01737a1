package agentcli

import "github.com/conduit-mcp/conduit-mcp/internal/agentcli/config"

// Settings say which configuration is in force.
type Settings struct {
	Config string `env:"MCP_CONDUIT_CONFIG" kind:"path" default:"" doc:"Configuration of the agents that run_task knows; by default mcp-conduit.config.json in the project root, where there is one."`
}

// Load reads the configuration that the settings name, or the one in the
// directory project; ERR_CONFIG_INVALID where it is none.
func (s Settings) Load(project string) (*config.Config, error) { return config.Load(s.Config, project) }

// Providers returns the names of the configured providers, sorted.
func (e *Engine) Providers() []string { return e.config.IDs() }

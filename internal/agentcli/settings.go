package agentcli

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/config"
)

// Settings say which configuration is in force.
type Settings struct {
	Config  string `env:"MCP_CONDUIT_CONFIG" default:"" doc:"Configuration of the agents that run_task knows; by default mcp-conduit.config.json in the project root, where there is one."`
	Project string `env:"CONDUIT_PROJECT_ROOT" default:"" doc:"Directory that relative paths start from; by default the working directory."`
}

// Load reads the configuration that the settings name; ERR_CONFIG_INVALID where
// it is none.
func (s Settings) Load() (*config.Config, error) {
	dir := s.Project
	switch {
	case dir == "~" || strings.HasPrefix(dir, "~/"):
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, err
		}
		dir = filepath.Join(home, dir[1:])
	case dir == "":
		var err error
		if dir, err = os.Getwd(); err != nil {
			return nil, err
		}
	}
	return config.Load(s.Config, dir)
}

// Open returns an engine for the configuration that the settings name.
func Open(s Settings, services Services) (*Engine, error) {
	c, err := s.Load()
	if err != nil {
		return nil, err
	}
	return New(c, services), nil
}

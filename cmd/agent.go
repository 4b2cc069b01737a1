package cmd

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcmd"
	"github.com/conduit-mcp/conduit-mcp/internal/roots"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// agent is the agent command. It returns the exit code.
func agent(args []string, lookup func(string) (string, bool), stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s, err := loadSettings(lookup, nil)
	if err != nil {
		return complain(stderr, err)
	}
	allowed, _, err := roots.New(roots.Config{Allowed: s.dirs, Home: s.homeAbs, Project: s.projectAbs, Denied: s.deniedRules})
	if err != nil {
		return complain(stderr, err)
	}
	return agentcmd.Main(ctx, args, agentcmd.Host{
		Stdin: os.Stdin, Stdout: stdout, Stderr: stderr,
		Engine: func() (*agentcli.Engine, error) {
			cfg, err := registry.LoadSettings[agentcli.Settings](lookup)
			if err != nil {
				return nil, err
			}
			return agentcli.Open(cfg, agentcli.Services{Log: slog.New(slog.DiscardHandler), Now: time.Now, Lookup: lookup, Places: allowed.Dirs()})
		},
		Resolve: func(path string) (place.Place, error) { return allowed.Resolve(path) },
	})
}

// records are the globs of what the agents of set leave behind.
func records(set *registry.Set, lookup func(string) (string, bool)) ([]string, error) {
	for _, t := range set.Tools() {
		if t.Toolset == "agent" {
			s, err := registry.LoadSettings[agentcli.Settings](lookup)
			if err != nil {
				return nil, err
			}
			cfg, err := s.Load()
			if err != nil {
				return nil, err
			}
			return cfg.Records(), nil
		}
	}
	return nil, nil
}

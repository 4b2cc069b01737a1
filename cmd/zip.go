package cmd

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/conduit-mcp/conduit-mcp/internal/zipcmd"
)

// zip is the zip command. It returns the exit code.
func zip(args []string, lookup func(string) (string, bool), stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return zipcmd.Main(ctx, args, os.Stdin, stdout, stderr, lookup)
}

// Command demo drives a conduit-mcp binary as a client would, on a scratch copy
// of this repository's sources, and tells what each call took; with -verbose it
// shows the calls and their answers. It fails unless every step ends as it
// should.
//
// Usage, from the repository's root: demo [-verbose] BINARY
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/conduit-mcp/conduit-mcp/internal/clients"
)

func main() {
	verbose := flag.Bool("verbose", false, "show the calls and their answers")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: demo [-verbose] BINARY")
		os.Exit(2)
	}
	if err := demonstrate(flag.Arg(0), *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func demonstrate(binary string, verbose bool) error {
	binary, err := filepath.Abs(binary)
	if err != nil {
		return err
	}
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	if err := tour(binary, here, verbose, os.Stdout); err != nil {
		return err
	}
	client, _ := clients.Find(clients.Default)
	fmt.Printf("To use the server, give a client such as %s this (bin/conduit-mcp doctor has it for others):\n\n%s\n",
		client.Title, client.Snippet(clients.Server{Command: binary, Env: map[string]string{"CONDUIT_ALLOWED_PATHS": here}}))
	return nil
}

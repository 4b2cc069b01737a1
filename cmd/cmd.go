// Package cmd is the conduit-mcp command line. A custom build calls Main from a
// main package of its own, with the operations it wants linked in.
package cmd

import (
	"fmt"
	"io"
	"log"
	"os"
	"strings"
)

// Main runs the command that the program's arguments name and exits. Without
// arguments, or with directories only, it is the stdio server.
func Main() {
	log.SetOutput(io.Discard) // where net/http quotes servers that do not keep to the protocol
	os.Exit(Run(os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr))
}

// Run is Main for given arguments and environment; it returns the exit code.
// The stdio server uses the process's own standard streams.
func Run(args []string, lookup func(string) (string, bool), stdout, stderr io.Writer) int {
	if len(args) == 0 || isDir(args[0]) {
		for _, dir := range args {
			if !isDir(dir) {
				fmt.Fprintf(stderr, "conduit-mcp: %q is no directory argument: those contain a slash or are . or ~\n", dir)
				return 2
			}
		}
		return serve(lookup, args)
	}
	switch args[0] {
	case "tools":
		return tools(args[1:], lookup, stdout, stderr)
	case "call":
		return call(args[1:], lookup, stdout, stderr)
	case "doctor":
		return doctor(args[1:], lookup, stdout)
	case "agent":
		return agent(args[1:], lookup, stdout, stderr)
	case "zip":
		return zip(args[1:], lookup, stdout, stderr)
	case "version", "--version", "-v":
		fmt.Fprintln(stdout, "conduit-mcp", version)
		return 0
	case "help", "--help", "-h":
		io.WriteString(stdout, usage)
		return 0
	}
	fmt.Fprintf(stderr, "conduit-mcp: unknown command %q\n\n%s", args[0], usage)
	return 2
}

// isDir reports whether an argument is meant as a directory.
func isDir(arg string) bool {
	return arg == "." || arg == "~" || strings.ContainsAny(arg, "/"+string(os.PathSeparator))
}

const usage = `conduit-mcp: an MCP server for local files.

  conduit-mcp [DIRECTORY ...]       serve one client on stdin and stdout; the
                                    directories stand for CONDUIT_ALLOWED_PATHS
  conduit-mcp tools [--json|--tokens]
                                    the tools: for reading, as tools/list tells
                                    them, or what they cost a model
  conduit-mcp call TOOL[.OPERATION] --json ARGUMENTS
                                    one operation through the whole chain
  conduit-mcp doctor                check settings, directories and log, and
                                    show what to paste into a client
  conduit-mcp agent COMMAND         tasks for coding agents; without a COMMAND
                                    it lists them
  conduit-mcp zip COMMAND           zip files as workspaces; without a COMMAND
                                    it lists them
  conduit-mcp version
  conduit-mcp help

A directory argument contains a slash or is . or ~. Settings are environment
variables; doctor lists them.
`

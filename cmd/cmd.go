// Package cmd is the conduit-mcp command line. A custom build calls Main from a
// main package of its own, with the operations it wants linked in.
package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/conduit-mcp/conduit-mcp/internal/app"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// Main runs the command that the program's arguments name and exits. Without
// arguments, or with directories only, it is the stdio server.
func Main() {
	log.SetOutput(io.Discard) // where net/http quotes servers that do not keep to the protocol
	os.Exit(Run(os.Args[1:], app.ParseEnviron(os.Environ()), os.Stdin, os.Stdout, os.Stderr))
}

// Run is Main for given arguments, environment variables and streams; it returns
// the exit code: 0, 1 for a failure, 2 for usage, others where a command says
// so. The stdio server uses the process's own streams.
func Run(args []string, environ map[string]string, stdin io.Reader, stdout, stderr io.Writer) int {
	if !slices.ContainsFunc(args, func(arg string) bool { return !isDir(arg) }) {
		return serve(app.Options{Environ: environ, Dirs: args}) // at once: a client waits
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	out := &output{Writer: stdout}
	if f, ok := stdout.(*os.File); !ok || !isTerminal(f) { // commands ask whether it is one
		stdout = out
	}
	stdout, stderr = atTerminal(stdout), atTerminal(stderr)
	c := &commandLine{environ: environ}
	defer c.close()
	root, err := c.root()
	if err == nil {
		root.SetIn(stdin)
		root.SetOut(stdout)
		root.SetErr(stderr)
		root.SetArgs(args)
		if root, err = unknown(root, args); err == nil {
			root, err = root.Root().ExecuteContextC(ctx)
		}
	}
	if out.err != nil {
		c.ran, err = true, fmt.Errorf("the output cannot be written: %w", out.err)
		c.JSON = false // the reason goes to stderr
	}
	if err == nil {
		return c.code
	}
	return c.fail(root, err, stdout, stderr)
}

// An output remembers that it could not be written, whoever passes over it.
type output struct {
	io.Writer
	err error
}

func (o *output) Write(b []byte) (int, error) {
	n, err := o.Writer.Write(b)
	if err != nil && o.err == nil {
		o.err = err
	}
	return n, err
}

// Root returns the command with all commands of the toolsets that are linked in,
// from which documentation is made.
func Root() (*cobra.Command, error) { return (&commandLine{}).root() }

// A commandLine is one run of the program for a person.
type commandLine struct {
	registry.CLI
	environ app.Environ
	envFile string          // --env-file
	inFile  map[string]bool // the variables that it gives
	opened  []*app.App
	ran     bool // the arguments were in order
	code    int  // of a command that ended without an error
}

func (c *commandLine) root() (*cobra.Command, error) {
	root := &cobra.Command{
		Use:   "conduit-mcp [DIRECTORY ...]",
		Short: "An MCP server for files, the web and archives",
		Long: "An MCP server for files, the web and archives.\n\n" +
			"Without a command it serves one client on stdin and stdout; the directories\n" +
			"stand for CONDUIT_ALLOWED_PATHS, and each contains a slash or is . or ~.\n" +
			"Settings are environment variables, also of a file (--env-file); doctor lists\n" +
			"them. Those of the environment come before those of the file.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          c.directories,
	}
	// A template of our own would link in text/template, and with it every
	// exported method of the program.
	version := root.Flags().BoolP("version", "v", false, "print the version")
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if *version {
			return c.printVersion(cmd, nil)
		}
		c.code = serve(app.Options{Environ: c.environ, EnvFile: c.envFile, Dirs: args})
		return nil
	}
	root.PersistentFlags().BoolVar(&c.JSON, "json", false, "print one JSON value, of failures too")
	root.PersistentFlags().BoolVarP(&c.Quiet, "quiet", "q", false, "print nothing beside what was asked for")
	root.PersistentFlags().StringVar(&c.envFile, "env-file", "", "read further variables from `FILE`, lines of NAME=VALUE")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) (err error) {
		if c.envFile != "" && cmd != root {
			c.ran = true
			c.environ, c.inFile, err = c.environ.WithFile(c.envFile)
		}
		return err
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return registry.UsageError(err.Error()) })
	root.AddCommand(c.tools(), c.call(), c.doctor(),
		&cobra.Command{Use: "version", Short: "Print the version and what it was built from", Args: cobra.NoArgs, RunE: c.printVersion})
	c.Open = c.open
	c.Lookup = func(key string) (string, bool) { return c.environ.Lookup(key) }
	toolsets, err := registry.Toolsets()
	for _, t := range toolsets {
		if t.Commands != nil {
			root.AddCommand(t.Commands(&c.CLI)...)
		}
	}
	root.SetHelpCommand(help(root))
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd("")
	c.adopt(root)
	return root, err
}

// adopt notes of every command below cmd when its arguments turn out to be in
// order: what fails before is wrong usage.
func (c *commandLine) adopt(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		c.adopt(sub)
	}
	cmd.SuggestionsMinimumDistance = 2 // which cobra sets only where it looks itself
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			c.ran = true
			return run(cmd, args)
		}
	}
}

// unknown refuses arguments of a command that only holds others, for which cobra
// would show help. It returns the command that args name.
func unknown(root *cobra.Command, args []string) (*cobra.Command, error) {
	cmd, rest, err := root.Find(args)
	if err != nil {
		return root, err
	}
	i := slices.IndexFunc(rest, func(arg string) bool { return !strings.HasPrefix(arg, "-") })
	if cmd.Runnable() || i < 0 {
		return cmd, nil
	}
	return cmd, registry.UsageError(fmt.Sprintf("unknown command %q%s", rest[i], didYouMean(cmd.SuggestionsFor(rest[i]))))
}

func didYouMean(meant []string) string {
	if len(meant) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(meant, " or ") + "?"
}

func help(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND ...]",
		Short: "Tell how a command is used",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return registry.UsageError(fmt.Sprintf("there is no command %q", strings.Join(args, " ")))
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

// directories accepts directories alone. What looks like a command that does not
// exist is refused with what may have been meant.
func (c *commandLine) directories(root *cobra.Command, args []string) error {
	for _, arg := range args {
		if isDir(arg) {
			continue
		}
		if len(args) > 1 && isDir(args[0]) {
			return registry.UsageError(fmt.Sprintf("%q is no directory argument: those contain a slash or are . or ~", arg))
		}
		meant := root.SuggestionsFor(arg)
		if fi, err := os.Stat(arg); err == nil && fi.IsDir() {
			meant = append(meant, "."+string(os.PathSeparator)+arg)
		}
		return registry.UsageError(fmt.Sprintf("unknown command %q%s", arg, didYouMean(meant)))
	}
	return nil
}

// isDir reports whether an argument is meant as a directory.
func isDir(arg string) bool {
	return arg == "." || arg == "~" || !strings.HasPrefix(arg, "-") && strings.ContainsAny(arg, "/"+string(os.PathSeparator))
}

// app puts together the server that the settings describe, for one command.
func (c *commandLine) app(o app.Options) (*app.App, error) {
	o.Environ = c.environ
	a, err := app.New(o)
	c.opened = append(c.opened, a)
	return a, err
}

func (c *commandLine) open() (*registry.Env, error) {
	a, err := c.app(app.Options{Quiet: true})
	if err != nil {
		return nil, err
	}
	return a.Env, nil
}

func (c *commandLine) close() {
	for _, a := range c.opened {
		a.Close()
	}
}

// fail tells why cmd ended and returns the exit code.
func (c *commandLine) fail(cmd *cobra.Command, err error, stdout, stderr io.Writer) int {
	exit := &registry.ExitError{Code: 1, Err: err}
	errors.As(err, &exit)
	if exit.Err == nil {
		return exit.Code
	}
	code, message := fault.Of(exit.Err)
	usage := registry.UsageError("")
	misused := errors.As(err, &usage) || !c.ran
	switch {
	case misused:
		exit.Code, code, message = 2, fault.InvalidParameter, err.Error()
	case errors.Is(err, context.Canceled):
		message = "interrupted"
	case code == fault.Internal: // a person may see the cause
		message = exit.Err.Error()
	}
	if c.JSON {
		object := exit.Object
		if object == nil {
			object = fault.Object{Status: "error", Code: code, Message: message}
		}
		_ = c.Print(stdout, object)
		return exit.Code
	}
	if misused {
		fmt.Fprintf(stderr, "conduit-mcp: %s\nusage: %s\n", message, cmd.UseLine())
		return exit.Code
	}
	fmt.Fprintf(stderr, "conduit-mcp: %s: %s\n", code, message)
	return exit.Code
}

// A build is what a program was built from; what the build did not note of the
// revision is empty.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // of the sources
	Date     string `json:"date,omitempty"`     // of the revision, RFC 3339
	Modified bool   `json:"modified,omitempty"` // the sources were changed since
	Go       string `json:"go"`
}

func thisBuild() build {
	b := build{Version: app.Version, Go: runtime.Version()}
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Date = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func (b build) String() string {
	text := "conduit-mcp " + b.Version
	if b.Revision != "" {
		text += ", revision " + b.Revision[:min(12, len(b.Revision))] + " of " + b.Date
	}
	if b.Modified {
		text += ", modified"
	}
	return text + ", " + b.Go
}

func (c *commandLine) printVersion(cmd *cobra.Command, _ []string) error {
	b := thisBuild()
	switch {
	case c.JSON:
		return c.Print(cmd.OutOrStdout(), b)
	case c.Quiet:
		_, err := fmt.Fprintln(cmd.OutOrStdout(), b.Version)
		return err
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), b)
	return err
}

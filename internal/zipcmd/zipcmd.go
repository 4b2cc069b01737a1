// Package zipcmd is the command line of zip workspaces: conduit-mcp zip.
package zipcmd

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/zipws"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// Exit codes of Main.
const (
	exitFailed   = 1 // anything else
	exitUsage    = 2 // the command line makes no sense
	exitConflict = 3 // the archive was modified by others
	exitSession  = 4 // no such session, or not clear which
	exitUnsafe   = 5 // the archive exceeds a limit, or something leads outside
)

// exitCode is the exit code for an error.
func exitCode(err error) int {
	if errors.As(err, new(usageError)) {
		return exitUsage
	}
	switch code, _ := zipws.Of(err); code {
	case zipws.InvalidParams:
		return exitUsage
	case zipws.ConflictDetected:
		return exitConflict
	case zipws.SessionNotFound, zipws.AmbiguousSession, zipws.NoSessions:
		return exitSession
	case zipws.ZipBomb, zipws.PathTraversal:
		return exitUnsafe
	}
	return exitFailed
}

// A usageError says what is wrong with a command line.
type usageError string

func (u usageError) Error() string { return string(u) }

// Main runs the command that args name, without "zip" itself, and returns its
// exit code. Unlike the tools of the server it may use every archive that the
// user may. lookup finds settings.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, lookup func(string) (string, bool)) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	r := &run{stdin: stdin, stdout: stdout, stderr: stderr}
	err := r.main(ctx, args, lookup)
	if err == nil {
		return 0
	}
	code, message := zipws.Of(err)
	if usage := usageError(""); errors.As(err, &usage) {
		code, message = zipws.InvalidParams, string(usage)
	} else if errors.Is(err, context.Canceled) {
		message = "interrupted"
	} else if code == zipws.Internal { // a person may see the cause
		message = err.Error()
	}
	if r.json {
		r.print(zipws.Failure{Error: zipws.Fault{Code: code, Message: message}})
	} else {
		fmt.Fprintf(stderr, "conduit-mcp zip: %s: %s\n", code, message)
	}
	return exitCode(err)
}

// A run is one command being run.
type run struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	json, quiet    bool
	flags          *flag.FlagSet
	args           []string // without options
	m              *zipws.Manager
}

// A command does what its name says with the arguments of a run.
type command struct {
	name, usage, about string
	options            func(*run) func(context.Context) error // declares options; what it returns is run
}

func (r *run) main(ctx context.Context, args []string, lookup func(string) (string, bool)) error {
	// The general options may stand in front of the command too.
	front := r.newFlags("zip")
	if err := front.Parse(args); errors.Is(err, flag.ErrHelp) {
		return r.help()
	} else if err != nil {
		return usageError(err.Error())
	}
	if args = front.Args(); len(args) == 0 || args[0] == "help" {
		return r.help()
	}
	i := slices.IndexFunc(commands(), func(c command) bool { return c.name == args[0] })
	if i < 0 {
		return usageError(fmt.Sprintf("there is no command %q; help lists them", args[0]))
	}
	c := commands()[i]
	r.flags = r.newFlags(c.name)
	do := c.options(r)
	for rest := args[1:]; ; {
		if err := r.flags.Parse(rest); errors.Is(err, flag.ErrHelp) {
			fmt.Fprintf(r.stdout, "conduit-mcp zip %s\n  %s\n", c.usage, c.about)
			return nil
		} else if err != nil {
			return usageError(err.Error())
		}
		before := len(rest) - r.flags.NArg()
		if before > 0 && rest[before-1] == "--" {
			r.args = append(r.args, r.flags.Args()...)
			break
		}
		if r.flags.NArg() == 0 {
			break
		}
		r.args = append(r.args, r.flags.Arg(0)) // options may follow
		rest = r.flags.Args()[1:]
	}
	s, err := zipws.Load(lookup)
	if err != nil {
		return usageError(err.Error())
	}
	r.m = zipws.New(zipws.Options{Settings: s, Data: s.Path(lookup), Host: everywhere{}, Log: slog.New(slog.DiscardHandler), Now: time.Now})
	return do(ctx)
}

func (r *run) newFlags(name string) *flag.FlagSet {
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.Usage = func() {}
	f.BoolVar(&r.json, "json", r.json, "")
	f.BoolVar(&r.quiet, "quiet", r.quiet, "")
	f.BoolVar(&r.quiet, "q", r.quiet, "")
	return f
}

func (r *run) help() error {
	var b strings.Builder
	b.WriteString("Work in archives as files and sync them back.\n\n")
	for _, c := range commands() {
		fmt.Fprintf(&b, "  conduit-mcp zip %s\n      %s\n", c.usage, c.about)
	}
	b.WriteString(`
SESSION is a name, an id or the start of one, and may be left out where one
session is open. PATH is in the workspace; SESSION:PATH names both. With --json
results and errors are written as the tools write them; with --quiet only what
was asked for. A failure is told by the exit code: 1 in general, 2 for usage,
3 where others have modified the archive, 4 where the session is missing or not
clear, 5 where a limit or a path outside is refused.
`)
	_, err := io.WriteString(r.stdout, b.String())
	return err
}

// print writes v as a line of JSON.
func (r *run) print(v any) error {
	e := json.NewEncoder(r.stdout)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// say writes a line for a person, v in its place with --json, nothing with
// --quiet.
func (r *run) say(v any, format string, args ...any) error {
	switch {
	case r.json:
		return r.print(v)
	case r.quiet:
		return nil
	}
	_, err := fmt.Fprintf(r.stdout, format+"\n", args...)
	return err
}

// warn tells a person what is odd.
func (r *run) warn(warnings []string) {
	if r.json || r.quiet {
		return
	}
	for _, w := range warnings {
		fmt.Fprintln(r.stderr, "warning:", w)
	}
}

// most refuses more than n arguments.
func (r *run) most(n int) error {
	if len(r.args) > n {
		return usageError(fmt.Sprintf("%s: too many arguments (%s); see %s --help", r.flags.Name(), strings.Join(r.args[n:], " "), r.flags.Name()))
	}
	return nil
}

// session is the argument SESSION.
func (r *run) session() (string, error) {
	if err := r.most(1); err != nil || len(r.args) == 0 {
		return "", err
	}
	return strings.TrimSuffix(r.args[0], ":"), nil
}

// place reads PATH, SESSION:PATH or SESSION PATH. Unless optional is set, there
// must be a path.
func (r *run) place(args []string, optional bool) (session string, path zipws.Name, err error) {
	switch len(args) {
	case 0:
		if !optional {
			err = usageError(r.flags.Name() + ": a path is missing")
		}
		return "", "", err
	case 1:
		if s, p, ok := strings.Cut(args[0], ":"); ok {
			return s, zipws.Name(p), nil
		}
		return "", zipws.Name(args[0]), nil
	case 2:
		return args[0], zipws.Name(args[1]), nil
	}
	return "", "", usageError(fmt.Sprintf("%s: too many arguments (%s)", r.flags.Name(), strings.Join(args[2:], " ")))
}

// terminal reports whether a stream is a person's terminal.
func terminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	fi, err := f.Stat()
	return err == nil && fi.Mode()&os.ModeCharDevice != 0
}

// unsaved reports whether err is about changes that were not synced.
func unsaved(err error) bool {
	e := new(fault.Error)
	return errors.As(err, &e) && e.Code == zipws.UnsavedChanges
}

// Package cli is the command line of zip workspaces: conduit-mcp zip.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/conduit-mcp/conduit-mcp/internal/zipws"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// Exit codes beside those of every command.
const (
	exitConflict = 3 // the archive was modified by others
	exitSession  = 4 // no such session, or not clear which
	exitUnsafe   = 5 // the archive exceeds a limit, or something leads outside
)

// Commands returns the command zip with those below it. Unlike the tools of a
// server they may use every archive that the user may.
func Commands(cli *registry.CLI) []*cobra.Command {
	c := &commands{CLI: cli}
	zip := &cobra.Command{
		Use:   "zip",
		Short: "Work in archives as files and sync them back",
		Long: "Work in archives as files and sync them back.\n\n" +
			"SESSION is a name, an id or the start of one, and may be left out where one\n" +
			"session is open. PATH is in the workspace; SESSION:PATH names both. A failure\n" +
			"is told by the exit code: 1 in general, 2 for usage, 3 where others have\n" +
			"modified the archive, 4 where the session is missing or not clear, 5 where a\n" +
			"limit or a path outside is refused.",
	}
	zip.AddCommand(c.open(), c.close(), c.sessions(), c.ls(), c.tree(), c.read(), c.write(), c.delete(), c.grep(),
		c.path(), c.status(), c.diff(), c.sync(), c.prune())
	return []*cobra.Command{zip}
}

// words are those of the command line.
var words = zipws.Words{
	Open: "zip open", Status: "zip status", List: "zip ls", Path: "zip path", Prune: "zip prune --all", Unarchive: "conduit-mcp call write.unarchive",
	Session: "SESSION", Sync: "--sync", Discard: "--no-sync", Force: "--force", Recursive: "--recursive", Lazy: "--lazy", Parts: "--offset and --limit",
	CreateDirs: "zip write", All: "--all", Stale: "--stale", MaxSize: "--max-size",
}

// commands are what the commands share.
type commands struct {
	*registry.CLI
	manager *zipws.Workspaces
}

// A run is one command being run with its arguments.
type run struct {
	*cobra.Command
	*commands
	args []string
}

// command makes a command of f, whose errors get the code and the form that zip
// workspaces have.
func (c *commands) command(use, short string, args cobra.PositionalArgs, f func(ctx context.Context, r *run) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: args,
		ValidArgsFunction: c.completeSession,
		RunE: func(cmd *cobra.Command, args []string) error {
			err := c.load()
			if err == nil {
				err = f(cmd.Context(), &run{cmd, c, args})
			}
			return exit(err)
		},
	}
}

// load makes the manager.
func (c *commands) load() error {
	s, err := registry.LoadSettings[zipws.Settings](c.Lookup)
	if err != nil {
		return registry.UsageError(err.Error())
	}
	c.manager = zipws.New(zipws.Options{Settings: s, Data: s.Dir, Host: everywhere{}, Log: slog.New(slog.DiscardHandler), Now: time.Now, Words: words})
	return nil
}

// completeSession offers the open sessions, as SESSION and as the start of
// SESSION:PATH.
func (c *commands) completeSession(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 || c.load() != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	list, err := c.manager.Sessions(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	session, path, inside := strings.Cut(word, ":")
	var found []cobra.Completion
	for _, s := range list {
		switch {
		case !inside:
			found = append(found, cobra.CompletionWithDesc(s.Name, s.Source))
		case s.Name == session:
			found = append(found, c.completePath(cmd.Context(), session, path)...)
		}
	}
	if inside {
		return found, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// completePath offers what is in the directory that the start of a path names.
func (c *commands) completePath(ctx context.Context, session, start string) []cobra.Completion {
	dir := start[:strings.LastIndexByte(start, '/')+1]
	items, err := c.manager.List(ctx, session, zipws.Name(dir), false)
	if err != nil {
		return nil
	}
	var found []cobra.Completion
	for _, i := range items {
		found = append(found, fmt.Sprintf("%s:%s%s", session, dir, i.Name))
	}
	return found
}

// exit is err with its exit code, and as zip workspaces spell it.
func exit(err error) error {
	usage := registry.UsageError("")
	if err == nil || errors.As(err, &usage) || errors.Is(err, context.Canceled) {
		return err
	}
	code, message := zipws.Of(err)
	e := &registry.ExitError{Code: 1, Object: zipws.Failure{Error: zipws.Fault{Code: code, Message: message}}}
	switch code {
	case zipws.InvalidParams:
		e.Code = 2
	case zipws.ConflictDetected:
		e.Code = exitConflict
	case zipws.SessionNotFound, zipws.AmbiguousSession, zipws.NoSessions:
		e.Code = exitSession
	case zipws.ZipBomb, zipws.PathTraversal:
		e.Code = exitUnsafe
	case zipws.Internal: // a person may see the cause
		message = err.Error()
	}
	e.Err = fault.Hide(code, err, "%s", message)
	return e
}

// say tells v in a line.
func (r *run) say(v any, format string, args ...any) error {
	return r.Result(r.OutOrStdout(), v, format, args...)
}

func (r *run) print(v any) error { return r.CLI.Print(r.OutOrStdout(), v) }

// warn tells a person what is odd.
func (r *run) warn(warnings []string) {
	if r.JSON || r.Quiet {
		return
	}
	for _, w := range warnings {
		fmt.Fprintln(r.ErrOrStderr(), "warning:", w)
	}
}

// session is the argument SESSION.
func (r *run) session() string {
	if len(r.args) == 0 {
		return ""
	}
	return strings.TrimSuffix(r.args[0], ":")
}

// where is like [workspacePath] for a PATH that may be left out: a lone word that
// is no path in the only session is a session, if there is one of it.
func (r *run) where(ctx context.Context, args []string) (session string, path zipws.Name) {
	session, path = workspacePath(args)
	if len(args) != 1 || session != "" {
		return session, path
	}
	_, err := r.manager.List(ctx, "", path, false)
	if code, _ := zipws.Of(err); err == nil || code != zipws.PathNotFound && code != zipws.AmbiguousSession {
		return session, path
	}
	if _, err := r.manager.List(ctx, args[0], "", false); err != nil {
		return session, path
	}
	return args[0], ""
}

// workspacePath reads PATH, SESSION:PATH or SESSION PATH.
func workspacePath(args []string) (session string, path zipws.Name) {
	switch len(args) {
	case 0:
		return "", ""
	case 1:
		if s, p, ok := strings.Cut(args[0], ":"); ok {
			return s, zipws.Name(p)
		}
		return "", zipws.Name(args[0])
	}
	return args[0], zipws.Name(args[1])
}

// terminal reports whether a stream is a person's terminal.
func terminal(stream any) bool {
	f, ok := stream.(interface{ Stat() (fs.FileInfo, error) })
	if !ok {
		return false
	}
	fi, err := f.Stat()
	return err == nil && fi.Mode()&fs.ModeCharDevice != 0
}

// unsaved reports whether err is about changes that were not synced.
func unsaved(err error) bool {
	e := new(fault.Error)
	return errors.As(err, &e) && e.Code == zipws.UnsavedChanges
}

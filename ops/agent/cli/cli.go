// Package cli is the command line of tasks for coding agents: conduit-mcp agent.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/task"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// Commands returns the command agent with those below it. engine returns the
// engine of a server.
func Commands(cli *registry.CLI, engine func(*registry.Env) (*agentcli.Engine, error)) []*cobra.Command {
	c := &commands{CLI: cli, engine: engine}
	agent := &cobra.Command{
		Use:   "agent",
		Short: "Give tasks to coding agents and get back what they changed",
	}
	agent.AddCommand(c.run(), c.health(), c.tasks(), c.show(), c.apply(), c.cancel())
	return []*cobra.Command{agent}
}

// words are those of the command line.
var words = agentcli.Words{
	Health: "agent health", Cancel: "agent cancel", List: "agent tasks", Wait: "agent show --wait", Cursor: "agent show",
	Instructions: "INSTRUCTIONS", Test: "--test", Allowlist: "--allow", Worktree: "--worktree", Env: "--env", Cwd: "--cwd", TaskID: "--id",
}

// commands are what the commands share.
type commands struct {
	*registry.CLI
	engine func(*registry.Env) (*agentcli.Engine, error)
}

// A call is one command being run.
type call struct {
	*cobra.Command
	*registry.CLI
	env    *registry.Env
	engine *agentcli.Engine
	args   []string
	cwd    string
}

// command makes a command of f. Unless cwd is empty it has the option --cwd,
// which that describes.
func (c *commands) command(use, short, cwd string, args cobra.PositionalArgs, f func(ctx context.Context, x *call) error) *cobra.Command {
	dir := ""
	cmd := &cobra.Command{
		Use: use, Short: short, Args: args,
		RunE: func(cmd *cobra.Command, args []string) error {
			x, err := c.open(cmd, args)
			if err != nil {
				return err
			}
			x.cwd = dir
			return f(cmd.Context(), x)
		},
	}
	if cwd != "" {
		cmd.Flags().StringVar(&dir, "cwd", "", cwd+"; the project root by default")
		_ = cmd.MarkFlagDirname("cwd")
	}
	return cmd
}

func (c *commands) open(cmd *cobra.Command, args []string) (*call, error) {
	env, err := c.Open()
	if err != nil {
		return nil, err
	}
	e, err := c.engine(env)
	if err == nil {
		e.Words = words // nothing runs yet
	}
	return &call{Command: cmd, CLI: c.CLI, env: env, engine: e, args: args}, err
}

// place is the directory that --cwd names.
func (x *call) place() (place.Place, error) { return x.env.Paths.Resolve(cmp.Or(x.cwd, ".")) }

func (x *call) print(v any) error { return x.CLI.Print(x.OutOrStdout(), v) }

// failed ends a command whose result has told what failed.
func failed(yes bool) error {
	if yes {
		return &registry.ExitError{Code: 1}
	}
	return nil
}

func (c *commands) run() *cobra.Command {
	var r agentcli.Request
	var env []string
	var test string
	cmd := c.command("run INSTRUCTIONS", "Give a task to an agent", "directory to work in", cobra.ExactArgs(1), func(ctx context.Context, x *call) error {
		if r.Instructions = x.args[0]; r.Instructions == "-" {
			b, err := io.ReadAll(io.LimitReader(x.InOrStdin(), maxInstructions))
			if err != nil {
				return err
			}
			r.Instructions = string(b)
		}
		r.Env, r.DefaultCwd = map[string]string{}, x.cwd == ""
		for _, entry := range env {
			name, value, ok := strings.Cut(entry, "=")
			if !ok {
				return registry.UsageError(fmt.Sprintf("--env %q is not NAME=VALUE", entry))
			}
			r.Env[name] = value
		}
		if x.Flags().Changed("test") {
			r.TestCommand = &test
		}
		var err error
		if r.Cwd, err = x.place(); err != nil {
			return err
		}
		tell := func(ev task.Event) {
			if !x.Quiet {
				fmt.Fprintf(x.ErrOrStderr(), "%-8s %s\n", ev.Kind, ev.Text)
			}
		}
		res, err := x.engine.Run(ctx, r, tell)
		if err == nil {
			err = x.result(res)
		}
		return errors.Join(err, failed(err == nil && !res.OK))
	})
	cmd.Long = "Give a task to an agent. INSTRUCTIONS are one argument, or - for standard input.\n" +
		"What the agent does goes to standard error, its answer and the diff to standard output."
	cmd.Flags().StringVar(&r.Provider, "provider", "", "`ID` of the agent")
	cmd.Flags().StringArrayVar(&r.Allowlist, "allow", nil, "`GLOB` of what may change; can be repeated")
	cmd.Flags().StringArrayVar(&env, "env", nil, "`NAME=VALUE` for agent and tests; can be repeated")
	cmd.Flags().StringVar(&test, "test", "", "shell `COMMAND` that checks the result")
	cmd.Flags().StringVar(&r.TaskID, "id", "", "`NAME` of the task")
	cmd.Flags().BoolVar(&r.Worktree, "worktree", false, "work in a copy of the git working tree")
	cmd.Flags().BoolVar(&r.DryRun, "dry-run", false, "show prompt and command only")
	_ = cmd.RegisterFlagCompletionFunc("provider", c.completeProvider)
	return cmd
}

// maxInstructions bounds what is read of stdin, in bytes.
const maxInstructions = 16 << 20

// completeProvider offers the agents that are configured.
func (c *commands) completeProvider(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	x, err := c.open(cmd, args)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return x.engine.Providers(), cobra.ShellCompDirectiveNoFileComp
}

// completeTask offers the tasks that are known.
func (c *commands) completeTask(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	x, err := c.open(cmd, args)
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	cwd, err := x.place()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	found, _, err := x.engine.List(cmd.Context(), cwd, listed)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var list []cobra.Completion
	for _, s := range found {
		list = append(list, cobra.CompletionWithDesc(s.TaskID, s.Status))
	}
	return list, cobra.ShellCompDirectiveNoFileComp
}

// result shows a result to a person, or as JSON.
func (x *call) result(r *agentcli.Result) error {
	if x.JSON {
		return x.print(r)
	}
	out, errs := x.OutOrStdout(), x.ErrOrStderr()
	if r.Attempts == 0 && r.OK { // nothing ran
		_, err := fmt.Fprintf(out, "%s %s\nin %s\n\n%s", r.Invocation.Cmd, strings.Join(r.Invocation.Args, " "), r.Invocation.Cwd, r.Prompt)
		return err
	}
	if text := cmp.Or(r.Result.Summary, r.Result.Raw); text != "" {
		fmt.Fprintln(out, strings.TrimSpace(text))
	}
	if r.Result.Diff != "" {
		fmt.Fprintf(out, "\n%s", r.Result.Diff)
	}
	if x.Quiet {
		return nil
	}
	for _, w := range r.PolicyWarnings {
		fmt.Fprintf(errs, "warning  %s: %s\n", w.Code, w.Message)
	}
	for _, e := range r.Errors {
		fmt.Fprintf(errs, "error    %s\n", e)
	}
	fmt.Fprintf(errs, "%s  task %s, %d files changed", r.Status, r.TaskID, len(r.Result.Paths))
	if r.Worktree != nil && r.Worktree.Ref != "" {
		fmt.Fprintf(errs, " in %s; conduit-mcp agent apply %s takes them over", r.Worktree.Ref, r.TaskID)
	}
	if r.AuditPath != "" {
		fmt.Fprintf(errs, "; audit %s", r.AuditPath)
	}
	_, err := fmt.Fprintln(errs)
	return err
}

func (c *commands) health() *cobra.Command {
	cmd := c.command("health [ID ...]", "Check which agents can be used", "", cobra.ArbitraryArgs, func(ctx context.Context, x *call) error {
		found := x.engine.Check(ctx, x.args)
		if x.JSON {
			if err := x.print(found); err != nil {
				return err
			}
		}
		bad := false
		for _, h := range found {
			bad = bad || !h.OK && len(x.args) > 0 // of all configured ones not each needs to be installed
			if !x.JSON {
				fmt.Fprintf(x.OutOrStdout(), "%-12s %s\n", h.ID, cmp.Or(h.Reason, "ok  "+h.Version))
			}
		}
		return failed(bad)
	})
	cmd.ValidArgsFunction = c.completeProvider
	return cmd
}

// listed is how many tasks are listed.
const listed = 100

func (c *commands) tasks() *cobra.Command {
	return c.command("tasks", "List tasks, the latest first", "directory that tasks ran in", cobra.NoArgs, func(ctx context.Context, x *call) error {
		cwd, err := x.place()
		if err != nil {
			return err
		}
		found, more, err := x.engine.List(ctx, cwd, listed)
		if err != nil {
			return err
		}
		if x.JSON {
			return x.print(found)
		}
		for _, s := range found {
			if x.Quiet {
				fmt.Fprintln(x.OutOrStdout(), s.TaskID)
				continue
			}
			fmt.Fprintf(x.OutOrStdout(), "%s  %-11s  %-10s  %s  %s\n", s.StartedAt, s.Status, s.Provider, s.TaskID, s.Cwd)
		}
		if more > 0 && !x.Quiet {
			fmt.Fprintf(x.ErrOrStderr(), "and %d more\n", more)
		}
		return nil
	})
}

// patience is how long show --wait waits at a time.
const patience = 5 * time.Minute

func (c *commands) show() *cobra.Command {
	wait := false
	cmd := c.command("show ID", "Show a task, its events and result", "directory that the task ran in", cobra.ExactArgs(1), func(ctx context.Context, x *call) error {
		cwd, err := x.place()
		if err != nil {
			return err
		}
		cursor, waited := "0", time.Duration(0)
		if wait {
			waited = patience
		}
		for {
			s, err := x.engine.Read(ctx, x.args[0], cursor, waited, cwd)
			if err != nil {
				return err
			}
			if !x.JSON && !x.Quiet {
				for _, ev := range s.Events {
					fmt.Fprintf(x.ErrOrStderr(), "%s  %-8s %s\n", ev.Time, ev.Kind, ev.Text)
				}
			}
			cursor = s.Cursor
			if wait && !task.Ended(s.Status) {
				continue
			}
			switch {
			case x.JSON:
				err = x.print(s)
			case s.Result != nil:
				err = x.result(s.Result)
			default:
				_, err = fmt.Fprintln(x.OutOrStdout(), s.Status)
			}
			return errors.Join(err, failed(err == nil && s.Result != nil && !s.Result.OK))
		}
	})
	cmd.Flags().BoolVar(&wait, "wait", false, "until the task is over")
	cmd.ValidArgsFunction = c.completeTask
	return cmd
}

func (c *commands) apply() *cobra.Command {
	return c.one("apply ID", "Take over the changes of a worktree task", func(ctx context.Context, x *call, cwd place.Place) (any, string, error) {
		a, err := x.engine.Apply(ctx, x.args[0], cwd)
		return a, strings.Join(a.Paths, "\n"), err
	})
}

func (c *commands) cancel() *cobra.Command {
	return c.one("cancel ID", "End a running task, also of another server", func(ctx context.Context, x *call, cwd place.Place) (any, string, error) {
		s, err := x.engine.Cancel(ctx, x.args[0], cwd)
		return s, s.Status, err
	})
}

// one makes a command whose argument is one task.
func (c *commands) one(use, short string, f func(ctx context.Context, x *call, cwd place.Place) (v any, text string, err error)) *cobra.Command {
	cmd := c.command(use, short, "directory that the task ran in", cobra.ExactArgs(1), func(ctx context.Context, x *call) error {
		cwd, err := x.place()
		if err != nil {
			return err
		}
		v, text, err := f(ctx, x, cwd)
		if err != nil {
			return err
		}
		return x.Result(x.OutOrStdout(), v, "%s", text)
	})
	cmd.ValidArgsFunction = c.completeTask
	return cmd
}

// Package agentcmd is the agent command: tasks for command line agents from a
// terminal, with what the agent does shown as it happens.
package agentcmd

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/task"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// A Host is what the command is given by the program.
type Host struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Engine         func() (*agentcli.Engine, error) // called once, where the arguments are in order
	Resolve        func(path string) (place.Place, error)
}

// Usage tells how the command is called.
const Usage = `usage: conduit-mcp agent COMMAND

  run --provider ID [OPTIONS] INSTRUCTIONS   give a task to an agent, - for
                                    instructions on stdin; events go to
                                    stderr, answer and diff to stdout
      --cwd DIR          where to work, instead of the project root
      --allow GLOB       what may change; can be repeated
      --env NAME=VALUE   for agent and tests; can be repeated
      --test COMMAND     shell command that checks the result
      --id NAME          name of the task
      --worktree         work in a copy of the git working tree
      --dry-run          show prompt and command only
      --json             the whole result as JSON
  health [--json] [ID …]            check which agents can be used
  tasks [--json] [--cwd DIR]        list tasks, the latest first
  show [--json] [--wait] [--cwd DIR] ID      a task, its events and result
  apply [--cwd DIR] ID              take over the changes of a worktree task
  cancel [--cwd DIR] ID             end a running task, also of another server
`

// Main runs the command and returns the exit code: 0, 1 where the task or the
// check failed, 2 for arguments that are none.
func Main(ctx context.Context, args []string, h Host) int {
	if len(args) == 0 {
		fmt.Fprint(h.Stderr, Usage)
		return 2
	}
	commands := map[string]func(context.Context, *command) int{
		"run": run, "health": health, "tasks": tasks, "show": show, "apply": apply, "cancel": cancel}
	f, known := commands[args[0]]
	if !known {
		fmt.Fprint(h.Stderr, Usage)
		return 2
	}
	c := &command{Host: h, name: args[0], flags: flag.NewFlagSet("agent "+args[0], flag.ContinueOnError)}
	c.flags.SetOutput(io.Discard)
	c.flags.BoolVar(&c.json, "json", false, "")
	c.args = args[1:]
	defer func() {
		if c.engine != nil {
			c.engine.Close()
		}
	}()
	return f(ctx, c)
}

// A command is one run of a subcommand.
type command struct {
	Host
	name   string
	flags  *flag.FlagSet
	args   []string
	json   bool
	cwd    string
	engine *agentcli.Engine
}

// parse reads flags, which may stand anywhere, and returns the other arguments,
// of which there must be from least to most. Where code is not 0 the command
// ends with it.
func (c *command) parse(least, most int) (plain []string, code int) {
	rest := c.args
	for {
		if err := c.flags.Parse(rest); err != nil {
			return nil, c.misused(err.Error())
		}
		if c.flags.NArg() == 0 {
			break
		}
		plain = append(plain, c.flags.Arg(0))
		rest = c.flags.Args()[1:]
	}
	if len(plain) < least || len(plain) > most {
		return nil, c.misused(fmt.Sprintf("agent %s takes other arguments", c.name))
	}
	var err error
	if c.engine, err = c.Engine(); err != nil {
		return nil, c.complain(err)
	}
	return plain, 0
}

func (c *command) misused(why string) int {
	fmt.Fprintf(c.Stderr, "conduit-mcp: %s\n%s", why, Usage)
	return 2
}

func (c *command) complain(err error) int {
	code, message := fault.Of(err)
	if code == fault.Internal {
		message = err.Error()
	}
	fmt.Fprintf(c.Stderr, "conduit-mcp: %s: %s\n", code, message)
	return 1
}

func (c *command) print(v any) {
	enc := json.NewEncoder(c.Stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	_ = enc.Encode(v)
}

func (c *command) place() (place.Place, error) { return c.Resolve(cmp.Or(c.cwd, ".")) }

// list is a flag that can be repeated.
type list []string

func (l *list) String() string     { return strings.Join(*l, " ") }
func (l *list) Set(s string) error { *l = append(*l, s); return nil }

func run(ctx context.Context, c *command) int {
	var r agentcli.Request
	var allow, env list
	var test string
	c.flags.StringVar(&r.Provider, "provider", "", "")
	c.flags.StringVar(&c.cwd, "cwd", "", "")
	c.flags.Var(&allow, "allow", "")
	c.flags.Var(&env, "env", "")
	c.flags.StringVar(&test, "test", "", "")
	c.flags.StringVar(&r.TaskID, "id", "", "")
	c.flags.BoolVar(&r.Worktree, "worktree", false, "")
	c.flags.BoolVar(&r.DryRun, "dry-run", false, "")
	args, code := c.parse(1, 1)
	if code != 0 {
		return code
	}
	if r.Instructions = args[0]; r.Instructions == "-" {
		b, err := io.ReadAll(io.LimitReader(c.Stdin, maxInstructions))
		if err != nil {
			return c.complain(err)
		}
		r.Instructions = string(b)
	}
	r.Allowlist, r.Env, r.DefaultCwd = allow, map[string]string{}, c.cwd == ""
	for _, entry := range env {
		name, value, ok := strings.Cut(entry, "=")
		if !ok {
			return c.misused(fmt.Sprintf("--env %q is not NAME=VALUE", entry))
		}
		r.Env[name] = value
	}
	if slices.Contains(setFlags(c.flags), "test") {
		r.TestCommand = &test
	}
	var err error
	if r.Cwd, err = c.place(); err != nil {
		return c.complain(err)
	}
	res, err := c.engine.Run(ctx, r, func(ev task.Event) { fmt.Fprintf(c.Stderr, "%-8s %s\n", ev.Kind, ev.Text) })
	if err != nil {
		return c.complain(err)
	}
	c.result(res)
	if !res.OK {
		return 1
	}
	return 0
}

// maxInstructions bounds what is read of stdin, in bytes.
const maxInstructions = 16 << 20

func setFlags(flags *flag.FlagSet) []string {
	var names []string
	flags.Visit(func(f *flag.Flag) { names = append(names, f.Name) })
	return names
}

// result shows a result to a person, or as JSON.
func (c *command) result(r *agentcli.Result) {
	if c.json {
		c.print(r)
		return
	}
	if r.Attempts == 0 && r.OK { // nothing ran
		fmt.Fprintf(c.Stdout, "%s %s\nin %s\n\n%s", r.Invocation.Cmd, strings.Join(r.Invocation.Args, " "), r.Invocation.Cwd, r.Prompt)
		return
	}
	if text := cmp.Or(r.Result.Summary, r.Result.Raw); text != "" {
		fmt.Fprintln(c.Stdout, strings.TrimSpace(text))
	}
	if r.Result.Diff != "" {
		fmt.Fprintf(c.Stdout, "\n%s", r.Result.Diff)
	}
	for _, w := range r.PolicyWarnings {
		fmt.Fprintf(c.Stderr, "warning  %s: %s\n", w.Code, w.Message)
	}
	for _, e := range r.Errors {
		fmt.Fprintf(c.Stderr, "error    %s\n", e)
	}
	fmt.Fprintf(c.Stderr, "%s  task %s, %d files changed", r.Status, r.TaskID, len(r.Result.Paths))
	if r.Worktree != nil && r.Worktree.Ref != "" {
		fmt.Fprintf(c.Stderr, " in %s; conduit-mcp agent apply %s takes them over", r.Worktree.Ref, r.TaskID)
	}
	if r.AuditPath != "" {
		fmt.Fprintf(c.Stderr, "; audit %s", r.AuditPath)
	}
	fmt.Fprintln(c.Stderr)
}

func health(ctx context.Context, c *command) int {
	ids, code := c.parse(0, 100)
	if code != 0 {
		return code
	}
	found := c.engine.Check(ctx, ids)
	if c.json {
		c.print(found)
	}
	for _, h := range found {
		if !h.OK && len(ids) > 0 { // of all configured ones not each needs to be installed
			code = 1
		}
		if !c.json {
			fmt.Fprintf(c.Stdout, "%-12s %s\n", h.ID, cmp.Or(h.Reason, "ok  "+h.Version))
		}
	}
	return code
}

func tasks(ctx context.Context, c *command) int {
	c.flags.StringVar(&c.cwd, "cwd", "", "")
	if _, code := c.parse(0, 0); code != 0 {
		return code
	}
	cwd, err := c.place()
	if err != nil {
		return c.complain(err)
	}
	found, more, err := c.engine.List(ctx, cwd, 100)
	if err != nil {
		return c.complain(err)
	}
	if c.json {
		c.print(found)
		return 0
	}
	for _, s := range found {
		fmt.Fprintf(c.Stdout, "%s  %-11s  %-10s  %s  %s\n", s.StartedAt, s.Status, s.Provider, s.TaskID, s.Cwd)
	}
	if more > 0 {
		fmt.Fprintf(c.Stderr, "and %d more\n", more)
	}
	return 0
}

// waited is how long show --wait waits at a time.
const waited = 5 * time.Minute

func show(ctx context.Context, c *command) int {
	wait := c.flags.Bool("wait", false, "")
	c.flags.StringVar(&c.cwd, "cwd", "", "")
	args, code := c.parse(1, 1)
	if code != 0 {
		return code
	}
	cwd, err := c.place()
	if err != nil {
		return c.complain(err)
	}
	cursor := "0"
	for {
		patience := time.Duration(0)
		if *wait {
			patience = waited
		}
		s, err := c.engine.Read(ctx, args[0], cursor, patience, cwd)
		if err != nil {
			return c.complain(err)
		}
		if !c.json {
			for _, ev := range s.Events {
				fmt.Fprintf(c.Stderr, "%s  %-8s %s\n", ev.Time, ev.Kind, ev.Text)
			}
		}
		cursor = s.Cursor
		if *wait && !task.Ended(s.Status) {
			continue
		}
		switch {
		case c.json:
			c.print(s)
		case s.Result != nil:
			c.result(s.Result)
		default:
			fmt.Fprintln(c.Stdout, s.Status)
		}
		if s.Result != nil && !s.Result.OK {
			return 1
		}
		return 0
	}
}

func apply(ctx context.Context, c *command) int {
	return c.one(func(id string, cwd place.Place) (any, string, error) {
		a, err := c.engine.Apply(ctx, id, cwd)
		return a, strings.Join(a.Paths, "\n"), err
	})
}

func cancel(ctx context.Context, c *command) int {
	return c.one(func(id string, cwd place.Place) (any, string, error) {
		s, err := c.engine.Cancel(ctx, id, cwd)
		return s, s.Status, err
	})
}

// one runs a command whose argument is one task.
func (c *command) one(f func(id string, cwd place.Place) (v any, text string, err error)) int {
	c.flags.StringVar(&c.cwd, "cwd", "", "")
	args, code := c.parse(1, 1)
	if code != 0 {
		return code
	}
	cwd, err := c.place()
	if err != nil {
		return c.complain(err)
	}
	v, text, err := f(args[0], cwd)
	if err != nil {
		return c.complain(err)
	}
	if c.json {
		c.print(v)
	} else {
		fmt.Fprintln(c.Stdout, text)
	}
	return 0
}

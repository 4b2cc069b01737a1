package cmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/conduit-mcp/conduit-mcp/internal/app"
	"github.com/conduit-mcp/conduit-mcp/internal/clients"
	"github.com/conduit-mcp/conduit-mcp/internal/logfile"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// logTail is how much of the log doctor shows, in bytes.
const logTail = 2048

// doctor puts the server together as serving would, but for background work, and
// prints what its settings amount to. It lists each allowed directory through the
// chain, where list is served, and shows a client's configuration. The exit code
// is 1 where the server would not start or such a call fails, and with --strict
// where there is anything to warn of.
func (c *commandLine) doctor() *cobra.Command {
	strict, id := false, clients.Default
	cmd := &cobra.Command{
		Use:   "doctor [DIRECTORY ...]",
		Short: "Check settings, directories and log, and show what to paste into a client",
		Long: "Check settings, directories and log, and show what to paste into a client.\n\n" +
			"What is pasted makes the client start the server with all that was checked. With\n" +
			"--quiet it is all that is printed.",
		Example: "  conduit-mcp doctor ~/projects\n  conduit-mcp doctor --client zed --quiet ~/projects",
		Args:    c.directories,
		RunE: func(cmd *cobra.Command, args []string) error {
			client, ok := clients.Find(id)
			if !ok {
				return registry.UsageError(fmt.Sprintf("--client %q is none of %s", id, strings.Join(clients.IDs(), ", ")))
			}
			a, err := c.app(app.Options{Dirs: args})
			r := examine(a, err)
			for i, s := range r.Settings {
				if c.inFile[s.From] {
					r.Settings[i].From += " in " + c.envFile
				}
			}
			r.configure(a, client)
			out := cmd.OutOrStdout()
			switch {
			case c.JSON:
				err = c.Print(out, r)
			case c.Quiet && r.Error == nil:
				_, err = fmt.Fprintln(out, r.snippet)
			default:
				err = r.print(out, client)
			}
			if err == nil && (r.Error != nil || !r.selfTestGood() || strict && len(r.Warnings) > 0) {
				err = &registry.ExitError{Code: 1}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "fail where there is anything to warn of")
	cmd.Flags().StringVar(&id, "client", id, "show the configuration of `CLIENT`: "+strings.Join(clients.IDs(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("client", cobra.FixedCompletions(clients.IDs(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// A report is what doctor finds.
type report struct {
	Version  string         `json:"version"`
	Error    *fault.Object  `json:"error,omitempty"` // why the server would not start
	Warnings []string       `json:"warnings"`
	Allowed  []string       `json:"allowed_paths,omitempty"`
	Denied   []string       `json:"denied_paths,omitempty"`
	Toolsets []toolsetState `json:"toolsets,omitempty"`
	Settings []settingState `json:"settings,omitempty"`
	Log      logState       `json:"log"`
	SelfTest []trial        `json:"self_test,omitempty"`
	Snippet  any            `json:"client_configuration,omitempty"` // a string where it is no JSON

	snippet string // the same as text
}

type toolsetState struct {
	Name    string `json:"name"`
	Summary string `json:"summary"`
	Served  bool   `json:"served"`
}

type settingState struct {
	Variable string `json:"variable"`
	Value    any    `json:"value"`
	From     string `json:"from,omitempty"` // the variable that gives it; left out for the default
}

type logState struct {
	Path  string   `json:"path"`
	Bytes int64    `json:"bytes"`
	Tail  []string `json:"tail,omitempty"`
}

// A trial is a call that doctor made.
type trial struct {
	Call  string `json:"call"`
	Error string `json:"error,omitempty"`
}

func (r *report) selfTestGood() bool {
	return !slices.ContainsFunc(r.SelfTest, func(t trial) bool { return t.Error != "" })
}

func (r *report) warn(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}

// examine makes the report on a, whose making ended with err.
func examine(a *app.App, err error) *report {
	r := &report{Version: app.Version, Warnings: []string{}}
	r.log(a.Log)
	if err != nil {
		code, message := fault.Of(err)
		r.Error = &fault.Object{Status: "error", Code: code, Message: message}
		return r
	}
	r.Allowed, r.Denied = a.Roots.Dirs(), a.Roots.DeniedRules()
	for _, s := range a.Skipped {
		_, message := fault.Of(s)
		r.warn("%s", message)
	}
	if !a.Explicit {
		r.warn("CONDUIT_ALLOWED_PATHS is not set; set it to only what is needed")
	}
	unknown, err := a.UnknownVariables()
	if err != nil {
		r.warn("%v", err)
	}
	for _, u := range unknown {
		meant := ""
		if u.Nearest != "" {
			meant = "; " + u.Nearest + " is one"
		}
		r.warn("%s is set and is no setting%s", u.Name, meant)
	}
	linked, err := registry.Toolsets()
	if err != nil {
		r.warn("%v", err)
	}
	for _, t := range linked {
		served := slices.ContainsFunc(a.Toolsets, func(s registry.Toolset) bool { return s.Name == t.Name })
		r.Toolsets = append(r.Toolsets, toolsetState{t.Name, t.Summary, served})
	}
	active, err := a.Active()
	if err != nil {
		r.warn("%v", err)
	}
	for _, s := range active {
		r.Settings = append(r.Settings, settingState{s.Env, s.Value, s.From})
	}
	r.SelfTest = selfTest(a)
	return r
}

// configure adds what makes a client start a server like a.
func (r *report) configure(a *app.App, client clients.Client) {
	if r.Error != nil {
		return
	}
	given, secrets, err := a.Given()
	if err != nil {
		r.warn("%v", err)
		return
	}
	for _, s := range secrets {
		r.warn("%s is a secret and not in the client's configuration; write it there by hand", s)
	}
	self, err := os.Executable()
	if err != nil {
		self = "conduit-mcp"
	}
	r.snippet = client.Snippet(clients.Server{Command: self, Env: given})
	if r.Snippet = r.snippet; !client.TOML {
		r.Snippet = json.RawMessage(r.snippet)
	}
}

func (r *report) log(l *logfile.Log) {
	r.Log.Path = l.Path
	switch {
	case l.Path == logfile.Off:
		return
	case l.Err != nil:
		r.warn("the log %s cannot be written: %v; the server runs without one", l.Path, l.Err)
		r.Log.Tail = l.Remembered()
		return
	}
	fi, err := l.File().Stat()
	if err != nil {
		r.warn("the log: %v", err)
		return
	}
	r.Log.Bytes = fi.Size()
	if tail, err := logfile.Tail(l.Path, logTail); err == nil {
		for line := range strings.Lines(tail) {
			r.Log.Tail = append(r.Log.Tail, strings.TrimSuffix(line, "\n"))
		}
	}
}

// selfTest lists each allowed directory through the chain.
func selfTest(a *app.App) []trial {
	tool, ok := a.Set.Tool("list")
	if !ok {
		return nil
	}
	var trials []trial
	for _, dir := range a.Roots.Dirs() {
		try := trial{Call: tool.Name + " " + dir}
		args, err := json.Marshal(map[string]any{tool.Discriminator: "entries", "path": dir, "max_results": 1})
		if err == nil {
			var res *mcp.CallToolResult
			if res, err = a.Call(context.Background(), tool.Name, args); err == nil && res.IsError {
				var b []byte
				b, err = json.Marshal(res.Content)
				try.Error = string(b)
			}
		}
		if err != nil {
			try.Error = err.Error()
		}
		trials = append(trials, try)
	}
	return trials
}

// print writes the report for a person.
func (r *report) print(out io.Writer, client clients.Client) error {
	var b strings.Builder
	fmt.Fprintf(&b, "conduit-mcp %s\n", r.Version)
	if r.snippet != "" {
		fmt.Fprintf(&b, "\nFor %s: %s\n(other clients: --client NAME, see doctor --help)\n\n%s\n", client.Title, client.Where(), r.snippet)
	}
	if r.Error != nil {
		fmt.Fprintf(&b, "\nThe server would not start.\n  %s: %s\n", r.Error.Code, r.Error.Message)
	}
	section := func(title string, lines []string) {
		if len(lines) > 0 {
			fmt.Fprintf(&b, "\n%s\n  %s\n", title, strings.Join(lines, "\n  "))
		}
	}
	section("To mind", r.Warnings)
	section("Allowed directories", r.Allowed)
	section("Denied within them", r.Denied)
	var toolsets, settings, trials []string
	for _, t := range r.Toolsets {
		served := "not served"
		if t.Served {
			served = "served"
		}
		toolsets = append(toolsets, fmt.Sprintf("%-12s %-11s %s", t.Name, served, t.Summary))
	}
	section("Toolsets", toolsets)
	for _, s := range r.Settings {
		from := "default"
		if s.From != "" {
			from = "from " + s.From
		}
		value, _ := json.Marshal(s.Value)
		settings = append(settings, fmt.Sprintf("%-42s %s (%s)", s.Variable, value, from))
	}
	section("Settings", settings)
	if r.Log.Path == logfile.Off {
		section("Log", []string{"off (CONDUIT_LOG_FILE_PATH is NONE)"})
	} else {
		lines := []string{fmt.Sprintf("%s, %d bytes", r.Log.Path, r.Log.Bytes)}
		for _, l := range r.Log.Tail {
			lines = append(lines, "| "+l)
		}
		section("Log", lines)
	}
	for _, t := range r.SelfTest {
		if t.Error == "" {
			trials = append(trials, "well: "+t.Call)
		} else {
			trials = append(trials, "FAILED: "+t.Call+": "+t.Error)
		}
	}
	if trials == nil && r.Error == nil {
		trials = []string{"skipped: no tool that is served lists directories"}
	}
	section("Self-test", trials)
	_, err := io.WriteString(out, b.String())
	return err
}

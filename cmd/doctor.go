package cmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/internal/logfile"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// logTail is how much of the log doctor shows, in bytes.
const logTail = 2048

// doctor checks the settings as the server would, prints what they amount to,
// runs a call through the chain, and shows a client's configuration. The exit
// code is 1 where the server would not start.
func doctor(args []string, lookup func(string) (string, bool), out io.Writer) int {
	a, err := compose(lookup, args, false)
	defer a.close()
	fmt.Fprintf(out, "conduit-mcp %s\n\n", version)
	if err != nil {
		code, message := fault.Of(err)
		fmt.Fprintf(out, "The server would not start.\n  %s: %s\n", code, message)
		a.reportLog(out)
		return 1
	}
	fmt.Fprintln(out, "Allowed directories")
	for _, dir := range a.roots.Dirs() {
		fmt.Fprintln(out, "  "+dir)
	}
	for _, s := range a.skipped {
		_, message := fault.Of(s)
		fmt.Fprintln(out, "  left out: "+message)
	}
	if !a.explicit {
		fmt.Fprintln(out, "  (the default; set CONDUIT_ALLOWED_PATHS to only what is needed)")
	}
	if rules := a.roots.DeniedRules(); len(rules) > 0 {
		fmt.Fprintln(out, "\nDenied within them")
		for _, rule := range rules {
			fmt.Fprintln(out, "  "+rule)
		}
	}
	fmt.Fprintln(out, "\nSettings")
	for _, s := range a.set.Settings(serverSettings()...) {
		text, given := lookup(s.Env)
		if !given || strings.TrimSpace(text) == "" {
			text = s.Default + " (default)"
		}
		fmt.Fprintf(out, "  %-42s %s\n", s.Env, text)
	}
	a.reportLog(out)
	ok := a.selfTest(out)
	a.snippet(out)
	if !ok {
		return 1
	}
	return 0
}

func (a *app) reportLog(out io.Writer) {
	fmt.Fprintln(out, "\nLog")
	switch {
	case a.log.Path == logfile.Off:
		fmt.Fprintln(out, "  off (CONDUIT_LOG_FILE_PATH is NONE)")
		return
	case a.log.Err != nil:
		fmt.Fprintf(out, "  %s cannot be written: %v; the server runs without a log\n", a.log.Path, a.log.Err)
		for _, line := range a.log.Remembered() {
			fmt.Fprintln(out, "  "+line)
		}
		return
	}
	fi, err := a.log.File().Stat()
	if err != nil {
		fmt.Fprintf(out, "  %s: %v\n", a.log.Path, err)
		return
	}
	fmt.Fprintf(out, "  %s, %d bytes\n", a.log.Path, fi.Size())
	if tail, err := logfile.Tail(a.log.Path, logTail); err == nil {
		for line := range strings.Lines(tail) {
			fmt.Fprint(out, "  | "+line)
		}
	}
}

// selfTest lists each allowed directory through the chain, or tells what fails.
func (a *app) selfTest(out io.Writer) bool {
	fmt.Fprintln(out, "\nSelf-test")
	tool, ok := a.set.Tool("list")
	if !ok {
		fmt.Fprintln(out, "  skipped: the toolsets leave out the tool list")
		return true
	}
	good := true
	for _, dir := range a.roots.Dirs() {
		args, err := json.Marshal(map[string]any{tool.Discriminator: "entries", "path": dir, "max_results": 1})
		if err != nil {
			return false
		}
		res, err := a.mux.Call(context.Background(), tool.Name, args)
		switch {
		case err != nil:
			fmt.Fprintf(out, "  FAILED to list %s: %v\n", dir, err)
			good = false
		case res.IsError:
			b, _ := json.Marshal(res.Content)
			fmt.Fprintf(out, "  FAILED to list %s: %s\n", dir, b)
			good = false
		default:
			fmt.Fprintf(out, "  listed %s\n", dir)
		}
	}
	return good
}

// snippet prints what most clients take as configuration.
func (a *app) snippet(out io.Writer) {
	self, err := os.Executable()
	if err != nil {
		self = "conduit-mcp"
	}
	fmt.Fprintf(out, "\nFor a client's configuration (mcp.json, claude_desktop_config.json, settings.json …)\n%s\n", Snippet(self, a.roots.Dirs()))
}

// Snippet returns the mcpServers object with which a client starts command over
// the given allowed directories.
func Snippet(command string, dirs []string) string {
	type server struct {
		Command string            `json:"command"`
		Env     map[string]string `json:"env"`
	}
	b, err := json.MarshalIndent(map[string]any{"mcpServers": map[string]server{
		"conduit": {command, map[string]string{"CONDUIT_ALLOWED_PATHS": strings.Join(dirs, string(os.PathListSeparator))}},
	}}, "", "  ")
	if err != nil {
		return ""
	}
	return string(b)
}

package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// A Toolset is a family of tools as a value: everything that a package below
// ops/ adds to the server beside its ops. Name and Summary are required; what is
// nil the family does without.
type Toolset struct {
	Name    string // by which CONDUIT_TOOLSETS picks it: lower-case letters and digits
	Summary string // one sentence, which heads its tools in documents and in doctor
	Default bool   // served where CONDUIT_TOOLSETS is not set

	// Instructions reach the model once, with the first exchange.
	Instructions []Instruction

	// Own returns the places where the toolset keeps what is its own: absolute
	// paths, and globs that match anywhere ("*.lock"). They are denied
	// to every path parameter in every configuration, whether the toolset is
	// served or not. Of env all is set but Paths, Server and HTTP. Where an error
	// comes with them, the places returned still count.
	Own func(env *Env) ([]string, error)

	// Start is the toolset's background work. It runs in a goroutine of its own
	// while a server serves the toolset, never below a command, and returns soon
	// after ctx is done: the server waits for it, before it closes what OnClose
	// was told of. An error or a panic is logged and ends this work alone.
	Start func(ctx context.Context, env *Env) error

	// Commands are the toolset's verbs on the command line. They are there
	// whether it is served or not.
	Commands func(cli *CLI) []*cobra.Command

	// HTTP is what the toolset adds to an HTTP server that serves it.
	HTTP func(env *Env) (HTTP, error)

	// Middleware wraps every call while the toolset is served.
	Middleware []Link

	// Variables are those that the toolset sets for the processes it starts and
	// so finds in its own environment, beside the settings of its ops.
	Variables []string
}

// An Instruction is a sentence or more for the model.
type Instruction struct {
	Text  string
	Needs []string // IDs of the ops it speaks of; it is left out unless all are served
}

// A Link is a middleware and its place in the chain.
type Link struct {
	After string // a stage of the standard chain: see package middleware
	New   func(env *Env) (Middleware, error)
}

// HTTP is what a toolset adds to an HTTP server.
type HTTP struct {
	// Routes are handlers by pattern, as [http.ServeMux] has them.
	Routes map[string]http.Handler
	// Gate sees every tools/call before it is run. Where it does not let the call
	// pass it has written the whole response.
	Gate func(w http.ResponseWriter, r *http.Request, tool string, args json.RawMessage) (pass bool)
	// Ready tells why the toolset cannot do its work yet; nil once it can.
	Ready func(ctx context.Context) error
}

// CLI is the command line that the commands of toolsets are part of. Its fields
// are set once the arguments are parsed.
type CLI struct {
	JSON  bool // --json: stdout carries one JSON value, of failures too
	Quiet bool // --quiet: nothing beside what was asked for

	Lookup func(key string) (string, bool) // of the environment

	// Open returns what the server would lend to the toolset, with the settings
	// in force and a log that goes nowhere. It is closed after the command.
	Open func() (*Env, error)
}

// Print writes v to w as one line of JSON.
func (*CLI) Print(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// Result tells what a command came to: v with --json, nothing with --quiet, else
// a line for a person.
func (c *CLI) Result(w io.Writer, v any, format string, args ...any) error {
	switch {
	case c.JSON:
		return c.Print(w, v)
	case c.Quiet:
		return nil
	}
	_, err := fmt.Fprintf(w, format+"\n", args...)
	return err
}

// An ExitError ends a command with a code of its own; other errors end it with
// 1, and wrong usage with 2.
type ExitError struct {
	Code   int
	Err    error // nil where what failed was told as the command's result
	Object any   // what --json prints of it; nil for conduit's own error object
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

func (e *ExitError) Unwrap() error { return e.Err }

// A UsageError says what is wrong with a command line; it ends with code 2.
type UsageError string

func (u UsageError) Error() string { return string(u) }

// Directories returns the state and data directories among the settings that T
// declares, and those that servers without these settings have. It is an Own for
// toolsets that keep nothing elsewhere.
func Directories[T any](env *Env) ([]string, error) {
	var list []string
	for _, s := range SettingsOf[T]() {
		if s.Kind != "state" && s.Kind != "data" {
			continue
		}
		dir, err := s.Value(env.Lookup)
		if err != nil {
			return list, err
		}
		for _, dir := range []string{dir.(string), s.usual(env.Lookup)} {
			if dir != "" && !slices.Contains(list, dir) {
				list = append(list, dir)
			}
		}
	}
	return list, nil
}

// RegisterToolset declares a toolset. Call it from init.
func RegisterToolset(t Toolset) {
	pending.Lock()
	defer pending.Unlock()
	pending.toolsets = append(pending.toolsets, t)
}

// Toolsets returns the toolsets that are linked in, sorted by name. The error
// tells two of one name, or one without what is required.
func Toolsets() ([]Toolset, error) {
	pending.Lock()
	defer pending.Unlock()
	byName := map[string]Toolset{}
	for _, t := range pending.toolsets {
		if _, dup := byName[t.Name]; dup {
			return nil, fmt.Errorf("toolset %s registered twice", t.Name)
		}
		if !validToolName(t.Name) || t.Name != strings.ToLower(t.Name) || t.Name == "all" || t.Summary == "" {
			return nil, fmt.Errorf("toolset %q: a Name of lower-case letters and digits, not all, and a Summary are required", t.Name)
		}
		byName[t.Name] = t
	}
	for _, tool := range pending.tools {
		if _, known := byName[tool.Toolset]; !known && tool.Toolset != "" {
			return nil, fmt.Errorf("tool %s: no toolset %q", tool.Name, tool.Toolset)
		}
	}
	return slices.SortedFunc(maps.Values(byName), func(a, b Toolset) int { return cmp.Compare(a.Name, b.Name) }), nil
}

// Instructions joins those of toolsets whose ops set has.
func (s *Set) Instructions(toolsets []Toolset) string {
	var texts []string
	for _, t := range toolsets {
		for _, i := range t.Instructions {
			if !slices.ContainsFunc(i.Needs, func(id string) bool { return s.ops[id] == nil }) {
				texts = append(texts, i.Text)
			}
		}
	}
	return strings.Join(texts, " ")
}

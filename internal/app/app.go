// Package app puts a server together: settings, log, allowed directories,
// toolsets, the chain, and the tools. Commands, transports and tests all have
// what [New] makes.
package app

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/conduit-mcp/conduit-mcp/internal/body"
	"github.com/conduit-mcp/conduit-mcp/internal/fetch"
	"github.com/conduit-mcp/conduit-mcp/internal/logfile"
	"github.com/conduit-mcp/conduit-mcp/internal/mux"
	"github.com/conduit-mcp/conduit-mcp/internal/panics"
	"github.com/conduit-mcp/conduit-mcp/internal/roots"
	"github.com/conduit-mcp/conduit-mcp/middleware"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// Version is the server's; releases set it when they link.
var Version = "1.0.0"

// Options say which server is wanted.
type Options struct {
	Environ Environ
	EnvFile string   // has further variables; see [Environ.WithFile]
	Dirs    []string // allowed directories in place of CONDUIT_ALLOWED_PATHS
	Serving bool     // for clients: background work runs, and the notice of first use is sent
	Quiet   bool     // without a log, for commands

	// Set is served in place of what the settings pick of the ops that are linked
	// in. Only tests have one.
	Set *registry.Set
}

// An App is a server put together, whatever transport it will have.
type App struct {
	Settings
	Log      *logfile.Log
	Roots    *roots.Roots
	Set      *registry.Set
	Toolsets []registry.Toolset // those that are served
	Env      *registry.Env
	Mux      *mux.Mux
	Skipped  []error // allowed paths that cannot be used

	environ Environ
	bodies  *body.Store
	stop    context.CancelFunc
	work    sync.WaitGroup // of toolsets
}

// New makes the server that the options describe. Where they are invalid the
// error says so, and the App has at least its log. The App is to be closed in
// either case.
func New(o Options) (*App, error) {
	var fileErr error
	if o.EnvFile != "" {
		o.Environ, _, fileErr = o.Environ.WithFile(o.EnvFile)
	}
	a := &App{environ: o.Environ, bodies: body.NewStore()}
	lookup := o.Environ.Lookup
	// The log comes first, with what can be read of its settings, so that the
	// reason not to start has a place to go.
	path, _ := lookup("CONDUIT_LOG_FILE_PATH")
	level, _ := lookup("LOG_LEVEL")
	if _, known := logfile.Levels[upper(level)]; !known {
		level = "INFO"
	}
	if o.Quiet {
		path = logfile.Off
	}
	a.Log = logfile.Open(path, level)
	if fileErr != nil {
		return a, fileErr
	}
	return a, a.compose(o)
}

func (a *App) compose(o Options) (err error) {
	lookup := o.Environ.Lookup
	if a.Settings, err = loadSettings(lookup, o.Dirs); err != nil {
		return err
	}
	if a.Set = o.Set; a.Set == nil {
		if err = a.pick(); err != nil {
			return err
		}
	}
	if !a.Explicit && a.rooted() && !a.broad(a.working) {
		a.dirs = []string{a.working}
	}
	ctx, stop := context.WithCancel(context.Background())
	a.stop = stop
	a.Env = &registry.Env{Context: ctx, Log: a.Log.Logger, Now: time.Now, Lookup: lookup}
	a.Roots, a.Skipped, err = roots.New(roots.Config{Allowed: a.dirs, Home: a.home, Project: a.project, Working: a.working, Denied: a.deniedRules})
	for _, s := range a.Skipped {
		code, message := fault.Of(s)
		a.Log.Warn("allowed path left out", "error_code", code, "err", message)
	}
	if err != nil {
		return err
	}
	a.Env.Project = a.Roots.Project()
	state, err := a.state()
	if err != nil {
		return err
	}
	a.Roots.Protect(state)
	web, err := fetch.NewClient(a.urls)
	if err != nil {
		return err
	}
	a.Env.HTTP, a.Env.Paths = web, a.Roots
	a.Env.Server = registry.Server{Version: Version, Started: time.Now(), AllowedPaths: a.Roots.Dirs(), DeniedPaths: a.Roots.DeniedRules(), LogFile: a.Log.Path}
	if a.Env.Server.Configuration, err = a.configuration(); err != nil {
		return err
	}
	var notice any
	if o.Serving && !a.Explicit {
		notice = a.Notice()
	}
	var links []registry.Link
	for _, t := range a.Toolsets {
		links = append(links, t.Middleware...)
	}
	chain, err := middleware.Standard(a.Env, middleware.Options{Notice: notice, MaxPayload: a.MaxPayload,
		Resolve: a.Roots.Resolve, ResolveBelow: a.Roots.ResolveBelow}, links...)
	if err != nil {
		return err
	}
	a.Mux, err = mux.New(a.Set, a.Env, chain, mux.Options{
		Bodies: a.bodies, MaxResponse: a.MaxResponse, Structured: a.Structured, LeanDefault: a.View == "lean"})
	if err == nil && o.Serving {
		a.start()
	}
	return err
}

// state returns the places that no path parameter reaches: the server's log, and
// what toolsets keep for themselves, whether they are served or not.
func (a *App) state() ([]string, error) {
	var own []string
	if a.Log.Path != logfile.Off {
		own = append(own, a.Log.Path, a.Log.Path+".1")
	}
	linked, err := registry.Toolsets()
	if err != nil {
		return nil, err
	}
	for _, t := range linked {
		if t.Own == nil {
			continue
		}
		places, err := t.Own(a.Env)
		own = append(own, places...)
		if err == nil {
			continue
		}
		if a.serves(t.Name) {
			return nil, err
		}
		a.Log.Warn("settings of a toolset that is not served", "toolset", t.Name, "err", err)
	}
	return own, nil
}

func (a *App) serves(toolset string) bool {
	return slices.ContainsFunc(a.Toolsets, func(t registry.Toolset) bool { return t.Name == toolset })
}

// start begins the background work of the toolsets.
func (a *App) start() {
	for _, t := range a.Toolsets {
		if t.Start == nil {
			continue
		}
		a.work.Go(func() {
			err := panics.Try(func() error { return t.Start(a.Env.Context, a.Env) })
			if err != nil && !errors.Is(err, context.Canceled) {
				a.Log.Error("background work ended", "toolset", t.Name, "err", err)
			}
		})
	}
}

// patience is how long Close waits for the background work of toolsets.
const patience = 5 * time.Second

// Close ends what the server holds: background work first, then what was made
// for ops, then the log.
func (a *App) Close() {
	if a.stop != nil {
		a.stop()
		done := make(chan struct{})
		go func() { a.work.Wait(); close(done) }()
		select {
		case <-done:
		case <-time.After(patience):
			a.Log.Warn("background work does not end")
		}
	}
	if a.Env != nil {
		if err := a.Env.Close(); err != nil {
			a.Log.Error("closing", "err", err)
		}
	}
	a.Log.Close()
}

// Call runs one call of a tool and returns what a client gets, large texts
// included.
func (a *App) Call(ctx context.Context, tool string, arguments json.RawMessage) (*mcp.CallToolResult, error) {
	res, err := a.Mux.Call(ctx, tool, arguments)
	if err != nil {
		return nil, err
	}
	return res, a.expand(res)
}

// expand puts large texts where their tokens stand in res. Since one may stand
// in several places, all of res is expanded as one line.
func (a *App) expand(res *mcp.CallToolResult) error {
	var line, whole bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	line.WriteByte('[')
	for _, c := range res.Content {
		text := ""
		if t, ok := c.(*mcp.TextContent); ok {
			text = t.Text
		}
		if err := enc.Encode(text); err != nil {
			return err
		}
		line.WriteByte(',')
	}
	structured, _ := res.StructuredContent.(json.RawMessage)
	line.WriteString(cmp.Or(string(structured), "null"))
	line.WriteByte(']')
	if err := a.bodies.Expand(&whole, line.Bytes()); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(whole.Bytes(), &parts); err != nil {
		return err
	}
	for i, c := range res.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			if err := json.Unmarshal(parts[i], &t.Text); err != nil {
				return err
			}
		}
	}
	if structured != nil {
		res.StructuredContent = parts[len(res.Content)]
	}
	return nil
}

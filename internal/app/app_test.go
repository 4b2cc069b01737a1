package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/conduit-mcp/conduit-mcp/internal/app"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// The toolset of these tests says what its parts did.
var (
	started, ended, closed atomic.Int32
	running                = make(chan struct{}, 1)
)

type settings struct {
	Dir string `env:"CONDUIT_SHELF_DIR,SHELF_DIR" kind:"state" default:"shelf" doc:"D."`
	Max int    `env:"CONDUIT_SHELF_MAX" default:"3" min:"1" doc:"D."`
}

type params struct {
	Path registry.Path `json:"path"`
}

func init() {
	registry.RegisterToolset(registry.Toolset{
		Name: "shelf", Summary: "A shelf.", Variables: []string{"CONDUIT_SHELF_DEPTH"},
		Instructions: []registry.Instruction{{Text: "shelf_look looks.", Needs: []string{"shelf_look"}}, {Text: "shelf_put puts.", Needs: []string{"shelf_put"}}},
		Own: func(env *registry.Env) ([]string, error) {
			places, err := registry.Directories[settings](env)
			return append(places, ".shelf/records"), err
		},
		Start: func(ctx context.Context, env *registry.Env) error {
			env.OnClose(func() error { closed.Store(ended.Load()); return nil })
			started.Add(1)
			running <- struct{}{}
			<-ctx.Done()
			ended.Add(1)
			return ctx.Err()
		},
	})
	registry.RegisterToolset(registry.Toolset{Name: "broken", Summary: "Ends at once.", Default: true,
		Start: func(context.Context, *registry.Env) error { panic("oh") },
		Own: func(*registry.Env) ([]string, error) {
			return nil, nil
		}})
	for name, effect := range map[string]registry.Effect{"shelf_look": registry.ReadOnly, "shelf_put": registry.Additive} {
		registry.RegisterTool(registry.Tool{Name: name, Toolset: "shelf", Summary: "S."})
		registry.Register(registry.Desc{Tool: name, Summary: "S.", Effect: effect}, func(settings, *registry.Env) (registry.Func[params, string], error) {
			return func(_ context.Context, in params) (string, error) {
				at, err := in.Path.Place()
				return filepath.Base(at.Abs), err
			}, nil
		})
	}
	registry.Register(registry.Desc{Tool: "always", Summary: "Of no toolset.", Effect: registry.ReadOnly}, func(struct{}, *registry.Env) (registry.Func[params, string], error) {
		return func(_ context.Context, in params) (string, error) { _, err := in.Path.Place(); return "", err }, nil
	})
}

// world is an allowed directory and the environment of a server over it.
func world(t *testing.T, more map[string]string) (dir string, environ app.Environ) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	environ = app.Environ{"HOME": dir, "USERPROFILE": dir, "CONDUIT_ALLOWED_PATHS": dir, "CONDUIT_PROJECT_ROOT": dir,
		"CONDUIT_LOG_FILE_PATH": filepath.Join(dir, "log"), "CONDUIT_SHELF_DIR": filepath.Join(dir, "state")}
	maps.Copy(environ, more)
	return dir, environ
}

func serve(t *testing.T, o app.Options) *app.App {
	t.Helper()
	a, err := app.New(o)
	t.Cleanup(a.Close)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func call(t *testing.T, a *app.App, tool, path string) string {
	t.Helper()
	args, err := json.Marshal(map[string]string{"path": path})
	if err != nil {
		t.Fatal(err)
	}
	res, err := a.Call(t.Context(), tool, args)
	if err != nil {
		t.Fatal(err)
	}
	return res.Content[0].(*mcp.TextContent).Text
}

// What a toolset keeps for itself is closed, served or not.
func TestOwnPlacesAreDenied(t *testing.T) {
	for _, toolsets := range []string{"shelf", "broken"} {
		dir, environ := world(t, map[string]string{"CONDUIT_TOOLSETS": toolsets})
		for _, name := range []string{"state", "deep/.shelf/records", "deep/.shelf/other"} {
			if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		a := serve(t, app.Options{Environ: environ})
		for path, denied := range map[string]bool{"state": true, "state/later": true, "deep/.shelf/records": true, "deep/.shelf/records/x": true,
			"deep/.shelf/other": false, "log": true, "log.1": true, "other": false} {
			if got := strings.Contains(call(t, a, "always", path), "ERR_FS_ACCESS_DENIED"); got != denied {
				t.Errorf("%s, %s: denied %v", toolsets, path, got)
			}
		}
	}
}

// Settings of what is not served are not loaded, and cannot stop the server.
func TestSettingsOfWhatIsNotServed(t *testing.T) {
	_, environ := world(t, map[string]string{"CONDUIT_SHELF_MAX": "none", "CONDUIT_TOOLSETS": "broken"})
	serve(t, app.Options{Environ: environ})
	environ["CONDUIT_TOOLSETS"] = "all"
	a, err := app.New(app.Options{Environ: environ})
	a.Close()
	if code, message := fault.Of(err); code != fault.ConfigInvalid || !strings.Contains(message, "CONDUIT_SHELF_MAX") {
		t.Errorf("%v", err)
	}
}

func TestToolsetsThatAreServed(t *testing.T) {
	for given, want := range map[string]string{"": "broken", "shelf": "shelf", " Shelf,broken ": "broken shelf", "all": "broken shelf"} {
		_, environ := world(t, map[string]string{"CONDUIT_TOOLSETS": given})
		a := serve(t, app.Options{Environ: environ})
		var names []string
		for _, ts := range a.Toolsets {
			names = append(names, ts.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%q serves %s, want %s", given, got, want)
		}
		if _, ok := a.Set.Tool("always"); !ok {
			t.Errorf("%q leaves out a tool of no toolset", given)
		}
	}
	_, environ := world(t, map[string]string{"CONDUIT_TOOLSETS": "shelf", "CONDUIT_READ_ONLY": "true"})
	a := serve(t, app.Options{Environ: environ})
	if got := a.Set.Instructions(a.Toolsets); got != "shelf_look looks." {
		t.Errorf("a read-only server says %q", got)
	}
}

// Background work begins with a server, ends with it, and before what it made
// is closed; commands have none. A panic in it ends nothing else.
func TestBackgroundWork(t *testing.T) {
	for _, n := range []*atomic.Int32{&started, &ended, &closed} {
		n.Store(0)
	}
	_, environ := world(t, map[string]string{"CONDUIT_TOOLSETS": "all"})
	serve(t, app.Options{Environ: environ}).Close()
	if started.Load() != 0 {
		t.Error("background work runs below a command")
	}
	a := serve(t, app.Options{Environ: environ, Serving: true})
	<-running
	a.Close()
	if started.Load() != 1 || ended.Load() != 1 || closed.Load() != 1 {
		t.Errorf("started %d, ended %d, closed after %d", started.Load(), ended.Load(), closed.Load())
	}
	log, err := os.ReadFile(environ["CONDUIT_LOG_FILE_PATH"])
	if err != nil || !strings.Contains(string(log), `"toolset":"broken","err":"panic: oh`) || strings.Contains(string(log), `"toolset":"shelf","err"`) {
		t.Errorf("%v: %s", err, log)
	}
}

func TestUnknownVariables(t *testing.T) {
	_, environ := world(t, map[string]string{"CONDUIT_READONLY": "1", "CONDUIT_SHELF_DEPTH": "1", "CONDUIT_SHELF_MAX": "4", "CONDUIT_ZZZZ": "", "OTHER": "x", "CONDUIT_TOOLSETS": "broken"})
	unknown, err := serve(t, app.Options{Environ: environ}).UnknownVariables()
	want := []app.UnknownVariable{{Name: "CONDUIT_READONLY", Nearest: "CONDUIT_READ_ONLY"}, {Name: "CONDUIT_ZZZZ"}}
	if err != nil || !slices.Equal(unknown, want) {
		t.Errorf("%v, %v", unknown, err)
	}
}

// What is told of the settings is what is in force.
func TestActiveSettings(t *testing.T) {
	dir, environ := world(t, map[string]string{"CONDUIT_TOOLSETS": "shelf", "SHELF_DIR": "ignored", "CONDUIT_SHELF_DIR": "~/elsewhere", "LOG_LEVEL": "debug"})
	a := serve(t, app.Options{Environ: environ, Dirs: []string{dir + "/."}})
	list, err := a.Active()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]app.Active{}
	for _, s := range list {
		found[s.Env] = s
	}
	for name, want := range map[string][2]any{
		"CONDUIT_SHELF_DIR": {filepath.Join(dir, "elsewhere"), "CONDUIT_SHELF_DIR"}, "CONDUIT_SHELF_MAX": {int64(3), ""}, "LOG_LEVEL": {"DEBUG", "LOG_LEVEL"},
		"CONDUIT_TOOLSETS": {"shelf", "CONDUIT_TOOLSETS"}, "CONDUIT_PROJECT_ROOT": {dir, "CONDUIT_PROJECT_ROOT"},
	} {
		if s := found[name]; s.Value != want[0] || s.From != want[1] {
			t.Errorf("%s: %v from %q, want %v", name, s.Value, s.From, want)
		}
	}
	if s := found["CONDUIT_ALLOWED_PATHS"]; !slices.Equal(s.Value.([]string), []string{dir}) || s.From != "the command line" {
		t.Errorf("%v from %q", s.Value, s.From)
	}
}

func TestBadOptionsLeaveALog(t *testing.T) {
	_, environ := world(t, map[string]string{"CONDUIT_ALLOWED_PATHS": "/nonexistent"})
	a, err := app.New(app.Options{Environ: environ, Serving: true})
	t.Cleanup(a.Close)
	coded := new(fault.Error)
	if !errors.As(err, &coded) || coded.Code != fault.FSBadAllowedPath || a.Log == nil {
		t.Errorf("%v", err)
	}
}

// The project root lies in an allowed directory, wherever the server was
// started; tools that stay below it have the working directory alone by default.
func TestWhereRelativePathsStart(t *testing.T) {
	dir, environ := world(t, map[string]string{"CONDUIT_PROJECT_ROOT": "", "CONDUIT_TOOLSETS": "strict"})
	elsewhere, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	rooted, err := registry.NewSet([]registry.Tool{{Name: "strict", Rooted: true}}, []*registry.Op{registry.New(
		registry.Desc{Tool: "strict", Summary: "S.", Effect: registry.ReadOnly},
		func(struct{}, *registry.Env) (registry.Func[params, string], error) {
			return func(_ context.Context, in params) (string, error) { at, err := in.Path.Place(); return at.Abs, err }, nil
		})})
	if err != nil {
		t.Fatal(err)
	}
	temp, err := filepath.EvalSymlinks(os.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ allowed, working, allows, project string }{
		{dir, elsewhere, dir, dir},
		{dir, "/", dir, dir},
		{elsewhere + string(os.PathListSeparator) + dir, dir, elsewhere + " " + dir, dir},
		{"", elsewhere, elsewhere, elsewhere},
		{"", "/", dir + " " + temp, dir},
		{"", dir, dir + " " + temp, dir},
	} {
		t.Chdir(c.working)
		environ["CONDUIT_ALLOWED_PATHS"] = c.allowed
		a := serve(t, app.Options{Environ: environ, Set: rooted})
		if got := strings.Join(a.Roots.Dirs(), " "); got != c.allows || a.Roots.Project() != c.project || a.Env.Project != c.project {
			t.Errorf("%+v: %s, project root %s", c, got, a.Roots.Project())
		}
		if got := call(t, a, "strict", "f"); !strings.Contains(got, filepath.Join(c.project, "f")) {
			t.Errorf("%+v: %s", c, got)
		}
	}
	environ["CONDUIT_ALLOWED_PATHS"], environ["CONDUIT_PROJECT_ROOT"] = dir, elsewhere
	a, err := app.New(app.Options{Environ: environ, Set: rooted})
	t.Cleanup(a.Close)
	if code, _ := fault.Of(err); code != fault.ConfigInvalid {
		t.Errorf("a project root that is not allowed: %v", err)
	}
}

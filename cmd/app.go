package cmd

import (
	"encoding/json"
	"log/slog"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/body"
	"github.com/conduit-mcp/conduit-mcp/internal/fetch"
	"github.com/conduit-mcp/conduit-mcp/internal/journal"
	"github.com/conduit-mcp/conduit-mcp/internal/logfile"
	"github.com/conduit-mcp/conduit-mcp/internal/mux"
	"github.com/conduit-mcp/conduit-mcp/internal/roots"
	"github.com/conduit-mcp/conduit-mcp/internal/zipws"
	"github.com/conduit-mcp/conduit-mcp/middleware"
	"github.com/conduit-mcp/conduit-mcp/ops/change"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// version is the server's; releases set it when they link.
var version = "1.0.0"

// An app is a server put together, whatever transport it will have.
type app struct {
	settings
	log     *logfile.Log
	roots   *roots.Roots
	set     *registry.Set
	env     *registry.Env
	mux     *mux.Mux
	bodies  *body.Store
	skipped []error // allowed paths that cannot be used
}

// compose makes the server that the settings describe. Where they are invalid
// the error says so and the app has at least its log.
func compose(lookup func(string) (string, bool), dirs []string, streamed bool) (*app, error) {
	a := &app{}
	// The log comes first, with what can be read of its settings, so that the
	// reason not to start has a place to go.
	path, _ := lookup("CONDUIT_LOG_FILE_PATH")
	level, _ := lookup("LOG_LEVEL")
	if _, known := logfile.Levels[upper(level)]; !known {
		level = "INFO"
	}
	a.log = logfile.Open(path, level)
	var err error
	if a.settings, err = loadSettings(lookup, dirs); err != nil {
		return a, err
	}
	if a.set, err = a.pick(); err != nil {
		return a, err
	}
	state := []string{}
	if a.log.Path != logfile.Off {
		state = append(state, a.log.Path, a.log.Path+".1")
	}
	kept, err := registry.LoadSettings[journal.Settings](lookup)
	if err != nil {
		return a, err
	}
	for _, dir := range []string{kept.Path(lookup), change.Locks(lookup)} {
		if dir != "" {
			state = append(state, dir)
		}
	}
	spaces, err := zipws.Load(lookup)
	if err != nil {
		return a, err
	}
	if dir := spaces.Path(lookup); dir != "" {
		state = append(state, dir)
	}
	left, err := records(a.set, lookup)
	if err != nil {
		return a, err
	}
	a.roots, a.skipped, err = roots.New(roots.Config{Allowed: a.dirs, Home: a.homeAbs, Project: a.projectAbs, Denied: a.deniedRules, State: state, Records: left})
	for _, s := range a.skipped {
		code, message := fault.Of(s)
		a.log.Warn("allowed path left out", "error_code", code, "err", message)
	}
	if err != nil {
		return a, err
	}
	configuration, err := a.configuration(a.set, lookup, a.roots, a.log.Path)
	if err != nil {
		return a, err
	}
	web, err := fetch.NewClient(a.urls)
	if err != nil {
		return a, err
	}
	a.env = &registry.Env{
		Log: a.log.Logger, HTTP: web, Guard: a.roots, Now: time.Now, Lookup: lookup,
		Server: registry.Server{Version: version, Started: time.Now(), AllowedPaths: a.roots.Dirs(),
			DeniedPaths: a.roots.DeniedRules(), LogFile: a.log.Path, Configuration: configuration},
	}
	if _, err := registry.Shared(a.env, func(*registry.Env) (zipws.Host, error) { return a.roots, nil }); err != nil {
		return a, err
	}
	if streamed {
		a.bodies = body.NewStore()
	}
	var notice any
	if !a.explicit && streamed {
		notice = a.notice()
	}
	a.mux, err = mux.New(a.set, a.env, chain(a.log.Logger, notice, a.MaxPayload, a.roots), mux.Options{
		Bodies: a.bodies, MaxResponse: a.MaxResponse, Structured: a.Structured, LeanDefault: a.View == "lean"})
	return a, err
}

// chain is what every call passes, outermost first.
func chain(log *slog.Logger, notice any, maxPayload int64, r *roots.Roots) registry.Middleware {
	return registry.Chain(
		middleware.Errors(log),                          // the one place where an error becomes an object
		middleware.Log(log),                             // sees every outcome below with its raw cause
		middleware.Notice(notice),                       // only successes reach it; once, atomically
		middleware.PayloadLimit(maxPayload),             // cheapest refusal first
		middleware.Decode(),                             // raw arguments → *In; below it calls are typed
		middleware.PathGuard(r.Resolve, r.ResolveBelow), // needs *In; next to the op, so nothing edits paths after it
	)
}

// close ends what the app holds.
func (a *app) close() {
	if a.env != nil {
		if err := a.env.Close(); err != nil {
			a.log.Error("closing", "err", err)
		}
	}
	a.log.Close()
}

// A firstUse is the notice of the specification's section 2, field by field.
type firstUse struct {
	Type       string          `json:"type"`
	NoticeCode string          `json:"notice_code"`
	Message    string          `json:"message"`
	Details    firstUseDetails `json:"details"`
}

type firstUseDetails struct {
	ServerVersion    string   `json:"server_version"`
	ServerStartTime  string   `json:"server_start_time_iso"`
	DefaultPathsUsed []string `json:"default_paths_used"`
}

func (a *app) notice() firstUse {
	started := iso(a.env.Server.Started)
	return firstUse{
		Type: "info_notice", NoticeCode: "DEFAULT_PATHS_USED",
		Message: "INFO [conduit-mcp v" + version + ", Server Started: " + started + "]: CONDUIT_ALLOWED_PATHS was not explicitly set by the user. " +
			"Defaulting to allow access to resolved paths for '~' (home directory) and '/tmp' (system temporary directory). " +
			"For production environments or enhanced security, it is strongly recommended to set the CONDUIT_ALLOWED_PATHS environment variable explicitly to only the required directories.",
		Details: firstUseDetails{version, started, a.roots.Dirs()},
	}
}

// logStart writes the first record: version, every active setting, the allowed
// paths and the log file.
func (a *app) logStart() {
	var active map[string]any
	if err := json.Unmarshal(a.env.Server.Configuration, &active); err != nil {
		a.log.Error("settings", "err", err)
	}
	a.log.Info("server started", "version", version, "settings", active, "allowed_paths", a.roots.Dirs(), "log_file", a.log.Path)
	if !a.explicit {
		a.log.Info("CONDUIT_ALLOWED_PATHS is not set; the default is used", "default_paths_used", a.roots.Dirs())
	}
}

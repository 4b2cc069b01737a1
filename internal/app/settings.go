package app

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/internal/fetch"
	"github.com/conduit-mcp/conduit-mcp/internal/userdir"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// Settings are what the server itself reads; ops declare their own.
type Settings struct {
	LogLevel    string `env:"LOG_LEVEL" default:"INFO" oneof:"TRACE DEBUG INFO WARN ERROR FATAL" doc:"Least grave records that go to the log file."`
	LogFile     string `env:"CONDUIT_LOG_FILE_PATH" default:"" doc:"Log file; by default conduit-mcp.log in the system's temporary directory, NONE for no log."`
	Allowed     string `env:"CONDUIT_ALLOWED_PATHS" default:"~:/tmp" doc:"Directories that may be used, separated by the system's list separator; set it to just what is needed. /tmp in the default is the system's temporary directory."`
	Denied      string `env:"CONDUIT_DENIED_PATHS" default:"" doc:"Paths or globs denied within the allowed directories; with the default allowed paths the well-known places of credentials below the home directory, else nothing."`
	Project     string `env:"CONDUIT_PROJECT_ROOT" default:"" doc:"Directory that relative paths start from, in an allowed directory; by default the working directory where it is in one, else the first of them."`
	MaxPayload  int64  `env:"CONDUIT_MAX_PAYLOAD_SIZE_BYTES" default:"10485760" min:"1024" doc:"Longest request accepted, in bytes."`
	MaxResponse int64  `env:"CONDUIT_MAX_RESPONSE_BYTES" default:"8388608" min:"0" doc:"Longest response sent, in bytes; 0 for no limit. Common clients give up above 10 MiB."`
	Structured  bool   `env:"CONDUIT_STRUCTURED_CONTENT" default:"false" doc:"Send structuredContent beside the text of results."`
	View        string `env:"CONDUIT_DEFAULT_VIEW" default:"full" oneof:"full lean" doc:"View of results where a call does not choose one: full is JSON, lean is plain text."`
	Toolsets    string `env:"CONDUIT_TOOLSETS" default:"" doc:"Toolsets to serve, separated by commas, or all."`
	ReadOnly    bool   `env:"CONDUIT_READ_ONLY" default:"false" doc:"Serve only operations that change nothing."`

	Explicit bool // the allowed directories were given, and are not the default

	dirs        []string // the allowed directories as written
	commandLine bool     // they come from there
	project     string   // as given, absolute; "" by default
	working     string   // the working directory, "" where it is not known
	home        string   // "" where it is not known
	deniedRules []string
	urls        fetch.Settings
}

// ServerSettings lists the settings that belong to no op.
func ServerSettings() ([]registry.Setting, error) {
	list := append(registry.SettingsOf[Settings](), registry.SettingsOf[fetch.Settings]()...)
	toolsets, err := registry.Toolsets()
	i := slices.IndexFunc(list, func(s registry.Setting) bool { return s.Env == toolsetsVariable })
	list[i].Default = strings.Join(names(toolsets, func(t registry.Toolset) bool { return t.Default }), ",")
	return list, err
}

const toolsetsVariable = "CONDUIT_TOOLSETS"

// names lists the toolsets that keep accepts.
func names(toolsets []registry.Toolset, keep func(registry.Toolset) bool) []string {
	var list []string
	for _, t := range toolsets {
		if keep(t) {
			list = append(list, t.Name)
		}
	}
	return list
}

// credentials are denied below the home directory with the default allowed
// paths.
var credentials = []string{
	".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker/config.json", ".netrc", ".config/gcloud", ".config/gh",
	".mozilla", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware", ".config/microsoft-edge",
	"Library/Application Support/Google/Chrome", "Library/Application Support/Firefox", "Library/Safari",
	"AppData/Local/Google/Chrome", "AppData/Local/Microsoft/Edge", "AppData/Roaming/Mozilla",
	".local/share/keyrings", ".password-store", "Library/Keychains",
}

// loadSettings reads the server's settings; dirs, from the command line, stand
// for CONDUIT_ALLOWED_PATHS.
func loadSettings(lookup userdir.Lookup, dirs []string) (Settings, error) {
	s, err := registry.LoadSettings[Settings](lookup)
	if err != nil {
		return s, err
	}
	if s.urls, err = registry.LoadSettings[fetch.Settings](lookup); err != nil {
		return s, err
	}
	s.home = userdir.Home(lookup)
	s.working, _ = os.Getwd()
	if s.Project != "" {
		if s.project, _ = userdir.Expand(s.Project, lookup); !filepath.IsAbs(s.project) {
			return s, fault.New(fault.ConfigInvalid, "CONDUIT_PROJECT_ROOT is %q; it must be an absolute path", s.Project)
		}
	}
	set, _ := lookup("CONDUIT_ALLOWED_PATHS")
	s.commandLine = len(dirs) > 0
	s.Explicit = strings.TrimSpace(set) != "" || s.commandLine
	switch {
	case s.commandLine:
		for _, d := range dirs {
			if d, _ = userdir.Expand(d, lookup); !filepath.IsAbs(d) {
				d = filepath.Join(s.working, d)
			}
			s.dirs = append(s.dirs, d)
		}
	case s.Explicit:
		for _, d := range filepath.SplitList(s.Allowed) {
			if d = strings.TrimSpace(d); d != "" {
				s.dirs = append(s.dirs, d)
			}
		}
	default:
		s.dirs = []string{"~", os.TempDir()}
	}
	if s.Denied != "" {
		s.deniedRules = filepath.SplitList(s.Denied)
	} else if !s.Explicit {
		for _, c := range credentials {
			s.deniedRules = append(s.deniedRules, "~/"+c)
		}
	}
	return s, nil
}

// pick sets the toolsets that the settings ask for and the part of their ops
// that may be served.
func (a *App) pick() error {
	linked, err := registry.Toolsets()
	if err != nil {
		return err
	}
	all := names(linked, func(registry.Toolset) bool { return true })
	wanted := map[string]bool{}
	for name := range strings.SplitSeq(a.Settings.Toolsets, ",") {
		name = strings.ToLower(strings.TrimSpace(name))
		if name == "" {
			continue
		}
		if name != "all" && !slices.Contains(all, name) {
			return fault.New(fault.ConfigInvalid, "CONDUIT_TOOLSETS names %q; it must be all or some of %s", name, strings.Join(all, ", "))
		}
		wanted[name] = true
	}
	for _, t := range linked {
		if wanted["all"] || wanted[t.Name] || len(wanted) == 0 && t.Default {
			a.Toolsets = append(a.Toolsets, t)
		}
	}
	a.Set, err = registry.Linked(func(t registry.Tool, op registry.Desc) bool {
		return (t.Toolset == "" || a.serves(t.Toolset)) && (!a.ReadOnly || op.Effect == registry.ReadOnly)
	})
	return err
}

// rooted reports whether all tools stay below the project root.
func (a *App) rooted() bool {
	tools := a.Set.Tools()
	return len(tools) > 0 && !slices.ContainsFunc(tools, func(t registry.Tool) bool { return !t.Rooted })
}

// broad reports whether dir is more than a project: the root of a file system,
// the home directory, or not known.
func (a *App) broad(dir string) bool {
	home, err := os.Stat(a.home)
	here, herr := os.Stat(dir)
	return dir == "" || dir == filepath.Dir(dir) || err == nil && herr == nil && os.SameFile(home, here)
}

// An Active is a setting in force.
type Active struct {
	registry.Setting
	From  string // what gives the value: a variable, or the command line; "" for the default
	Value any    // as answers show it: see [registry.Setting.Shown], lists as arrays
}

// Active lists the settings of the server and of the ops that are served, sorted
// by variable.
func (a *App) Active() ([]Active, error) {
	own, err := ServerSettings()
	if err != nil {
		return nil, err
	}
	resolved := map[string]any{
		"CONDUIT_ALLOWED_PATHS": a.Roots.Dirs(),
		"CONDUIT_DENIED_PATHS":  append([]string{}, a.Roots.DeniedRules()...),
		"CONDUIT_LOG_FILE_PATH": a.Log.Path,
		"CONDUIT_PROJECT_ROOT":  a.Roots.Project(),
	}
	var list []Active
	for _, s := range a.Set.Settings(own...) {
		v, err := s.Shown(a.environ.Lookup)
		if err != nil {
			return nil, err
		}
		if r, ok := resolved[s.Env]; ok {
			v = r
		}
		from, _ := s.Given(a.environ.Lookup)
		if s.Env == "CONDUIT_ALLOWED_PATHS" && a.commandLine {
			from = "the command line"
		}
		list = append(list, Active{s, from, v})
	}
	return list, nil
}

// Given returns the variables that give settings their values, by name, with
// what makes another server, started elsewhere, have the same: directories and
// files are absolute. Settings of what is linked in and not served count too.
// Secrets are left out of values and named apart.
func (a *App) Given() (values map[string]string, secrets []string, err error) {
	own, err := ServerSettings()
	if err != nil {
		return nil, nil, err
	}
	all, err := registry.Registered()
	if err != nil {
		return nil, nil, err
	}
	values = map[string]string{}
	if a.Explicit {
		values["CONDUIT_ALLOWED_PATHS"] = strings.Join(a.Roots.Dirs(), string(os.PathListSeparator))
	}
	for _, s := range all.Settings(own...) {
		variable, text := s.Given(a.environ.Lookup)
		switch {
		case variable == "" || variable == "CONDUIT_ALLOWED_PATHS":
		case s.Secret:
			secrets = append(secrets, variable)
		case variable == "CONDUIT_LOG_FILE_PATH":
			values[variable] = a.Log.Path
		case s.Kind == "path" || s.Kind == "state" || s.Kind == "data":
			v, err := s.Value(a.environ.Lookup)
			if err != nil {
				return nil, nil, err
			}
			values[variable] = cmp.Or(v.(string), registry.Off)
		default:
			values[variable] = text
		}
	}
	return values, secrets, nil
}

// configuration is the active value of every setting by its variable
// (specification, section 5.3).
func (a *App) configuration() (json.RawMessage, error) {
	list, err := a.Active()
	active := map[string]any{}
	for _, s := range list {
		active[s.Env] = s.Value
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(active)
}

package cmd

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/internal/fetch"
	"github.com/conduit-mcp/conduit-mcp/internal/roots"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// settings are what the server itself reads; ops declare their own.
type settings struct {
	LogLevel    string `env:"LOG_LEVEL" default:"INFO" oneof:"TRACE DEBUG INFO WARN ERROR FATAL" doc:"Least grave records that go to the log file."`
	LogFile     string `env:"CONDUIT_LOG_FILE_PATH" default:"" doc:"Log file; by default conduit-mcp.log in the system's temporary directory, NONE for no log."`
	Allowed     string `env:"CONDUIT_ALLOWED_PATHS" default:"~:/tmp" doc:"Directories that may be used, separated by the system's list separator; set it to just what is needed. /tmp in the default is the system's temporary directory."`
	Denied      string `env:"CONDUIT_DENIED_PATHS" default:"" doc:"Paths or globs denied within the allowed directories; with the default allowed paths the well-known places of credentials below the home directory, else nothing."`
	Project     string `env:"CONDUIT_PROJECT_ROOT" default:"" doc:"Directory that relative paths start from; by default the working directory."`
	MaxPayload  int64  `env:"CONDUIT_MAX_PAYLOAD_SIZE_BYTES" default:"10485760" min:"1024" doc:"Longest request accepted, in bytes."`
	MaxResponse int64  `env:"CONDUIT_MAX_RESPONSE_BYTES" default:"8388608" min:"0" doc:"Longest response sent, in bytes; 0 for no limit. Common clients give up above 10 MiB."`
	Structured  bool   `env:"CONDUIT_STRUCTURED_CONTENT" default:"false" doc:"Send structuredContent beside the text of results."`
	View        string `env:"CONDUIT_DEFAULT_VIEW" default:"full" oneof:"full lean" doc:"View of results where a call does not choose one: full is JSON, lean is plain text."`
	Toolsets    string `env:"CONDUIT_TOOLSETS" default:"core" doc:"Toolsets to serve, separated by commas, or all."`
	ReadOnly    bool   `env:"CONDUIT_READ_ONLY" default:"false" doc:"Serve only operations that change nothing."`

	dirs        []string // the allowed directories as written
	explicit    bool     // they were given, not the default
	projectAbs  string
	homeAbs     string
	deniedRules []string
	urls        fetch.Settings
}

// serverSettings lists the settings that belong to no op.
func serverSettings() []registry.Setting {
	return append(registry.SettingsOf[settings](), registry.SettingsOf[fetch.Settings]()...)
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
func loadSettings(lookup func(string) (string, bool), dirs []string) (settings, error) {
	s, err := registry.LoadSettings[settings](lookup)
	if err != nil {
		return s, err
	}
	if s.urls, err = registry.LoadSettings[fetch.Settings](lookup); err != nil {
		return s, err
	}
	s.homeAbs, _ = os.UserHomeDir()
	if s.Project == "" {
		if s.projectAbs, err = os.Getwd(); err != nil {
			return s, fault.New(fault.ConfigInvalid, "the working directory is not known; set CONDUIT_PROJECT_ROOT")
		}
	} else if s.projectAbs = s.expand(s.Project); !filepath.IsAbs(s.projectAbs) {
		return s, fault.New(fault.ConfigInvalid, "CONDUIT_PROJECT_ROOT is %q; it must be an absolute path", s.Project)
	}
	set, _ := lookup("CONDUIT_ALLOWED_PATHS")
	s.explicit = strings.TrimSpace(set) != "" || len(dirs) > 0
	switch {
	case len(dirs) > 0:
		for _, d := range dirs {
			if d = s.expand(d); !filepath.IsAbs(d) {
				d = filepath.Join(s.projectAbs, d)
			}
			s.dirs = append(s.dirs, d)
		}
	case s.explicit:
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
	} else if !s.explicit {
		for _, c := range credentials {
			s.deniedRules = append(s.deniedRules, "~/"+c)
		}
	}
	return s, nil
}

func (s settings) expand(path string) string {
	if path == "~" || strings.HasPrefix(path, "~/") || strings.HasPrefix(path, "~"+string(os.PathSeparator)) {
		return filepath.Join(s.homeAbs, path[1:])
	}
	return path
}

// pick returns the part of all that the settings ask for.
func (s settings) pick() (*registry.Set, error) {
	all := registry.Toolsets()
	wanted := map[string]bool{}
	for name := range strings.SplitSeq(s.Toolsets, ",") {
		name = strings.ToLower(strings.TrimSpace(name))
		if name == "" {
			continue
		}
		if name != "all" && !slices.Contains(all, name) {
			return nil, fault.New(fault.ConfigInvalid, "CONDUIT_TOOLSETS names %q; it must be all or some of %s", name, strings.Join(all, ", "))
		}
		wanted[name] = true
	}
	return registry.Linked(func(t registry.Tool, op registry.Desc) bool {
		return (wanted["all"] || wanted[t.Toolset]) && (!s.ReadOnly || op.Effect == registry.ReadOnly)
	})
}

// configuration is the active value of every setting by its variable, lists as
// arrays (specification, section 5.3).
func (s settings) configuration(set *registry.Set, lookup func(string) (string, bool), r *roots.Roots, logPath string) (json.RawMessage, error) {
	active := map[string]any{}
	for _, setting := range set.Settings(serverSettings()...) {
		v, err := setting.Value(lookup)
		if err != nil {
			return nil, err
		}
		active[setting.Env] = v
	}
	active["CONDUIT_ALLOWED_PATHS"] = r.Dirs()
	active["CONDUIT_DENIED_PATHS"] = append([]string{}, r.DeniedRules()...)
	active["CONDUIT_LOG_FILE_PATH"] = logPath
	active["CONDUIT_PROJECT_ROOT"] = s.projectAbs
	return json.Marshal(active)
}

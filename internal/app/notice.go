package app

import (
	"encoding/json"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
)

// A FirstUse is the notice of the specification's section 2, field by field.
type FirstUse struct {
	Type       string          `json:"type"`
	NoticeCode string          `json:"notice_code"`
	Message    string          `json:"message"`
	Details    FirstUseDetails `json:"details"`
}

// FirstUseDetails are what a [FirstUse] tells beside its message.
type FirstUseDetails struct {
	ServerVersion    string   `json:"server_version"`
	ServerStartTime  string   `json:"server_start_time_iso"`
	DefaultPathsUsed []string `json:"default_paths_used"`
}

// Notice is what clients are told once where the default directories are used.
func (a *App) Notice() FirstUse {
	started := fileinfo.ISO(a.Env.Server.Started)
	return FirstUse{
		Type: "info_notice", NoticeCode: "DEFAULT_PATHS_USED",
		Message: "INFO [conduit-mcp v" + Version + ", Server Started: " + started + "]: CONDUIT_ALLOWED_PATHS was not explicitly set by the user. " +
			"Defaulting to allow access to resolved paths for '~' (home directory) and '/tmp' (system temporary directory). " +
			"For production environments or enhanced security, it is strongly recommended to set the CONDUIT_ALLOWED_PATHS environment variable explicitly to only the required directories.",
		Details: FirstUseDetails{Version, started, a.Roots.Dirs()},
	}
}

// LogStart writes the first records: version, every active setting, the allowed
// paths and the log file, then what is doubtful about the settings.
func (a *App) LogStart() {
	var active map[string]any
	if err := json.Unmarshal(a.Env.Server.Configuration, &active); err != nil {
		a.Log.Error("settings", "err", err)
	}
	a.Log.Info("server started", "version", Version, "settings", active, "allowed_paths", a.Roots.Dirs(), "log_file", a.Log.Path)
	if !a.Explicit {
		a.Log.Info("CONDUIT_ALLOWED_PATHS is not set; the default is used", "default_paths_used", a.Roots.Dirs())
	}
	unknown, err := a.UnknownVariables()
	if err != nil {
		a.Log.Error("settings", "err", err)
	}
	for _, u := range unknown {
		a.Log.Warn("unknown variable", "variable", u.Name, "nearest", u.Nearest)
	}
}

func upper(s string) string { return strings.ToUpper(strings.TrimSpace(s)) }

package zipws

import (
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// Settings say where workspaces are and how large they may get.
type Settings struct {
	Dir      string `env:"CONDUIT_ZIP_DATA_DIR" default:"" doc:"Directory of zip workspaces; by default conduit-mcp/zip in the user's data directory. ZIPFS_DATA_DIR counts where it is unset, and so do ZIPFS_MAX_EXTRACTED_SIZE and its like for the other settings."`
	MaxSize  int64  `env:"CONDUIT_ZIP_MAX_EXTRACTED_SIZE" default:"1073741824" min:"1" doc:"Most bytes that an archive may unpack to in a workspace."`
	MaxFiles int64  `env:"CONDUIT_ZIP_MAX_FILE_COUNT" default:"100000" min:"1" doc:"Most entries of an archive that is opened as a workspace."`
	MaxOpen  int64  `env:"CONDUIT_ZIP_MAX_SESSIONS" default:"32" min:"1" doc:"Most zip workspaces that are open at a time."`
	Links    bool   `env:"CONDUIT_ZIP_ALLOW_SYMLINKS" default:"false" doc:"Whether symbolic links in archives are unpacked into workspaces; otherwise they are left out, and kept in the archive."`
}

// Limits that are no settings.
const (
	maxRatio     = 100      // of a file to what it is compressed to
	ratioFrom    = 1 << 20  // bytes of a file from which on that counts
	maxTotalDisk = 10 << 30 // bytes of all workspaces together
	backups      = 3        // earlier archives that sync keeps
)

// Load reads the settings from lookup. A setting without a value of its own
// takes that of the variable with the prefix ZIPFS_. The error is
// ERR_CONFIG_INVALID.
func Load(lookup func(string) (string, bool)) (Settings, error) {
	s := Settings{MaxSize: 1 << 30, MaxFiles: 100_000, MaxOpen: 32}
	find := func(name string) (variable, value string) {
		for _, prefix := range []string{"CONDUIT_ZIP_", "ZIPFS_"} {
			if v, _ := lookup(prefix + name); strings.TrimSpace(v) != "" {
				return prefix + name, strings.TrimSpace(v)
			}
		}
		return "", ""
	}
	_, s.Dir = find("DATA_DIR")
	for name, n := range map[string]*int64{"MAX_EXTRACTED_SIZE": &s.MaxSize, "MAX_FILE_COUNT": &s.MaxFiles, "MAX_SESSIONS": &s.MaxOpen} {
		if variable, v := find(name); v != "" {
			var err error
			if *n, err = strconv.ParseInt(v, 10, 64); err != nil || *n < 1 {
				return s, fault.New(fault.ConfigInvalid, "%s is %q; it must be an integer of at least 1", variable, v)
			}
		}
	}
	switch variable, v := find("ALLOW_SYMLINKS"); strings.ToLower(v) {
	case "", "false", "0", "no", "off":
	case "true", "1", "yes", "on":
		s.Links = true
	default:
		return s, fault.New(fault.ConfigInvalid, "%s is %q; it must be true or false", variable, v)
	}
	return s, nil
}

// Path returns the directory of the workspaces, absolute, or "" where the user
// has no data directory: XDG_DATA_HOME or ~/.local/share on Unix,
// ~/Library/Application Support on macOS, LOCALAPPDATA on Windows. lookup finds
// these variables, HOME among them.
func (s Settings) Path(lookup func(string) (string, bool)) string {
	get := func(name string) string {
		v, _ := lookup(name)
		if filepath.IsAbs(v) {
			return v
		}
		return ""
	}
	below := func(dir string, elements ...string) string {
		if dir == "" {
			return ""
		}
		return filepath.Join(append([]string{dir}, elements...)...)
	}
	switch {
	case s.Dir == "~" || strings.HasPrefix(s.Dir, "~/"):
		return below(get("HOME"), s.Dir[1:])
	case s.Dir != "":
		abs, err := filepath.Abs(s.Dir)
		if err != nil {
			return ""
		}
		return abs
	case runtime.GOOS == "windows":
		return below(get("LOCALAPPDATA"), "conduit-mcp", "zip")
	case get("XDG_DATA_HOME") != "":
		return below(get("XDG_DATA_HOME"), "conduit-mcp", "zip")
	case runtime.GOOS == "darwin":
		return below(get("HOME"), "Library", "Application Support", "conduit-mcp", "zip")
	}
	return below(get("HOME"), ".local", "share", "conduit-mcp", "zip")
}

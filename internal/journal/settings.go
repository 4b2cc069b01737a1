package journal

import (
	"path/filepath"
	"runtime"
	"strings"
)

// Settings say where a journal is and how much it keeps.
type Settings struct {
	Dir string `env:"CONDUIT_JOURNAL_DIR" default:"" doc:"Directory that keeps what edit.undo brings back; by default conduit-mcp/journal in the user's state directory, NONE for no journal."`
	Max int64  `env:"CONDUIT_JOURNAL_MAX_BYTES" default:"1073741824" min:"1048576" doc:"Size of the journal, in bytes, above which the oldest changes are dropped; what is larger than a tenth of it is not kept."`
}

// Off is the CONDUIT_JOURNAL_DIR that switches the journal off, in any case.
const Off = "NONE"

// Path returns the directory of the journal, absolute, or "" where there is
// none: the setting says so, or the user's state directory is not known. That
// is $XDG_STATE_HOME or $HOME/.local/state on Unix, $HOME/Library/Application
// Support on macOS, and %LocalAppData% on Windows, found by lookup.
func (s Settings) Path(lookup func(string) (string, bool)) string {
	dir := s.Dir
	if strings.EqualFold(dir, Off) {
		return ""
	}
	if dir == "" {
		if dir = stateDir(lookup); dir != "" {
			dir = filepath.Join(dir, "conduit-mcp", "journal")
		}
	} else if rest, ok := strings.CutPrefix(dir, "~"); ok && (rest == "" || rest[0] == '/' || rest[0] == filepath.Separator) {
		dir = filepath.Join(home(lookup), rest)
	}
	if dir == "" {
		return ""
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return ""
	}
	return abs
}

// stateDir is where the user's programs keep their state, "" where that is not
// known.
func stateDir(lookup func(string) (string, bool)) string {
	variable, below := "HOME", filepath.Join(".local", "state")
	switch runtime.GOOS {
	case "darwin":
		below = filepath.Join("Library", "Application Support")
	case "windows":
		variable, below = "LocalAppData", ""
	default:
		if dir, _ := lookup("XDG_STATE_HOME"); filepath.IsAbs(dir) {
			return dir
		}
	}
	dir, _ := lookup(variable)
	if !filepath.IsAbs(dir) {
		return ""
	}
	return filepath.Join(dir, below)
}

func home(lookup func(string) (string, bool)) string {
	variable := "HOME"
	if runtime.GOOS == "windows" {
		variable = "USERPROFILE"
	}
	dir, _ := lookup(variable)
	return dir
}

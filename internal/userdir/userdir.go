// Package userdir finds the directories in which a user's programs keep things,
// on every system. Variables are read through a lookup function, never from the
// process itself.
package userdir

import (
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// A Lookup finds the value of an environment variable.
type Lookup = func(key string) (string, bool)

// Home returns the user's home directory: $HOME (%USERPROFILE% on Windows), else
// what the user database says, else "".
func Home(lookup Lookup) string {
	variable := "HOME"
	if runtime.GOOS == "windows" {
		variable = "USERPROFILE"
	}
	if dir := absolute(lookup, variable); dir != "" {
		return dir
	}
	if runtime.GOOS == "windows" {
		return ""
	}
	if u, err := user.LookupId(strconv.Itoa(os.Getuid())); err == nil && filepath.IsAbs(u.HomeDir) {
		return u.HomeDir
	}
	return ""
}

// State returns where the user's programs keep what is worth keeping between
// runs but is no document, or "" where that is not known: $XDG_STATE_HOME or
// ~/.local/state (XDG Base Directory Specification 0.8), ~/Library/Application
// Support on macOS, %LocalAppData% on Windows.
func State(lookup Lookup) string { return userDir(lookup, "XDG_STATE_HOME", ".local/state") }

// Data is like [State] for the user's data: $XDG_DATA_HOME or ~/.local/share.
func Data(lookup Lookup) string { return userDir(lookup, "XDG_DATA_HOME", ".local/share") }

func userDir(lookup Lookup, variable, below string) string {
	switch runtime.GOOS {
	case "windows":
		return absolute(lookup, "LOCALAPPDATA")
	case "darwin":
		below = "Library/Application Support"
	}
	if dir := absolute(lookup, variable); dir != "" {
		return dir
	}
	if home := Home(lookup); home != "" {
		return filepath.Join(home, filepath.FromSlash(below))
	}
	return ""
}

func absolute(lookup Lookup, variable string) string {
	if dir, _ := lookup(variable); filepath.IsAbs(dir) {
		return dir
	}
	return ""
}

// Expand returns path with "~" or "~/" at its start replaced by the home
// directory; ok is false where that is not known.
func Expand(path string, lookup Lookup) (expanded string, ok bool) {
	rest, tilde := strings.CutPrefix(path, "~")
	if !tilde || rest != "" && !os.IsPathSeparator(rest[0]) {
		return path, true
	}
	home := Home(lookup)
	return filepath.Join(home, rest), home != ""
}

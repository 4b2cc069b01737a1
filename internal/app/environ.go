package app

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/internal/userdir"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// An Environ holds environment variables by name.
type Environ map[string]string

// ParseEnviron reads what [os.Environ] returns.
func ParseEnviron(list []string) Environ {
	e := make(Environ, len(list))
	for _, entry := range list {
		if name, value, ok := strings.Cut(entry, "="); ok && name != "" {
			e[canonical(name)] = value
		}
	}
	return e
}

// Lookup returns the value of a variable, as [os.LookupEnv] does.
func (e Environ) Lookup(name string) (string, bool) {
	v, ok := e[canonical(name)]
	return v, ok
}

// maxEnvFile bounds an environment file, in bytes.
const maxEnvFile = 1 << 20

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// WithFile returns e with the variables of a file that e does not have, or has
// empty, and the names of those. A line of the file is NAME=VALUE, perhaps after
// "export", or is empty or a comment that begins with #. A value may stand in
// single quotes, or in double quotes with the escapes of Go. The error is
// ERR_CONFIG_INVALID and tells the line.
func (e Environ) WithFile(name string) (Environ, map[string]bool, error) {
	if full, ok := userdir.Expand(name, e.Lookup); ok {
		name = full
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return e, nil, fault.New(fault.ConfigInvalid, "the environment file cannot be read: %v", err)
	}
	if len(b) > maxEnvFile {
		return e, nil, fault.New(fault.ConfigInvalid, "the environment file %s has more than %d bytes", name, maxEnvFile)
	}
	all, added := maps.Clone(e), map[string]bool{}
	if all == nil {
		all = Environ{}
	}
	n := 0
	for line := range strings.Lines(string(bytes.TrimPrefix(b, []byte("\ufeff")))) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		key, value, ok := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		if key, value = strings.TrimSpace(key), strings.TrimSpace(value); !ok || !variableName.MatchString(key) {
			return e, nil, fault.New(fault.ConfigInvalid, "%s, line %d: write NAME=VALUE", filepath.Base(name), n)
		}
		if value, ok = unquoted(value); !ok {
			return e, nil, fault.New(fault.ConfigInvalid, "%s, line %d: the quotes of %s do not close", filepath.Base(name), n, key)
		}
		if had, _ := e.Lookup(key); strings.TrimSpace(had) == "" {
			all[canonical(key)], added[canonical(key)] = value, true
		}
	}
	return all, added, nil
}

// unquoted takes the quotes off a value.
func unquoted(value string) (string, bool) {
	switch {
	case value == "" || value[0] != '\'' && value[0] != '"':
		return value, true
	case value[0] == '"':
		text, err := strconv.Unquote(value)
		return text, err == nil
	}
	return value[1:max(1, len(value)-1)], len(value) > 1 && value[len(value)-1] == '\''
}

// canonical is a variable's name where those that differ in case are one.
func canonical(name string) string {
	if runtime.GOOS == "windows" {
		return strings.ToUpper(name)
	}
	return name
}

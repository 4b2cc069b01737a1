package app

import (
	"runtime"
	"strings"
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

// canonical is a variable's name where those that differ in case are one.
func canonical(name string) string {
	if runtime.GOOS == "windows" {
		return strings.ToUpper(name)
	}
	return name
}

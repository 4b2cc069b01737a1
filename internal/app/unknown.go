package app

import (
	"slices"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/registry"
)

// An UnknownVariable is set in the environment and looks like a setting, but
// nothing reads it.
type UnknownVariable struct {
	Name    string
	Nearest string // the known variable that it resembles; "" for none
}

// prefix is what the names of settings begin with.
const prefix = "CONDUIT_"

// UnknownVariables lists the variables of the environment that begin like
// settings and are none, sorted. Settings of toolsets that are linked in and not
// served are known too.
func (a *App) UnknownVariables() ([]UnknownVariable, error) {
	own, err := ServerSettings()
	if err != nil {
		return nil, err
	}
	known := variables(a.Set.Settings(own...))
	var strange []string
	for name := range a.environ {
		if strings.HasPrefix(name, prefix) && !slices.Contains(known, name) {
			strange = append(strange, name)
		}
	}
	if len(strange) == 0 {
		return nil, nil
	}
	all, err := registry.Registered() // looked at only now, since making all ops takes time
	if err != nil {
		return nil, err
	}
	linked, err := registry.Toolsets()
	if err != nil {
		return nil, err
	}
	known = variables(all.Settings(own...))
	for _, t := range linked {
		known = append(known, t.Variables...)
	}
	slices.Sort(strange)
	var list []UnknownVariable
	for _, name := range strange {
		if !slices.Contains(known, name) {
			list = append(list, UnknownVariable{name, nearest(name, known)})
		}
	}
	return list, nil
}

// variables are the names that settings are read from.
func variables(settings []registry.Setting) []string {
	var list []string
	for _, s := range settings {
		list = append(append(list, s.Env), s.Aliases...)
	}
	return list
}

// nearest returns the one of known that name resembles most, or "" where it
// resembles none: where more than a third of its characters differ.
func nearest(name string, known []string) string {
	best, least := "", len(name)/3+1
	for _, k := range known {
		if d := distance(name, k); d < least {
			best, least = k, d
		}
	}
	return best
}

// distance is the Levenshtein distance of two names in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

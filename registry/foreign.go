package registry

import (
	"encoding/json"

	"github.com/invopop/jsonschema"
)

// viewName is the parameter that ops with a lean view have.
const viewName = "view"

// foreign holds, by shape ("recursive", "entries.recursive"), the parameters
// that a tool publishes for its other ops.
type foreign map[string]*foreignParam

type foreignParam struct {
	ops    []string // names of the ops that take it
	schema *jsonschema.Schema
}

// idle reports whether raw is what a caller who fills in every published
// parameter sends for one that does not matter: null, empty or its default.
func (p *foreignParam) idle(raw json.RawMessage) bool {
	switch string(raw) {
	case "null", `""`, "[]", "{}":
		return true
	}
	want := p.schema.Default
	if want == nil {
		switch p.schema.Type {
		case "boolean":
			want = false
		case "integer", "number":
			want = 0
		default:
			return false
		}
	}
	b, err := json.Marshal(want)
	return err == nil && string(b) == string(raw)
}

package write

import "github.com/conduit-mcp/conduit-mcp/registry"

// A PathResult is what became of one path.
type PathResult struct {
	registry.Outcome
	Action  string `json:"action_performed"`
	Path    string `json:"path"`
	Message string `json:"message,omitempty"`
}

// Trim keeps of a result that does not fit into the response what identifies it.
func (r *PathResult) Trim(err error) {
	r.Message = ""
	r.Settle(err)
}

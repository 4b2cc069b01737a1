package registry

import "io"

// A JSONWriter is a result that writes its own JSON, since it is large and
// reflection would cost more than the work that led to it. It writes exactly
// what encoding/json without HTML escapes writes of it, in pieces of any length.
type JSONWriter interface {
	WriteJSON(w io.Writer) error
}

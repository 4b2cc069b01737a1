package roots

import (
	"path/filepath"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// badForSystem refuses names that Windows takes for something else: devices,
// alternate data streams, and names it would trim.
func badForSystem(raw string) error {
	rest := raw[len(filepath.VolumeName(raw)):]
	for _, name := range split(rest) {
		if name == ".." {
			continue
		}
		if strings.Contains(name, ":") || strings.HasSuffix(name, ".") || strings.HasSuffix(name, " ") || !filepath.IsLocal(name) {
			return fault.New(fault.FSBadPathInput, "%q is no file name on Windows", name)
		}
	}
	return nil
}

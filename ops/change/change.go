// Package change has what all ops that change files share in a server: the one
// writer of files, and the journal that keeps what they destroy.
package change

import (
	"path/filepath"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/journal"
	"github.com/conduit-mcp/conduit-mcp/registry"
)

// Files are the writer and the journal of a server.
type Files struct {
	Writer  *atomicfile.Writer
	Journal *journal.Journal
}

// Shared returns the Files of the server that env is of. The journal is that of
// the first caller's settings, which are the same for all.
func Shared(s journal.Settings, env *registry.Env) (*Files, error) {
	return registry.Shared(env, func(env *registry.Env) (*Files, error) {
		f := &Files{atomicfile.NewShared(Locks(env.Lookup), env.Log), journal.New(s, env.Lookup, env.Log)}
		env.OnClose(f.Journal.Close)
		env.OnClose(f.Writer.Close)
		return f, nil
	})
}

// Locks returns the directory of the files by which the servers of one user wait
// for each other, "" where the user's state directory is not known.
func Locks(lookup func(string) (string, bool)) string {
	dir := journal.Settings{}.Path(lookup)
	if dir == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(dir), "locks")
}

// Package change has what all ops that change files share in a server: the one
// writer of files, and the journal that keeps what they destroy.
package change

import (
	"path/filepath"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/journal"
	"github.com/conduit-mcp/conduit-mcp/internal/userdir"
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
		f := &Files{atomicfile.NewShared(locks(env), env.Log), journal.New(s, env.Log)}
		env.OnClose(f.Journal.Close)
		env.OnClose(f.Writer.Close)
		return f, nil
	})
}

// locks returns the directory of the files by which the servers of one user wait
// for each other, "" where the user's state directory is not known.
func locks(env *registry.Env) string {
	if dir := userdir.State(env.Lookup); dir != "" {
		return filepath.Join(dir, "conduit-mcp", "locks")
	}
	return ""
}

// Own returns where the Files keep what is theirs; see [registry.Toolset].
func Own(env *registry.Env) ([]string, error) {
	own, err := registry.Directories[journal.Settings](env)
	if dir := locks(env); dir != "" {
		own = append(own, dir)
	}
	return own, err
}

package task

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// Claim takes the directory tree for one run, of all processes that keep their
// claims in the directory claims. ok is false while another run has it, or a tree
// above or below; what is no absolute path is in nobody's way but its own. The
// claim ends with release, or with the process.
func Claim(claims *os.Root, tree string) (release func(), ok bool, err error) {
	// One at a time looks and claims.
	gate, err := claims.OpenFile("gate", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, false, err
	}
	defer gate.Close()
	if !free(gate) {
		return nil, false, nil
	}
	names, err := fs.Glob(claims.FS(), "*.claim")
	if err != nil {
		return nil, false, err
	}
	for _, name := range names {
		switch other, err := claimed(claims, name); {
		case err != nil:
			return nil, false, err
		case other != "" && (place.Within(other, tree) || place.Within(tree, other)):
			return nil, false, nil
		}
	}
	f, err := claims.OpenFile(fmt.Sprintf("%x.claim", sha256.Sum256([]byte(tree))), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, false, err
	}
	if _, err := f.WriteString("\n" + tree); err != nil || !free(f) {
		f.Close()
		return nil, false, err
	}
	return func() { f.Close() }, true, nil // whoever comes next removes it
}

// claimed is the tree of a claim, or "" and the file removed where nobody holds
// it any more.
func claimed(claims *os.Root, name string) (string, error) {
	f, err := claims.OpenFile(name, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	if free(f) {
		return "", claims.Remove(name)
	}
	// The first byte is what Windows keeps others from reading.
	tree, err := io.ReadAll(io.NewSectionReader(f, 1, 1<<16))
	return string(tree), err
}

package zipws

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/internal/entryname"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// A Name is a path in a workspace: relative to its top, with "/". A "/" in front
// stands for the top too; "" and "/" are the top itself. It is the caller's word
// until it is used on the workspace's own handle.
type Name string

// clean returns n without "." and "..", "." for the top. A name that leads
// outside is PATH_TRAVERSAL.
func (n Name) clean() (string, error) {
	s := strings.TrimLeft(string(n), "/")
	switch {
	case strings.ContainsRune(s, 0):
		return "", fault.New(PathTraversal, "the path %q contains a NUL character", clip(string(n)))
	case strings.ContainsRune(s, '\\'):
		return "", fault.New(PathTraversal, "the path %q contains a backslash; separate directories with /", clip(string(n)))
	}
	s = path.Clean(s)
	if !filepath.IsLocal(filepath.FromSlash(s)) {
		return "", fault.New(PathTraversal, "the path %q leads outside the workspace; paths are relative to its top", clip(string(n)))
	}
	if s == "." {
		return s, nil
	}
	if why := entryname.Bad(s); why != "" {
		return "", fault.New(InvalidParams, "the path %q %s", clip(string(n)), why)
	}
	return s, nil
}

// explain gives an error of using the name on the workspace its code.
func (w Words) explain(name string, err error) error {
	coded := new(fault.Error)
	switch {
	case err == nil, errors.As(err, &coded) && coded.Code != fault.FSNotFound:
		return err
	case errors.Is(err, fs.ErrNotExist):
		return w.noSuch(name)
	case strings.Contains(err.Error(), "escapes from parent"): // as os.Root says it
		return fault.Hide(PathTraversal, err, "%s passes through a symbolic link that leads outside the workspace", name)
	}
	if code, message := fault.Of(err); code == fault.FSPathResolution {
		return fault.Hide(PathNotFound, err, "%s: %s", name, message)
	}
	return err
}

func (w Words) noSuch(name string) error {
	return fault.New(PathNotFound, "there is no %s in the workspace; %s tells what is there", name, w.List)
}

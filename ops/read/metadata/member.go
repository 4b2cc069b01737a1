package metadata

import (
	"context"
	"path"
	"path/filepath"

	"github.com/conduit-mcp/conduit-mcp/internal/member"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// describeMember describes what is called name in the archive at a place.
func describeMember(ctx context.Context, at place.Place, asked, name string) (result, error) {
	a, err := member.Open(ctx, at, asked)
	if err != nil {
		return result{}, err
	}
	defer a.Close()
	e, err := a.Find(name)
	if err != nil {
		return result{}, err
	}
	info := a.Info(e)
	m := &metadata{Name: path.Base(name), EntryType: info.Type, Modified: info.Modified, Octal: info.Octal, Permissions: info.Permissions}
	if name == "." {
		m.Name = filepath.Base(at.Asked)
	}
	if e.Mode.IsRegular() {
		types, err := a.Types(ctx, map[string]bool{e.Name: true})
		if err != nil {
			return result{}, err
		}
		m.Size, m.MIMEType = &e.Size, types[e.Name]
	}
	return result{Metadata: m}, nil
}

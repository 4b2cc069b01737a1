package filesystem

import (
	"context"
	"fmt"

	"github.com/conduit-mcp/conduit-mcp/internal/entry"
	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
	"github.com/conduit-mcp/conduit-mcp/internal/walk"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func init() { register(statDesc, buildStat) }

var statDesc = registry.Desc{
	Tool:    "stat_items",
	Summary: "Describe files and directories: kind, size, times, permissions, owner.",
	Effect:  registry.ReadOnly,
	Errors:  codes(fault.FSNotFound),
	Examples: []registry.Example{
		{Title: "Two paths", Args: `{"paths": ["main.go", "docs"]}`},
	},
}

type paths struct {
	Paths []registry.Path `json:"paths" jsonschema:"minItems=1" jsonschema_description:"Relative paths."`
}

// stats describe a file. Of a symbolic link they are those of what it leads to.
type stats struct {
	Path        string `json:"path"`
	IsFile      bool   `json:"isFile"`
	IsDirectory bool   `json:"isDirectory"`
	IsLink      bool   `json:"isSymbolicLink"`
	Size        int64  `json:"size"`
	Accessed    string `json:"atime"`
	Modified    string `json:"mtime"`
	Changed     string `json:"ctime"`
	Created     string `json:"birthtime"`
	Mode        string `json:"mode"` // three octal digits
	UID         uint32 `json:"uid"`
	GID         uint32 `json:"gid"`
}

func statsOf(path string, i fileinfo.Info, link bool) *stats {
	return &stats{
		Path: path, IsFile: i.Mode.IsRegular(), IsDirectory: i.IsDir(), IsLink: link || i.IsLink(), Size: i.Size,
		Accessed: fileinfo.ISO(i.Accessed), Modified: fileinfo.ISO(i.Modified), Changed: fileinfo.ISO(i.Changed), Created: fileinfo.ISO(i.Created),
		Mode: fmt.Sprintf("%03o", i.Mode.Perm()), UID: i.UID, GID: i.GID,
	}
}

// statsOfPath describes what p leads to.
func statsOfPath(p registry.Path) (*stats, error) {
	at, err := p.Place()
	if err != nil {
		return nil, err
	}
	info, err := fileinfo.Of(at)
	if err != nil {
		return nil, located(p, err)
	}
	own, err := at.Entry()
	return statsOf(p.String(), info, err == nil && own.Abs != at.Abs), nil
}

// statsOfEntry describes the entry e of d, a link only by itself where what it
// leads to may not be told.
func statsOfEntry(path string, d *walk.Dir, e walk.Entry) (*stats, error) {
	info, err := d.Info(e.Name)
	if err != nil {
		return nil, err
	}
	if info.IsLink() {
		if _, target, err := entry.Follow(d, e.Name); err == nil {
			return statsOf(path, target, true), nil
		}
	}
	return statsOf(path, info, false), nil
}

type statResult struct {
	Path   string `json:"path"`
	Status string `json:"status"`
	Stats  *stats `json:"stats,omitempty"`
	trouble
}

// Settle fills r from err; nil means success.
func (r *statResult) Settle(err error) {
	if r.Status = "success"; err != nil {
		r.Status = "error"
	}
	r.trouble.Settle(err)
}

func buildStat(struct{}, *registry.Env) (registry.Func[paths, []statResult], error) {
	return func(ctx context.Context, in paths) ([]statResult, error) {
		return registry.Each(ctx, in.Paths, func(_ context.Context, p registry.Path) (r statResult, err error) {
			r.Path = p.String()
			r.Stats, err = statsOfPath(p)
			return r, err
		})
	}, nil
}

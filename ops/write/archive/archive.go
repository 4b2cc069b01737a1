// Package archive adds write.archive: files and directories packed.
package archive

import (
	"context"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/pack"
	"github.com/conduit-mcp/conduit-mcp/ops/write"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func init() { registry.Register(desc, build) }

var desc = registry.Desc{
	Tool:    write.Tool,
	Name:    "archive",
	Summary: "Pack; no entries.",
	Effect:  registry.Destructive,
	Errors: []fault.Code{
		fault.InvalidParameter, fault.FSAccessDenied, fault.FSPathResolution, fault.FSBadPathInput, fault.FSOperation,
		fault.ArchiveCreation, fault.ArchiveRead, fault.ArchiveFormat, fault.ArchivePath, fault.TooDeep,
	},
	Examples: []registry.Example{
		{Title: "A directory and a file", Args: `{"source_paths": ["src", "README.md"], "archive_path": "backup.zip"}`},
		{Title: "As tar.gz", Args: `{"source_paths": ["data.csv"], "archive_path": "out/data.tgz", "format": "tgz"}`},
	},
}

type settings struct{}

type params struct {
	Sources   []registry.Path `json:"source_paths" jsonschema:"minItems=1" jsonschema_description:"Files and directories."`
	Archive   registry.Path   `json:"archive_path" jsonschema_description:"Archive file."`
	Format    string          `json:"format,omitempty" jsonschema:"default=zip" jsonschema_description:"zip, tar.gz or tgz."`
	Recursive bool            `json:"recursive_source_listing,omitempty" jsonschema:"default=true" jsonschema_description:"false: direct files only."`
}

type result struct {
	registry.Outcome
	Action  string   `json:"action_performed"`
	Path    string   `json:"path"`
	Skipped []string `json:"skipped_sources,omitempty"`
	Message string   `json:"message,omitempty"`
}

func build(_ settings, env *registry.Env) (registry.Func[params, result], error) {
	files, err := registry.Shared(env, func(*registry.Env) (*atomicfile.Writer, error) { return atomicfile.New(), nil })
	return func(ctx context.Context, in params) (result, error) {
		r := result{Action: desc.Name, Path: in.Archive.String()}
		format, err := pack.ParseWritten(in.Format)
		if err != nil {
			return r, err
		}
		dst, err := in.Archive.Place()
		if err != nil {
			return r, err
		}
		sources := make([]pack.Source, len(in.Sources))
		for i, p := range in.Sources {
			s := &sources[i]
			s.Place, s.Err = p.Place()
			if s.Asked = s.Place.Asked; s.Asked == "" {
				s.Asked = p.String()
			}
		}
		done, err := pack.Create(ctx, files, dst, sources, pack.CreateOptions{
			Format:    format,
			Recursive: in.Recursive,
			Progress:  func(n int64) { registry.Progress(ctx, n, 0, "") },
		})
		if err != nil {
			return r, err
		}
		r.Skipped, r.Message = done.Skipped, done.Message()
		r.Settle(nil)
		return r, nil
	}, err
}

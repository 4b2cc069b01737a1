// Package unarchive adds write.unarchive: archives unpacked.
package unarchive

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
	Name:    "unarchive",
	Summary: "Unpack, all or nothing; no entries.",
	Effect:  registry.Destructive,
	Errors: []fault.Code{
		fault.InvalidParameter, fault.FSAccessDenied, fault.FSPathResolution, fault.FSBadPathInput, fault.FSNotFound, fault.FSAlreadyExists,
		fault.FSOperation, fault.Unarchive, fault.ArchiveFormat, fault.ArchiveDetect, fault.ArchivePath, fault.LimitExceeded,
	},
	Examples: []registry.Example{
		{Title: "What an archive would write", Args: `{"archive_path": "release.tar.gz", "destination_path": "release", "strip_components": 1, "dry_run": true}`},
		{Title: "Some files, beside what is there", Args: `{"archive_path": "docs.zip", "destination_path": "docs", "include": ["*.md"], "exclude": ["drafts/**"], "overwrite": false}`},
	},
}

type settings struct {
	MaxBytes int64 `env:"CONDUIT_MAX_UNARCHIVE_BYTES" default:"10737418240" min:"1" doc:"Most bytes that one archive is unpacked to."`
}

type params struct {
	Archive     registry.Path `json:"archive_path" jsonschema_description:"Archive file."`
	Destination registry.Path `json:"destination_path" jsonschema_description:"Directory."`
	Format      string        `json:"format,omitempty" jsonschema_description:"Read as this, not by content."`
	Overwrite   bool          `json:"overwrite,omitempty" jsonschema:"default=true" jsonschema_description:"Replace what exists."`
	Strip       int           `json:"strip_components,omitempty" jsonschema:"minimum=0" jsonschema_description:"Leading elements to drop."`
	Include     []string      `json:"include,omitempty" jsonschema_description:"Globs on names in the archive."`
	Exclude     []string      `json:"exclude,omitempty" jsonschema_description:"Globs, as in include."`
	DryRun      bool          `json:"dry_run,omitempty" jsonschema_description:"Write nothing."`
}

type result struct {
	registry.Outcome
	Action      string         `json:"action_performed"`
	Path        string         `json:"path"`
	Destination string         `json:"destination_path"`
	Count       *int           `json:"extracted_files_count,omitempty"`
	Entries     []pack.Planned `json:"entries,omitempty"`
	Message     string         `json:"message,omitempty"`
}

func build(cfg settings, env *registry.Env) (registry.Func[params, result], error) {
	files, err := registry.Shared(env, func(*registry.Env) (*atomicfile.Writer, error) { return atomicfile.New(), nil })
	return func(ctx context.Context, in params) (result, error) {
		r := result{Action: desc.Name, Path: in.Archive.String(), Destination: in.Destination.String()}
		o := pack.ExtractOptions{
			Overwrite: in.Overwrite,
			Strip:     in.Strip,
			Include:   in.Include,
			Exclude:   in.Exclude,
			DryRun:    in.DryRun,
			MaxBytes:  cfg.MaxBytes,
			Progress:  func(done, total int64) { registry.Progress(ctx, done, total, "") },
		}
		if in.Format != "" {
			f, err := pack.ParseFormat(in.Format)
			if err != nil {
				return r, err
			}
			o.Format = f
		}
		src, err := in.Archive.Place()
		if err != nil {
			return r, err
		}
		dst, err := in.Destination.Place()
		if err != nil {
			return r, err
		}
		done, err := pack.Extract(ctx, files, src, dst, o)
		if err != nil {
			return r, err
		}
		r.Entries, r.Message = done.Planned, done.Message()
		if !in.DryRun {
			r.Count = &done.Count
		}
		r.Settle(nil)
		return r, nil
	}, err
}

// Package sysinfo adds list.system_info: what the server is and can do, and how
// full a volume is.
package sysinfo

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/conduit-mcp/conduit-mcp/internal/digest"
	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
	"github.com/conduit-mcp/conduit-mcp/internal/journal"
	"github.com/conduit-mcp/conduit-mcp/internal/pack"
	"github.com/conduit-mcp/conduit-mcp/ops/change"
	"github.com/conduit-mcp/conduit-mcp/ops/list"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

func init() { registry.Register(desc, build) }

var desc = registry.Desc{
	Tool:    list.Tool,
	Name:    "system_info",
	Summary: "Tell about this server or a volume.",
	Effect:  registry.ReadOnly,
	Errors: []fault.Code{fault.InvalidParameter, fault.FSNotFound, fault.FSAccessDenied, fault.FSPathResolution,
		fault.FSBadPathInput, fault.FSOperation},
	Examples: []registry.Example{
		{Title: "Version, settings, formats", Args: `{"info_type": "server_capabilities"}`},
		{Title: "What was changed lately and can be undone", Args: `{"info_type": "recent_changes"}`},
		{Title: "Space on the volume of a directory", Args: `{"info_type": "filesystem_stats", "path": "."}`},
	},
}

type settings struct {
	journal.Settings
	Algorithm string `env:"CONDUIT_DEFAULT_CHECKSUM_ALGORITHM" default:"sha256" oneof:"md5 sha1 sha256 sha512" doc:"Checksum algorithm of calls that name none."`
	MaxDepth  int    `env:"CONDUIT_MAX_RECURSIVE_DEPTH" default:"10" min:"0" doc:"Levels that list and find descend."`
}

type params struct {
	InfoType string        `json:"info_type" jsonschema:"enum=server_capabilities,enum=filesystem_stats,enum=recent_changes" jsonschema_description:"What to tell."`
	Path     registry.Path `json:"path,omitempty" jsonschema_description:"Directory, archive.zip!/, or any path of a volume."`
}

// An info has the fields of one of its parts.
type info struct {
	ServerVersion string `json:"server_version,omitempty"`
	*capabilities
	*volume
	*hint
	*changes
}

type capabilities struct {
	Configuration  json.RawMessage    `json:"active_configuration"`
	Algorithms     []digest.Algorithm `json:"supported_checksum_algorithms"`
	ArchiveFormats []string           `json:"supported_archive_formats"`
	Algorithm      string             `json:"default_checksum_algorithm"`
	MaxDepth       int                `json:"max_recursive_depth"`
	TempDir        string             `json:"system_temp_directory"`
}

type volume struct {
	Path string `json:"path_queried"`
	space
}

// space is how full a volume is, in bytes.
type space struct {
	Total     uint64 `json:"total_bytes"`
	Free      uint64 `json:"free_bytes"`
	Available uint64 `json:"available_bytes"` // to other users than root
	Used      uint64 `json:"used_bytes"`
}

type hint struct {
	InfoType     string   `json:"info_type_requested"`
	Message      string   `json:"status_message"`
	Started      string   `json:"server_start_time_iso"`
	AllowedPaths []string `json:"configured_allowed_paths"`
}

// changes are the latest that edit.undo can take back, newest first.
type changes struct {
	Changes []recentChange `json:"recent_changes"`
}

type recentChange struct {
	ID       string        `json:"change_id"`
	Time     string        `json:"time_iso"`
	Op       string        `json:"operation"`
	Files    []changedFile `json:"files"`
	More     int           `json:"more_files,omitempty"`
	Bytes    int64         `json:"bytes_kept"`
	Undoable bool          `json:"undoable"`
	UndoneBy string        `json:"undone_by,omitempty"`
}

type changedFile struct {
	Path string `json:"path"`
	From string `json:"from,omitempty"`
	Kind string `json:"kind"` // created, changed, deleted or moved
}

// most is how many changes are told.
const most = 20

const noPath = "No specific path provided for filesystem_stats. To retrieve statistics for a filesystem volume, please provide a 'path' parameter pointing to a location within one of the configured allowed paths."

func build(cfg settings, env *registry.Env) (registry.Func[params, info], error) {
	files, err := change.Shared(cfg.Settings, env)
	return func(_ context.Context, in params) (info, error) {
		server := env.Server
		switch {
		case in.InfoType == "recent_changes":
			list, err := recent(journal.Undoer{Journal: files.Journal, Resolve: env.Paths.Resolve})
			return info{changes: &changes{list}}, err
		case in.InfoType == "server_capabilities":
			return info{ServerVersion: server.Version, capabilities: &capabilities{
				Configuration:  server.Configuration,
				Algorithms:     []digest.Algorithm{digest.MD5, digest.SHA1, digest.SHA256, digest.SHA512},
				ArchiveFormats: pack.Formats(),
				Algorithm:      cfg.Algorithm,
				MaxDepth:       cfg.MaxDepth,
				TempDir:        tempDir(),
			}}, nil
		case in.Path.String() == "":
			return info{ServerVersion: server.Version, hint: &hint{
				InfoType:     in.InfoType,
				Message:      noPath,
				Started:      fileinfo.ISO(server.Started),
				AllowedPaths: server.AllowedPaths,
			}}, nil
		}
		at, err := in.Path.Place()
		if err != nil {
			return info{}, err
		}
		v, err := volumeOf(at)
		return info{volume: v}, err
	}, err
}

func recent(u journal.Undoer) ([]recentChange, error) {
	found, err := u.Recent(most)
	list := []recentChange{}
	for _, r := range found {
		c := recentChange{ID: r.ID, Time: fileinfo.ISO(r.Time), Op: r.Op, Files: []changedFile{}, More: r.More, Bytes: r.Bytes, Undoable: r.Undoable, UndoneBy: r.Undone}
		for _, f := range r.Files {
			c.Files = append(c.Files, changedFile(f))
		}
		list = append(list, c)
	}
	return list, err
}

func tempDir() string {
	dir := os.TempDir()
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}

func volumeOf(at place.Place) (*volume, error) {
	f, _, err := at.Open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s, err := spaceOf(f)
	if err != nil {
		return nil, fault.Hide(fault.FSOperation, err, "the system does not tell the statistics of the volume that holds %s", at.Abs)
	}
	path := at.Abs
	if entry, err := at.Entry(); err == nil { // not where the path is a link to an allowed directory
		path = entry.Abs
	}
	return &volume{path, s}, nil
}

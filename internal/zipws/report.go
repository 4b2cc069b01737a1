package zipws

import (
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
)

// The reports of Workspaces are written as JSON by tools and the command line
// alike.

// A Time is written in ISO 8601, in UTC with milliseconds.
type Time time.Time

// MarshalText writes t.
func (t Time) MarshalText() ([]byte, error) { return []byte(fileinfo.ISO(time.Time(t))), nil }

// Opened tells of a session that was opened.
type Opened struct {
	ID       string   `json:"session_id"`
	Name     string   `json:"name"`
	Path     string   `json:"workspace_path,omitempty"` // of its files; not of a lazy one, which has none there yet
	Files    int      `json:"file_count"`
	Bytes    int64    `json:"extracted_size_bytes"`
	Lazy     bool     `json:"lazy,omitempty"`
	ReadOnly bool     `json:"read_only,omitempty"`
	Warnings []string `json:"warnings,omitempty"` // of what is odd in the archive
}

// Closed tells of a session that was closed.
type Closed struct {
	Closed bool `json:"closed"`
	Synced bool `json:"synced"`
}

// A Session is what is told of one.
type Session struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Source   string `json:"source_path"`
	State    string `json:"state"` // "open" or "syncing"
	Created  Time   `json:"created_at"`
	Accessed Time   `json:"last_accessed_at"`
	Files    int    `json:"file_count"`
	Bytes    int64  `json:"extracted_size_bytes"`
	Lazy     bool   `json:"lazy,omitempty"`
	ReadOnly bool   `json:"read_only,omitempty"`
}

// An Item is a file or directory as listings tell it.
type Item struct {
	Name     string `json:"name"` // below what is listed; of a directory with a slash at the end
	Type     string `json:"type"` // "file", "dir" or "symlink"
	Size     int64  `json:"size_bytes"`
	Modified Time   `json:"modified_at"`
}

// A Tree is a directory drawn.
type Tree struct {
	Text  string `json:"tree"`
	Files int    `json:"file_count"` // below the top
	Dirs  int    `json:"dir_count"`
}

// A Match is a line in which a pattern is.
type Match struct {
	File string `json:"file"`         // below the top of the workspace
	Line int    `json:"line_number"`  // from 1
	Text string `json:"line_content"` // without its end; of a long one the part around the match
}

// A Grep is what a search came to.
type Grep struct {
	Matches   []Match `json:"matches"`
	Total     int     `json:"total_matches"`
	Truncated bool    `json:"truncated"` // there are further ones

	Warnings []string `json:"warnings,omitempty"` // of files that could not be read, and a glob that chose none
}

// A Status is what changed in a workspace since it was opened or synced last.
// Names are sorted; those of directories end in a slash.
type Status struct {
	Modified  []string `json:"modified"`
	Added     []string `json:"added"`
	Deleted   []string `json:"deleted"`
	Unchanged int      `json:"unchanged_count"` // files
	Warnings  []string `json:"warnings,omitempty"`
}

func (s Status) dirty() bool { return len(s.Modified)+len(s.Added)+len(s.Deleted) > 0 }

// A Synced report says what a sync came to.
type Synced struct {
	Synced    bool     `json:"synced"`                // false of a dry run
	Backup    string   `json:"backup_path,omitempty"` // the archive as it was; not where nothing was written
	Modified  int      `json:"files_modified"`
	Added     int      `json:"files_added"`
	Deleted   int      `json:"files_deleted"`
	Estimated *int64   `json:"estimated_size_bytes,omitempty"` // of a dry run: the size that the archive would have
	Warnings  []string `json:"warnings,omitempty"`
}

// A Change is what became of a file.
type Change struct {
	Name   string `json:"path"`                        // of a directory with a slash at the end
	Kind   string `json:"status"`                      // "modified", "added" or "deleted"
	Before *int64 `json:"size_bytes_before,omitempty"` // in the archive
	After  *int64 `json:"size_bytes_after,omitempty"`  // in the workspace
	Diff   string `json:"diff,omitempty"`              // unified, for text
	Note   string `json:"note,omitempty"`              // why there is no diff: "binary", "too large" or "directory"
}

// A Pruned session was removed, or would be, or could not be.
type Pruned struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Reason string `json:"reason"` // why it is removed, or why not
}

// A PruneReport says what pruning came to.
type PruneReport struct {
	Pruned  []Pruned `json:"pruned"`
	Skipped []Pruned `json:"skipped,omitempty"` // in use
	Freed   int64    `json:"freed_bytes"`
}

// Package snapshot tells exactly what a run changed in a directory: it takes the
// state before and after and compares the two.
//
// In a git repository a snapshot is a tree object made through an index of its
// own, so that uncommitted, new and binary files are all in it and neither the
// repository's index nor its references change. Elsewhere it is a list of
// content hashes.
package snapshot

import (
	"cmp"
	"context"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A Snapshot is the state of a directory at one time.
type Snapshot struct {
	Tree   string              `json:"tree,omitempty"`   // id of the git tree
	Nested map[string]Snapshot `json:"nested,omitempty"` // of repositories in the tree, by path
	Files  map[string]File     `json:"files,omitempty"`

	committed bool // it is the last commit's, also that of nested repositories
}

var object = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`) })

// Valid reports whether s can be what Take returned of a repository: it may come
// from a file.
func (s Snapshot) Valid() bool {
	for name, n := range s.Nested {
		if !filepath.IsLocal(filepath.FromSlash(name)) || !n.Valid() {
			return false
		}
	}
	return object().MatchString(s.Tree) && s.Files == nil
}

// Same reports whether two trees are the same, and those of the repositories in
// them.
func (s Snapshot) Same(o Snapshot) bool {
	return s.Tree == o.Tree && maps.EqualFunc(s.Nested, o.Nested, Snapshot.Same)
}

// A File is what a list of content hashes tells of a file or link.
type File struct {
	Hash string `json:"hash"`
	Mode string `json:"mode"`
	Size int64  `json:"size"`

	text []byte // of a small text, where it was at hand
}

// A Change is one path that differs between two snapshots.
type Change struct {
	Path   string `json:"path"`   // relative to the working directory, slash-separated
	Status string `json:"status"` // added, modified or deleted
	Binary bool   `json:"binary,omitempty"`
}

// A Difference is what changed from one snapshot to another.
type Difference struct {
	Changes []Change
	Diff    string // unified, without binary files; paths are relative to Space.Top
}

// Paths returns the changed paths, sorted.
func (d Difference) Paths() []string {
	paths := make([]string, 0, len(d.Changes))
	for _, c := range d.Changes {
		paths = append(paths, c.Path)
	}
	return paths
}

// BinaryPaths returns the changed paths whose content is binary, sorted.
func (d Difference) BinaryPaths() []string {
	var paths []string
	for _, c := range d.Changes {
		if c.Binary {
			paths = append(paths, c.Path)
		}
	}
	return paths
}

// A Space is a directory that snapshots are taken of.
type Space interface {
	// Top is the directory whose state is taken: that of the repository, or the
	// working directory.
	Top() string
	// Repository reports whether it belongs to a git repository.
	Repository() bool
	// Take takes a snapshot.
	Take(ctx context.Context) (Snapshot, error)
	// Committed is the state of the last commit, and the empty one where there
	// is none.
	Committed(ctx context.Context) (Snapshot, error)
	// Status is what git status --porcelain=v1 says; "" outside repositories.
	Status(ctx context.Context) (string, error)
	// Compare tells what changed from a to b.
	Compare(ctx context.Context, a, b Snapshot) (Difference, error)
	// Close releases what the space holds.
	Close() error
}

// Options say what of a directory counts.
type Options struct {
	// Within reports whether a directory may be looked at. A repository that
	// begins above what may be is looked at from the working directory down.
	Within func(dir string) bool
	// Exclude are absolute paths of directories that are left out.
	Exclude []string
}

// Open returns the space of the working directory dir.
func Open(ctx context.Context, dir string, o Options) Space {
	if g := openGit(ctx, dir, o); g != nil {
		return g
	}
	return Hashes(dir, o)
}

// relative returns name, relative to a directory of which the working directory
// is prefix ("" or "sub/"), as seen from there.
func relative(prefix, name string) string {
	up := ""
	for prefix != "" && !strings.HasPrefix(name, prefix) {
		up += "../"
		prefix = strings.TrimSuffix(prefix, "/")
		if prefix = path.Dir(prefix); prefix == "." {
			prefix = ""
		} else {
			prefix += "/"
		}
	}
	return up + name[len(prefix):]
}

func sortChanges(list []Change) {
	slices.SortFunc(list, func(a, b Change) int { return cmp.Compare(a.Path, b.Path) })
}

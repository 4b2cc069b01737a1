package replace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/conduit-mcp/conduit-mcp/internal/search"
	"github.com/conduit-mcp/conduit-mcp/internal/walk"
	"github.com/conduit-mcp/conduit-mcp/ops/edit"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// A fileSearch looks for the files below base_path that have a match. Links are not
// followed: what they lead to is met under its own name.
type fileSearch struct {
	params
	matcher search.Matcher
	depth   int
	timeout time.Duration
	taken   map[string]bool // files that are dealt with already, by absolute path
}

// A sight is what was seen of one entry.
type sight struct {
	task     *edit.Task // where it has a match, or cannot be searched
	searched bool
}

// run returns a task for each file with a match that is not taken, in path
// order, and how many files were searched. Nothing is changed yet, so a search
// that takes too long fails as a whole.
func (h *fileSearch) run(ctx context.Context) (found []edit.Task, searched int, err error) {
	base, err := h.Base.Place()
	if err != nil {
		return nil, 0, err
	}
	top, err := walk.Open(base)
	if err != nil {
		return nil, 0, err
	}
	defer top.Close()
	limited, stop := context.WithTimeout(ctx, h.timeout)
	defer stop()
	report, err := walk.Tree(limited, top, walk.TreeOptions{Depth: h.depth, GitIgnore: true}, h.look, func(s sight) bool {
		if s.searched {
			searched++
			registry.Progress(ctx, int64(searched), 0, "files searched")
		}
		if s.task != nil {
			found = append(found, *s.task)
		}
		return true
	})
	switch {
	case ctx.Err() != nil:
		return nil, 0, ctx.Err()
	case limited.Err() != nil:
		return nil, 0, fault.New(fault.LimitExceeded, "the search took longer than CONDUIT_FIND_TIMEOUT_MS (%d), and nothing was changed; narrow base_path, glob or pattern", h.timeout.Milliseconds())
	case err != nil:
		return nil, 0, err
	}
	if report.Deep > 0 {
		registry.AddRemark(ctx, "DEPTH_LIMIT_REACHED", fmt.Sprintf("Directories not searched since they lie deeper than CONDUIT_MAX_RECURSIVE_DEPTH (%d): %d. Name one as base_path to look there.", h.depth, report.Deep), nil)
	}
	if report.Unreadable > 0 {
		registry.AddRemark(ctx, "SEARCH_INCOMPLETE", fmt.Sprintf("Directories that cannot be read: %d.", report.Unreadable), map[string]int{"directories_unreadable": report.Unreadable})
	}
	return found, searched, nil
}

// look decides about one entry.
func (h *fileSearch) look(ctx context.Context, n walk.Node) sight {
	if !n.Type.IsRegular() {
		return sight{}
	}
	if h.Glob != "" {
		name := n.Name
		if strings.Contains(h.Glob, "/") {
			name = n.Rel()
		}
		if !doublestar.MatchUnvalidated(h.Glob, name) {
			return sight{}
		}
	}
	if len(h.taken) > 0 && h.taken[n.Dir.Place().Child(n.Name).Abs] {
		return sight{}
	}
	f, err := n.Dir.OpenReader(n.Name)
	if err == nil {
		defer f.Close()
		var hit bool
		if hit, _, err = search.Content(ctx, f, f.Size(), n.Name, h.matcher, search.Options{}); err == nil && !hit {
			return sight{searched: true}
		}
	}
	if errors.Is(err, fs.ErrNotExist) || ctx.Err() != nil {
		return sight{}
	}
	if errors.Is(err, search.ErrGivenUp) {
		err = fault.New(fault.LimitExceeded, "%s: the expression takes too long; simplify it, avoid nested repetitions", n.Rel())
	}
	return sight{searched: true, task: &edit.Task{
		Path:  filepath.ToSlash(filepath.Join(h.Base.String(), filepath.FromSlash(n.Rel()))),
		Place: n.Dir.Place().Child(n.Name),
		Err:   err,
	}}
}

// Package treesize adds up what the files of directory trees hold.
package treesize

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"sync"

	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
	"github.com/conduit-mcp/conduit-mcp/internal/parallel"
	"github.com/conduit-mcp/conduit-mcp/internal/walk"
)

// A Sum is the size of regular files, each counted once however many names it
// has. Directories, links and special files count nothing.
type Sum struct {
	single   int64                 // of files with one name
	shared   map[fileinfo.ID]int64 // files with more
	shallow  bool
	unread   int
	timedOut bool
}

// Bytes returns the sum, or false where the time did not suffice for it.
func (s *Sum) Bytes() (int64, bool) {
	total := s.single
	for n := range maps.Values(s.shared) {
		total += n
	}
	return total, !s.timedOut
}

// Partial says what keeps the sum from being whole, or "".
func (s *Sum) Partial() string {
	var notes []string
	if s.shallow {
		notes = append(notes, "Partial size: depth limit reached during calculation")
	}
	if s.unread > 0 {
		notes = append(notes, fmt.Sprintf("Partial size: entries below that could not be read: %d", s.unread))
	}
	return strings.Join(notes, "; ")
}

// Merge adds o to s: a file in both counts once.
func (s *Sum) Merge(o Sum) {
	s.single += o.single
	s.shallow = s.shallow || o.shallow
	s.unread += o.unread
	s.timedOut = s.timedOut || o.timedOut
	if len(s.shared) < len(o.shared) {
		s.shared, o.shared = o.shared, s.shared
	}
	maps.Copy(s.shared, o.shared)
}

// AddBytes adds a file of n bytes.
func (s *Sum) AddBytes(n int64) { s.single += n }

// Unread counts an entry whose size could not be told.
func (s *Sum) Unread() { s.unread++ }

// Add adds the entry e of d and, of a directory, what is below it. So many
// levels are entered, e being the first. Once ctx has ended, the sum is one
// without bytes.
func (s *Sum) Add(ctx context.Context, l *parallel.Limit, d *walk.Dir, e walk.Entry, levels int) error {
	switch {
	case ctx.Err() != nil:
		s.timedOut = true
	case e.IsDir() && levels <= 0:
		s.shallow = true
	case e.IsDir():
		below, err := below(ctx, l, d, e.Name, levels-1)
		s.Merge(below)
		return err
	case e.Type.IsRegular():
		s.add(d.Info(e.Name))
	}
	return nil
}

func (s *Sum) add(info fileinfo.Info, err error) {
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		s.unread++
	case !info.Mode.IsRegular(): // it has been exchanged
	case info.Links > 1:
		s.Merge(Sum{shared: map[fileinfo.ID]int64{info.ID: info.Size}})
	default:
		s.single += info.Size
	}
}

// batch is how many entries one worker takes at a time.
const batch = 256

// below sums up the directory called name in d. Directories below it, and parts
// of large ones, are left to others where the limit lets them work.
func below(ctx context.Context, l *parallel.Limit, d *walk.Dir, name string, levels int) (Sum, error) {
	sub, err := d.Sub(name)
	if err != nil {
		return missed(err), nil
	}
	defer sub.Close()
	list, err := sub.Entries()
	if err != nil {
		return missed(err), nil
	}
	var mu sync.Mutex
	var total Sum
	add := func(entries []walk.Entry) func() error {
		return func() error {
			var s Sum
			defer func() {
				mu.Lock()
				defer mu.Unlock()
				total.Merge(s)
			}()
			for _, e := range entries {
				if err := s.Add(ctx, l, sub, e, levels); err != nil {
					return err
				}
			}
			return nil
		}
	}
	err = l.Divide(func(d *parallel.Division) error {
		for some := range walk.Parts(list, batch) {
			if err := d.Go(add(some)); err != nil {
				return err
			}
		}
		return nil
	})
	return total, err
}

// missed is the sum of what cannot be read: nothing where it has vanished.
func missed(err error) Sum {
	if errors.Is(err, fs.ErrNotExist) {
		return Sum{}
	}
	return Sum{unread: 1}
}

package zipws

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/pack"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// CloseOptions say what becomes of changes that were not synced.
type CloseOptions struct {
	Sync     bool                    // they are synced first
	Discard  bool                    // they are lost
	Progress func(done, total int64) // of the sync
}

// listed is how many changes a message lists.
const listed = 20

// Close ends a session and removes its workspace. Where there are changes, and o
// does not say what becomes of them, the error is UNSAVED_CHANGES.
func (m *Workspaces) Close(ctx context.Context, ref string, o CloseOptions) (Closed, error) {
	if o.Sync && o.Discard {
		return Closed{}, fault.New(InvalidParams, "%s and %s exclude each other; give one", m.Words.Sync, m.Words.Discard)
	}
	s, err := m.use(ctx, ref, true)
	if err != nil {
		return Closed{}, err
	}
	defer s.st.Close()
	defer s.lock.Close()
	defer s.root.Close()
	switch {
	case o.Sync:
		if _, err := s.sync(ctx, SyncOptions{Progress: o.Progress}); err != nil {
			return Closed{}, err
		}
	case !o.Discard && s.Format == pack.Zip:
		c, err := s.compare(ctx)
		if err != nil {
			return Closed{}, err
		}
		if c.dirty() {
			return Closed{}, fault.New(UnsavedChanges, "the session %s has changes that are not in the archive; close it with %s to write them, or with %s to lose them: %s", s.Name, m.Words.Sync, m.Words.Discard, c.summary())
		}
	}
	if err := ctx.Err(); err != nil {
		return Closed{}, err
	}
	s.root.Close()
	if err := m.remove(s.st, s.Name); err != nil {
		return Closed{}, err
	}
	m.mu.Lock()
	delete(m.sizes, s.ID)
	m.mu.Unlock()
	_, err = m.list(s.st) // tells the Host
	return Closed{Closed: true, Synced: o.Sync}, err
}

// summary lists the first changes.
func (s Status) summary() string {
	var all []string
	for _, list := range []struct {
		what  string
		names []string
	}{{"modified", s.Modified}, {"added", s.Added}, {"deleted", s.Deleted}} {
		for _, name := range list.names {
			all = append(all, list.what+" "+name)
		}
	}
	return first(all)
}

// first lists the first of all.
func first(all []string) string {
	text := strings.Join(all[:min(len(all), listed)], ", ")
	if more := len(all) - listed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// PruneOptions say which sessions are removed.
type PruneOptions struct {
	All    bool
	Stale  time.Duration // those not used for so long; 0: no
	DryRun bool
}

// Prune removes sessions with all changes in them that were not synced.
func (m *Workspaces) Prune(ctx context.Context, o PruneOptions) (r PruneReport, err error) {
	r.Pruned = []Pruned{}
	if o.All && o.Stale > 0 {
		return r, fault.New(InvalidParams, "%s and %s exclude each other; give one", m.Words.All, m.Words.Stale)
	}
	if !o.All && o.Stale <= 0 {
		return r, fault.New(InvalidParams, "say which sessions to remove: %s, or %s with a duration such as \"24h\" or \"7d\"", m.Words.All, m.Words.Stale)
	}
	st, err := m.state(false)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	defer st.Close()
	v, err := m.list(st)
	if err != nil {
		return r, err
	}
	for _, d := range v.sessions {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		idle := m.Now().Sub(time.Time(m.describe(st, d).Accessed))
		p := Pruned{d.ID, d.Name, "all"}
		if !o.All {
			if idle < o.Stale {
				continue
			}
			p.Reason = "stale (" + age(idle) + ")"
		}
		if o.DryRun {
			r.Freed += m.occupied(st, d.Name)
			r.Pruned = append(r.Pruned, p)
			continue
		}
		s, err := m.acquire(ctx, st, d, true, 0)
		if code, _ := Of(err); err != nil && (code == Locked || code == SessionNotFound) {
			p.Reason = "in use"
			r.Skipped = append(r.Skipped, p)
			continue
		}
		if err != nil {
			return r, err
		}
		freed := m.occupied(st, d.Name)
		s.root.Close()
		err = m.remove(st, d.Name)
		s.lock.Close()
		if err != nil {
			return r, err
		}
		r.Pruned = append(r.Pruned, p)
		r.Freed += freed
	}
	if o.All {
		m.pruneBroken(ctx, st, v.broken, o.DryRun, &r)
	}
	if !o.DryRun {
		_, err = m.list(st) // tells the Host
	}
	return r, err
}

// pruneBroken removes those of our workspaces whose metadata cannot be read.
func (m *Workspaces) pruneBroken(ctx context.Context, st *os.Root, names []string, dry bool, r *PruneReport) {
	for _, name := range names {
		p := Pruned{"", name, "its metadata cannot be read"}
		freed := m.occupied(st, name)
		if !dry {
			lock, err := m.lock(ctx, st, name, true, 0)
			if err == nil {
				err = m.remove(st, name)
				lock.Close()
			}
			if err != nil {
				p.Reason = "in use"
				r.Skipped = append(r.Skipped, p)
				continue
			}
		}
		r.Pruned = append(r.Pruned, p)
		r.Freed += freed
	}
}

// occupied is how many bytes the contents of a workspace have.
func (m *Workspaces) occupied(st *os.Root, name string) (bytes int64) {
	fs.WalkDir(st.FS(), workspacesDir+"/"+name+"/"+contentsDir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if fi, err := d.Info(); err == nil && fi.Mode().IsRegular() {
			bytes += fi.Size()
		}
		return nil
	})
	return bytes
}

// age is a duration in its largest unit: 3d, 5h, 10m, 4s.
func age(d time.Duration) string {
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}} {
		if d >= u.unit {
			return fmt.Sprintf("%d%s", d/u.unit, u.name)
		}
	}
	return fmt.Sprintf("%ds", d/time.Second)
}

// ParseAge reads a duration as package time does, with days as well: "7d".
func ParseAge(s string) (time.Duration, error) {
	text := s
	var days time.Duration
	if n, rest, ok := strings.Cut(s, "d"); ok {
		count, err := strconv.ParseFloat(n, 64)
		if err != nil || !(count >= 0 && count < 100_000) {
			return 0, badAge(s)
		}
		days, text = time.Duration(count*24*float64(time.Hour)), rest
		if rest == "" {
			text = "0s"
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || days+d <= 0 {
		return 0, badAge(s)
	}
	return days + d, nil
}

func badAge(s string) error {
	return fault.New(InvalidParams, "%q is no duration; write it like \"24h\", \"90m\" or \"7d\"", clip(s))
}

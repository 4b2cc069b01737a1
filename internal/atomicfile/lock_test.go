package atomicfile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

func placeIn(t testing.TB, dir, name string) place.Place {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return place.Place{Root: root, Name: name, Abs: filepath.Join(dir, name)}
}

// free reports whether w can lock p at once.
func free(t *testing.T, w *Writer, p place.Place) bool {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, unlock, err := w.Lock(ctx, p)
	// Of what is done and what is free either may be seen first.
	for range 100 {
		if err == nil {
			unlock()
			return true
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		_, unlock, err = w.Lock(ctx, p)
	}
	return false
}

// TestLocksAreShared has two Writers, as two servers have them, lock one name.
func TestLocksAreShared(t *testing.T) {
	dir, locks := t.TempDir(), filepath.Join(t.TempDir(), "state", "locks")
	a, b := NewShared(locks, slog.New(slog.DiscardHandler)), NewShared(locks, slog.New(slog.DiscardHandler))
	defer a.Close()
	defer b.Close()
	if err := os.Mkdir(filepath.Join(dir, "d"), 0o755); err != nil {
		t.Fatal(err)
	}
	p := placeIn(t, dir, filepath.Join("d", "f"))
	again := placeIn(t, filepath.Join(dir, "d"), "F") // by another root, in another case
	other := placeIn(t, dir, "g")
	if err := os.WriteFile(p.Abs, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, unlock, err := a.Lock(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	for what, w := range map[string]*Writer{"own": a, "other": b} {
		for _, p := range []place.Place{p, again} {
			if free(t, w, p) {
				t.Errorf("%s: %s can be locked twice", what, p.Abs)
			}
		}
		if !free(t, w, other) {
			t.Errorf("%s: %s is locked too", what, other.Abs)
		}
	}
	// What replaces the file has another inode, and the same lock.
	if _, err := a.Write(ctx, p, Options{}, func(f *os.File) error { _, err := f.WriteString("new"); return err }); err != nil {
		t.Fatal(err)
	}
	if free(t, b, p) {
		t.Error("replacing the file has given its lock away")
	}
	unlock()
	if !free(t, b, again) {
		t.Error("the lock was not given back")
	}
	fi, err := os.Stat(locks)
	if err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", fi, err)
	}
}

// TestLocksAreFew locks many names, in any order and several at once.
func TestLocksAreFew(t *testing.T) {
	dir, locks := t.TempDir(), filepath.Join(t.TempDir(), "locks")
	w := NewShared(locks, slog.New(slog.DiscardHandler))
	defer w.Close()
	var g sync.WaitGroup
	d := placeIn(t, dir, ".")
	for range 8 {
		p := make([]place.Place, 600)
		for i, n := range rand.Perm(len(p)) {
			p[i] = place.Place{Root: d.Root, Name: fmt.Sprint(n), Abs: filepath.Join(dir, fmt.Sprint(n))}
		}
		g.Go(func() {
			for range 3 {
				for _, some := range [][]place.Place{p, p[:1], p[100:300]} {
					_, unlock, err := w.Lock(t.Context(), some...)
					if err != nil {
						t.Error(err)
						return
					}
					unlock()
				}
			}
		})
	}
	g.Wait()
	if list, err := os.ReadDir(locks); err != nil || len(list) > slots || len(list) < slots/2 {
		t.Errorf("%d files, %v", len(list), err)
	}
}

// TestNoPlaceForLocks writes all the same, and says so once.
func TestNoPlaceForLocks(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	w := NewShared(filepath.Join(dir, "file", "locks"), slog.New(slog.NewTextHandler(&log, nil)))
	for range 3 {
		p := placeIn(t, dir, "f")
		if _, err := w.Write(t.Context(), p, Options{}, func(f *os.File) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 1 {
		t.Errorf("warned %d times:\n%s", n, log.String())
	}
}

// TestLocksHeal goes on where somebody has removed the directory.
func TestLocksHeal(t *testing.T) {
	dir, locks := t.TempDir(), filepath.Join(t.TempDir(), "locks")
	a, b := NewShared(locks, slog.New(slog.DiscardHandler)), NewShared(locks, slog.New(slog.DiscardHandler))
	defer a.Close()
	defer b.Close()
	p := placeIn(t, dir, "f")
	for range 2 {
		_, unlock, err := a.Lock(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if free(t, b, p) {
			t.Error("locked twice")
		}
		unlock()
		if err := os.RemoveAll(locks); err != nil {
			t.Fatal(err)
		}
	}
}

func BenchmarkLock(b *testing.B) {
	dir := b.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "d"), 0o755); err != nil {
		b.Fatal(err)
	}
	p := placeIn(b, dir, filepath.Join("d", "f"))
	for what, w := range map[string]*Writer{"own": New(), "shared": NewShared(filepath.Join(b.TempDir(), "l"), slog.New(slog.DiscardHandler))} {
		b.Run(what, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, unlock, err := w.Lock(b.Context(), p)
				if err != nil {
					b.Fatal(err)
				}
				unlock()
			}
		})
		b.Run(what+" in dir", func(b *testing.B) {
			b.ReportAllocs()
			d, err := w.Open(p.Parent(), false)
			if err != nil {
				b.Fatal(err)
			}
			defer d.Close()
			for b.Loop() {
				_, unlock, err := d.Lock(b.Context(), "f")
				if err != nil {
					b.Fatal(err)
				}
				unlock()
			}
		})
	}
}

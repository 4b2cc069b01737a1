package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/conduit-mcp/conduit-mcp/internal/parallel"
	"github.com/conduit-mcp/conduit-mcp/internal/textdiff"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

const (
	maxFiles  = 200_000
	maxText   = 512 << 10 // of a file whose text is kept for a diff
	keptTexts = 64 << 20  // of all such files together
	hashers   = 4
)

// hashes is the space of a directory that is no repository: a hash of each file
// below it, but for those in .git directories.
type hashes struct {
	dir     string
	exclude []string
	kept    bool // the first snapshot, which the diff goes from, was taken
}

// Hashes returns the space of dir as content hashes, whether or not it is a
// repository. A diff shows texts of at most 512 KiB, 64 MiB of them in all;
// other changes are in the paths alone.
func Hashes(dir string, o Options) Space { return &hashes{dir: dir, exclude: o.Exclude} }

func (h *hashes) Top() string                            { return h.dir }
func (h *hashes) Repository() bool                       { return false }
func (h *hashes) Status(context.Context) (string, error) { return "", nil }
func (h *hashes) Close() error                           { return nil }

// Committed is empty: nothing was.
func (h *hashes) Committed(context.Context) (Snapshot, error) {
	return Snapshot{Files: map[string]File{}}, nil
}

// Take hashes every file. More than 200,000 are ERR_RESOURCE_LIMIT_EXCEEDED.
func (h *hashes) Take(ctx context.Context) (Snapshot, error) {
	var mu sync.Mutex
	files := map[string]File{}
	room := int64(keptTexts)
	if h.kept {
		room = 0 // what is there now can be read when it is needed
	}
	h.kept = true
	names := make(chan string, hashers)
	g := parallel.New()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for range hashers {
		g.Go(func() error {
			defer func() { // after a panic the walk must not wait for a reader
				for range names {
				}
			}()
			for name := range names {
				f, err := read(filepath.Join(h.dir, name))
				if err != nil {
					continue // gone, or not ours to read: the same both times
				}
				mu.Lock()
				if room -= int64(len(f.text)); room < 0 {
					f.text = nil
				}
				files[filepath.ToSlash(name)] = f
				mu.Unlock()
			}
			return nil
		})
	}
	n := 0
	err := filepath.WalkDir(h.dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && name == h.dir:
			return err
		case err != nil:
			return nil // cannot be looked into
		case d.IsDir() && (d.Name() == ".git" && name != h.dir || slices.Contains(h.exclude, name)):
			return fs.SkipDir
		case d.IsDir() || !d.Type().IsRegular() && d.Type()&fs.ModeSymlink == 0:
			return nil
		}
		if n++; n > maxFiles {
			return fault.New(fault.LimitExceeded, "%s is no git repository and holds more than %d files, too many to tell what changes; run git init there, or name a smaller directory", h.dir, maxFiles)
		}
		rel, err := filepath.Rel(h.dir, name)
		if err == nil {
			names <- rel
		}
		return err
	})
	close(names)
	return Snapshot{Files: files}, errors.Join(err, g.Wait())
}

func read(name string) (File, error) {
	fi, err := os.Lstat(name)
	if err != nil {
		return File{}, err
	}
	f := File{Mode: fmt.Sprintf("%o", fi.Mode().Perm()), Size: fi.Size()}
	if fi.Mode()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(name)
		f.Mode, f.Hash = "link", fmt.Sprintf("%x", sha256.Sum256([]byte(target)))
		return f, err
	}
	if !fi.Mode().IsRegular() {
		return f, fs.ErrInvalid
	}
	in, err := os.Open(name)
	if err != nil {
		return f, err
	}
	defer in.Close()
	var text bytes.Buffer
	sum := sha256.New()
	var to io.Writer = sum
	if f.Size <= maxText {
		to = io.MultiWriter(sum, &limitedWriter{w: &text, left: maxText})
	}
	if _, err := io.Copy(to, in); err != nil {
		return f, err
	}
	f.Hash = fmt.Sprintf("%x", sum.Sum(nil))
	if !isBinary(text.Bytes()) {
		f.text = text.Bytes()
	}
	return f, nil
}

// isBinary judges as git does, by a NUL in the beginning.
func isBinary(b []byte) bool { return bytes.IndexByte(b[:min(len(b), 8000)], 0) >= 0 }

// Compare compares two lists. The diff holds the texts that are at hand: of a
// as it was kept, of b as the files are now.
func (h *hashes) Compare(ctx context.Context, a, b Snapshot) (Difference, error) {
	var d Difference
	for name, old := range a.Files {
		fresh, there := b.Files[name]
		switch {
		case !there:
			d.Changes = append(d.Changes, Change{Path: name, Status: "deleted"})
		case fresh.Hash != old.Hash || fresh.Mode != old.Mode:
			d.Changes = append(d.Changes, Change{Path: name, Status: "modified"})
		}
	}
	for name := range b.Files {
		if _, there := a.Files[name]; !there {
			d.Changes = append(d.Changes, Change{Path: name, Status: "added"})
		}
	}
	sortChanges(d.Changes)
	var diff strings.Builder
	for i := range d.Changes {
		c := &d.Changes[i]
		before, after := a.Files[c.Path], b.Files[c.Path]
		if before.Mode == "link" || after.Mode == "link" {
			continue
		}
		var now File
		if c.Status != "deleted" {
			var err error
			if now, err = read(filepath.Join(h.dir, filepath.FromSlash(c.Path))); err != nil {
				continue
			}
		}
		if c.Status != "added" && before.Size > 0 && before.text == nil || c.Status != "deleted" && now.Size > 0 && now.text == nil {
			c.Binary = max(before.Size, now.Size) <= maxText && now.Size > 0 && now.text == nil
			continue
		}
		from, to := "a/"+c.Path, "b/"+c.Path
		switch c.Status {
		case "added":
			from = "/dev/null"
		case "deleted":
			to = "/dev/null"
		}
		text, err := textdiff.Unified(ctx, before.text, now.text, from, to, textdiff.Options{Context: 3})
		if err != nil {
			return d, err
		}
		if diff.Len()+len(text) <= maxOutput {
			diff.WriteString(text)
		}
	}
	d.Diff = diff.String()
	return d, nil
}

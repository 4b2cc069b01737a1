package journal

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/etag"
	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// BackUp keeps what at is now; see [atomicfile.Keeper].
func (p *Part) BackUp(ctx context.Context, dir *os.File, at place.Place, s atomicfile.Step) {
	c := p.c
	if c.j.off {
		return
	}
	i, err := fileinfo.At(at.Root, dir, at.Name, at.Name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.spoil()
		return
	}
	now := nothing
	if err == nil {
		now = stateOf(i)
	}
	need, first := p.needed(at.Abs, now, s)
	if !need {
		return
	}
	if at.Guard != nil && at.Guard.Denied(at.Abs) {
		p.spoil()
		return
	}
	if now.Kind == directory {
		p.keepTree(ctx, dir, at, now)
		return
	}
	p.keepOne(ctx, dir, at, now, i.Links, s, first)
}

// needed reports whether what is now at path is to be kept before s. Where only
// the size of an earlier state was kept, first is that state.
func (p *Part) needed(path string, now state, s atomicfile.Step) (need bool, first *state) {
	c := p.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.void || c.broken {
		return false, nil
	}
	k := c.known[path]
	switch {
	case k == nil:
		return now.Kind != absent, nil
	case k.left == nil: // kept, for a step that has not come yet
		return !k.is.untouched(now) || k.step != s, nil
	case !k.left.untouched(now): // others have changed it meanwhile
		return true, nil
	case k.had.Cut && k.had.Blob == "" && s != atomicfile.Extended:
		return true, &k.had
	}
	return false, nil // what is there is our own
}

// keepOne keeps a file or link, or that there is nothing.
func (p *Part) keepOne(ctx context.Context, dir *os.File, at place.Place, now state, links uint64, s atomicfile.Step, first *state) bool {
	var err error
	switch {
	case now.Kind == absent:
	case now.Kind == link:
		var target string
		target, err = at.Root.Readlink(at.Name)
		now.Text = text(target)
	case now.Kind != file:
		err = fs.ErrInvalid
	case s == atomicfile.Extended:
		now.Cut = true
	default:
		now, err = p.keepFile(ctx, dir, at, now, s == atomicfile.Replaced && links == 1)
	}
	if err != nil {
		p.spoil()
		return false
	}
	had := now
	if first != nil {
		had = *first
		had.Blob = now.Blob
	}
	return p.had(at.Abs, had, now, s)
}

// had records what was kept of path, which now is what is says.
func (p *Part) had(path string, had, is state, s atomicfile.Step) bool {
	c := p.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.void || !c.begin() {
		return false
	}
	c.pending = append(c.pending, encode(&line{Part: p.n, Path: text(path), Had: &had})...)
	c.kept++
	c.known[path] = &knowledge{had: had, is: is, step: s}
	return true
}

// reserve counts size bytes and reports whether they may be kept.
func (p *Part) reserve(size int64) bool {
	c := p.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.void || p.bytes+size > c.j.max/10 || c.bytes+size > c.j.max || !c.begin() {
		return false
	}
	p.bytes += size
	c.bytes += size
	return true
}

// blobName returns a new name for something kept.
func (p *Part) blobName(sum string) string {
	c := p.c
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names++
	name := sum + "." + strconv.Itoa(c.names)
	p.blobs = append(p.blobs, name)
	return name
}

var (
	errLarge   = errors.New("too large to be kept")
	errChanged = errors.New("changed while it was kept")
)

// keepFile keeps the content of a file, by a further name where that will do.
func (p *Part) keepFile(ctx context.Context, dir *os.File, at place.Place, now state, linked bool) (state, error) {
	if !p.reserve(now.Size) {
		return now, errLarge
	}
	const attempts = 3 // against one who writes to it meanwhile
	for range attempts {
		f, _, err := at.OpenFileOnly()
		if err != nil {
			return now, err
		}
		had, err := p.keepOpen(ctx, dir, at, f, linked)
		f.Close()
		if err == nil && had.Size > now.Size && !p.reserve(had.Size-now.Size) {
			return now, errLarge
		}
		if !errors.Is(err, errChanged) {
			return had, err
		}
	}
	return now, errChanged
}

func (p *Part) keepOpen(ctx context.Context, dir *os.File, at place.Place, f *os.File, linked bool) (had state, err error) {
	i, err := fileinfo.OfFile(f)
	if err != nil {
		return had, err
	}
	had = stateOf(i)
	if had.Sum, err = etag.Sum(ctx, io.LimitReader(f, had.Size+1)); err != nil {
		return had, err
	}
	had.Blob = p.blobName(hex.EncodeToString(had.Sum))
	if !linked || p.c.j.unlinked || atomicfile.LinkAt(dir, at.Name, p.c.dirFile, had.Blob) != nil {
		if err := p.copy(ctx, f, had, i); err != nil {
			return had, err
		}
	} else if fi, err := p.c.dir.Lstat(had.Blob); err != nil || !had.untouched(stateOf(fileinfo.From(fi))) {
		p.c.dir.Remove(had.Blob) // another file by now
		return had, errChanged
	}
	if i, err = fileinfo.OfFile(f); err != nil || !had.untouched(stateOf(i)) {
		p.c.dir.Remove(had.Blob)
		return had, errChanged
	}
	return had, nil
}

// copy copies the open file f, which is as had and i say, to the journal.
func (p *Part) copy(ctx context.Context, f *os.File, had state, i fileinfo.Info) (err error) {
	dir := p.c.dir
	to, err := dir.OpenFile(had.Blob, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := to.Close(); err == nil {
			err = cerr
		}
		if err == nil {
			err = dir.Chtimes(had.Blob, time.Time{}, i.Modified)
		}
		if err != nil {
			dir.Remove(had.Blob)
		}
	}()
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	const copyChunk = 32 << 20 // copied between two looks at ctx, by the kernel where it can
	for left := had.Size; left > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := io.CopyN(to, f, min(left, copyChunk))
		if err != nil {
			return errChanged
		}
		left -= n
	}
	atomicfile.CopyOwner(to, f)
	if err := to.Chmod(i.Mode & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)); err != nil {
		return err
	}
	p.c.mu.Lock()
	p.c.unsynced = append(p.c.unsynced, had.Blob)
	p.c.mu.Unlock()
	return nil
}

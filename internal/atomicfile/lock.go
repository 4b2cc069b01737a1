package atomicfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
	"github.com/conduit-mcp/conduit-mcp/internal/filelock"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// slots is how many locks there are. Files that have nothing to do with each
// other may share one.
const slots = 64

// A table locks names between all that is done in this process and, by files
// in a directory of the user, in others. A name belongs to a slot by the device
// and inode of its directory, which a file that is replaced does not change.
type table struct {
	dir string // "" where only this process counts
	log *slog.Logger

	own   [slots]chan struct{}
	files [slots]*os.File // open once they were locked; each belongs to who has the slot
	warn  sync.Once
}

func newTable(dir string, log *slog.Logger) *table {
	t := &table{dir: dir, log: log}
	for i := range t.own {
		t.own[i] = make(chan struct{}, 1)
	}
	return t
}

// A holding is the key of what a context holds.
type holding struct{ w *Writer }

// Lock keeps all others from changing what is called as places until unlock is
// called, and first waits for those who do: calls of this server, and of other
// servers that lock in the same directory. It is held by whatever is done with
// the context that it returns; there, nothing more is locked. The error is that
// of ctx.
func (w *Writer) Lock(ctx context.Context, places ...place.Place) (held context.Context, unlock func(), err error) {
	if ctx.Value(holding{w}) != nil {
		return ctx, func() {}, nil
	}
	list := make([]uint8, len(places))
	parents := map[string]identity{}
	for i, p := range places {
		dir := p.Parent()
		of, ok := parents[dir.Abs]
		if !ok {
			of = identify(dir)
			parents[dir.Abs] = of
		}
		list[i] = of.slot(base(p))
	}
	return w.take(ctx, list)
}

// Lock is [Writer.Lock] for what is called name in d.
func (d *Dir) Lock(ctx context.Context, name string) (held context.Context, unlock func(), err error) {
	if ctx.Value(holding{d.w}) != nil {
		return ctx, func() {}, nil
	}
	d.identify.Do(func() {
		d.identity.abs = d.place.Abs
		if i, err := fileinfo.OfFile(d.file); err == nil {
			d.identity.id = i.ID
		}
	})
	return d.w.take(ctx, []uint8{d.identity.slot(name)})
}

// An identity is what the names in a directory belong to: the directory id, or
// where that is not known the one called abs, or below in it.
type identity struct {
	id         fileinfo.ID
	abs, below string
}

// identify returns the identity of dir; where it does not exist yet, its names
// belong to the nearest directory above that does.
func identify(dir place.Place) identity {
	below := ""
	for {
		fi, err := dir.Stat()
		if err == nil {
			return identity{fileinfo.From(fi).ID, dir.Abs, below}
		}
		if !errors.Is(err, fs.ErrNotExist) || dir.Name == "." {
			return identity{fileinfo.ID{}, dir.Abs, below}
		}
		below = filepath.Join(filepath.Base(dir.Name), below)
		dir = dir.Parent()
	}
}

// slot tells the slot of a name. Names that differ in case only are one, which
// some file systems make them. All servers must come to the same.
func (i identity) slot(name string) uint8 {
	h := uint64(14695981039346656037) // FNV-1a, which needs no allocation
	mix := func(s string) {
		for k := range len(s) {
			h = (h ^ uint64(s[k])) * 1099511628211
		}
	}
	if i.id == (fileinfo.ID{}) {
		mix(strings.ToLower(i.abs))
	} else {
		for shift := 0; shift < 64; shift += 8 {
			h = (h ^ i.id.Device>>shift&0xff) * 1099511628211
			h = (h ^ i.id.Inode>>shift&0xff) * 1099511628211
		}
	}
	if i.below != "" {
		mix(strings.ToLower(i.below))
		mix(string(os.PathSeparator))
	}
	mix(strings.ToLower(name))
	return uint8((h ^ h>>32) % slots)
}

// take locks the slots of list, in ascending order like everybody.
func (w *Writer) take(ctx context.Context, list []uint8) (held context.Context, unlock func(), err error) {
	slices.Sort(list)
	list = slices.Compact(list)
	for i, n := range list {
		if err := w.table.take(ctx, n); err != nil {
			w.table.release(list[:i])
			return ctx, nil, err
		}
	}
	return context.WithValue(ctx, holding{w}, true), func() { w.table.release(list) }, nil
}

// take locks slot n. The error is that of ctx.
func (t *table) take(ctx context.Context, n uint8) error {
	select {
	case t.own[n] <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	err := t.lock(ctx, n)
	if err != nil {
		<-t.own[n]
	}
	return err
}

// release gives the slots of list back.
func (t *table) release(list []uint8) {
	for _, n := range list {
		if f := t.files[n]; f != nil {
			filelock.Unlock(f)
		}
		<-t.own[n]
	}
}

// lock locks slot n, which the caller has, between processes, where that can be
// done. The error is that of ctx.
func (t *table) lock(ctx context.Context, n uint8) (err error) {
	for t.dir != "" {
		f := t.files[n]
		if f == nil {
			if f, err = t.open(n); err != nil {
				break
			}
			t.files[n] = f
		}
		if err = filelock.Lock(ctx, f, filelock.Exclusive); err != nil {
			break
		}
		if i, err := fileinfo.OfFile(f); err == nil && i.Links > 0 {
			return nil
		}
		f.Close() // somebody has removed it, and others lock another
		t.files[n] = nil
	}
	if err != nil && ctx.Err() == nil {
		t.warn.Do(func() {
			t.log.Warn("files cannot be locked; other servers may change them at the same time", "dir", t.dir, "err", err)
		})
	}
	return ctx.Err()
}

// open opens the file of slot n.
func (t *table) open(n uint8) (*os.File, error) {
	root, err := PrivateDir(t.dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.OpenFile(fmt.Sprintf("%02x", n), os.O_RDWR|os.O_CREATE, 0o600)
}

// close closes the files that nobody has locked.
func (t *table) close() {
	for n := range t.own {
		select {
		case t.own[n] <- struct{}{}:
			if t.files[n] != nil {
				t.files[n].Close()
				t.files[n] = nil
			}
			<-t.own[n]
		default:
		}
	}
}

// PrivateDir opens the directory dir, made where it is missing, for the user of
// this process alone. One that belongs to somebody else is refused.
func PrivateDir(dir string) (*os.Root, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	fi, err := root.Stat(".")
	if err == nil && !fileinfo.Own(fi) {
		err = fmt.Errorf("%s belongs to another user", dir)
	}
	if err == nil && fi.Mode().Perm() != 0o700 {
		err = root.Chmod(".", 0o700)
	}
	if err != nil {
		root.Close()
		return nil, err
	}
	return root, nil
}

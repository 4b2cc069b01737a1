package atomicfile

import (
	"context"
	"os"

	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// A Keeper keeps what a call is about to destroy, so that the call can be
// undone. It never makes a call fail: what it cannot keep it remembers as such.
// Its methods may be called at the same time.
type Keeper interface {
	// BackUp keeps what p is now, before s happens to it; where p does not exist
	// it does nothing. p.Root is a handle of the directory that holds p and
	// p.Name a name in it; dir is the same directory, open for reading. To keep
	// again what is kept and has not changed costs next to nothing.
	BackUp(ctx context.Context, dir *os.File, p place.Place, s Step)
	// Expect says what the step that follows will leave at abs: a file or link,
	// a directory alone or, with a sum, a tree, or nothing where left is nil.
	// The sum of a file is its SHA-256, nil where it is not known. A Size of
	// -1 stands for what is not known yet; Expect is then called again. What was
	// kept is durable when Expect returns. Where the step fails, cancel is to be
	// called.
	Expect(abs string, left *fileinfo.Info, sum []byte) (cancel func())
}

// A Step is what happens to a file that is kept.
type Step uint8

const (
	Replaced  Step = iota // it loses this name
	Rewritten             // it is written to
	Extended              // it is appended to
)

// BackUp has k keep what is called name in d. With a nil k it does nothing.
func (d *Dir) BackUp(ctx context.Context, k Keeper, name string, s Step) {
	if k != nil {
		k.BackUp(ctx, d.file, d.Child(name), s)
	}
}

// Expect tells k what the next step leaves at name in d, and what [Dir.ExpectParents]
// tells. With a nil k it does nothing.
func (d *Dir) Expect(k Keeper, name string, left *fileinfo.Info, sum []byte) (cancel func()) {
	if k == nil {
		return func() {}
	}
	d.ExpectParents(k)
	return k.Expect(d.Child(name).Abs, left, sum)
}

// ExpectParents tells k of the directories that were made to have d, unless somebody was
// told before. With a nil k it does nothing.
func (d *Dir) ExpectParents(k Keeper) {
	if k == nil {
		return
	}
	d.telling.Do(func() {
		for _, m := range d.made {
			k.Expect(m.abs, &m.info, nil)
		}
	})
}

// hold keeps the file called name, before it is replaced by the one called
// temp, for who asked to.
func (d *Dir) hold(ctx context.Context, name, temp string, o Options) (cancel func(), err error) {
	if o.Keep == nil {
		return func() {}, nil
	}
	left, err := fileinfo.At(d.root, d.file, temp, temp)
	if err != nil {
		return nil, err
	}
	d.BackUp(ctx, o.Keep, name, Replaced)
	return d.Expect(o.Keep, name, &left, o.sum()), nil
}

// ReplaceByLink gives the file called old in the open directory from a further name in
// d, replacing what is called name there, which o.Keep keeps, at once. Where the
// system has no way to do so the error is its bare one, and nothing is changed.
func (d *Dir) ReplaceByLink(ctx context.Context, from *os.File, old, name string, o Options) error {
	temp := TempName()
	if err := LinkAt(from, old, d.file, temp); err != nil {
		return err
	}
	defer d.root.Remove(temp)
	ctx, unlock, err := d.Lock(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	cancel, err := d.hold(ctx, name, temp, o)
	if err == nil {
		if err = d.w.rename(d, temp, d, name, true); err != nil {
			cancel()
		}
	}
	return err
}

// Truncate cuts the file called name to size bytes, in place, so that other hard
// links and who has it open see it too. Of o, Keep and Like count.
func (d *Dir) Truncate(ctx context.Context, name string, size int64, o Options) (err error) {
	p := d.Child(name)
	ctx, unlock, err := d.Lock(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	f, _, err := p.OpenFile(os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	after, err := d.holdOpen(ctx, name, f, Rewritten, o)
	if err != nil {
		return Failed(p, err)
	}
	defer after()
	if err = f.Truncate(size); err == nil && o.Like != nil {
		err = SetModified(f, d.root, name, o.Like.ModTime())
	}
	if err == nil {
		err = f.Sync()
	}
	return Failed(p, err)
}

// holdOpen keeps the open file f, called name, before it is written to. after
// tells what has become of it.
func (d *Dir) holdOpen(ctx context.Context, name string, f *os.File, s Step, o Options) (after func(), err error) {
	if o.Keep == nil {
		return func() {}, nil
	}
	left, err := fileinfo.OfFile(f)
	if err != nil {
		return nil, err
	}
	d.BackUp(ctx, o.Keep, name, s)
	left.Size = -1
	d.Expect(o.Keep, name, &left, nil)
	return func() {
		if left, err := fileinfo.OfFile(f); err == nil {
			d.Expect(o.Keep, name, &left, o.sum())
		}
	}, nil
}

func (o Options) sum() []byte {
	if o.Sum == nil {
		return nil
	}
	return *o.Sum
}

// A made is a directory that was made to write in it.
type made struct {
	abs  string
	info fileinfo.Info
}

package filetree

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"path/filepath"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
	"github.com/conduit-mcp/conduit-mcp/internal/walk"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// A Keeper keeps what a call is about to destroy. Of a directory Keep keeps all
// that is in it.
type Keeper interface {
	atomicfile.Keeper
	// Move says that the step that follows at once moves from, which is what
	// moved says, to to. Where it fails, cancel is to be called.
	Move(from, to string, moved fileinfo.Info) (cancel func())
}

// hold has keep keep p before it is removed. With a nil keep it does nothing.
func hold(ctx context.Context, keep Keeper, p place.Place) (cancel func()) {
	if keep == nil {
		return func() {}
	}
	keepAt(ctx, keep, p)
	return keep.Expect(p.Abs, nil, nil)
}

// keepAt has keep keep p before it is replaced or removed.
func keepAt(ctx context.Context, keep Keeper, p place.Place) {
	parent, err := walk.OpenRoot(p.Parent())
	if err != nil {
		return // the step will meet the same error
	}
	defer parent.Close()
	p.Root, p.Name = parent.Root(), filepath.Base(p.Name)
	keep.BackUp(ctx, parent.File(), p, atomicfile.Replaced)
}

// leaveTree says that the tree temp in parent is about to be called name.
func leaveTree(ctx context.Context, keep Keeper, parent *atomicfile.Dir, temp, name string) (cancel func(), err error) {
	sum, err := Digest(ctx, parent.Child(temp))
	if err != nil {
		return nil, err
	}
	fi, err := parent.Root().Lstat(temp)
	if err != nil {
		return nil, err
	}
	left := fileinfo.From(fi)
	return parent.Expect(keep, name, &left, sum), nil
}

// leaveLink says that the link temp in dir is about to be called name.
func leaveLink(ctx context.Context, keep Keeper, dir *atomicfile.Dir, temp, name string) (cancel func()) {
	fi, err := dir.Root().Lstat(temp)
	if keep == nil || err != nil {
		return func() {}
	}
	dir.BackUp(ctx, keep, name, atomicfile.Replaced)
	left := fileinfo.From(fi)
	return dir.Expect(keep, name, &left, nil)
}

// Digest names the state of the tree p, denied entries included: two digests are
// equal where it holds the same entries, none of which was written to meanwhile.
func Digest(ctx context.Context, p place.Place) ([]byte, error) {
	p.Guard = nil
	top, err := walk.Open(p)
	if err != nil {
		return nil, err
	}
	defer top.Close()
	type line struct {
		b   []byte
		err error
	}
	describe := func(_ context.Context, n walk.Node) line {
		i, err := n.Dir.Info(n.Name)
		if i.IsDir() {
			i.Size = 0 // says nothing of what is in it
		}
		rel := n.Rel()
		b := make([]byte, 0, 1+len(rel)+1+4+8+8)
		b = append(append(append(b, '/'), rel...), 0)
		b = binary.BigEndian.AppendUint32(b, uint32(i.Mode))
		b = binary.BigEndian.AppendUint64(b, uint64(i.Size))
		return line{binary.BigEndian.AppendUint64(b, uint64(i.Modified.UnixNano())), err}
	}
	h := sha256.New()
	var failed error
	report, err := walk.Tree(ctx, top, walk.TreeOptions{Depth: maxLevels}, describe, func(l line) bool {
		h.Write(l.b)
		failed = l.err
		return failed == nil
	})
	switch {
	case err != nil || failed != nil:
		return nil, cmp.Or(err, failed)
	case report.Deep > 0:
		return nil, tooDeep(top.Place().Abs)
	case report.Unreadable > 0:
		return nil, fault.New(fault.FSReadFailed, "directories in %s cannot be read: %d", top.Place().Abs, report.Unreadable)
	}
	return h.Sum(nil), nil
}

// empty reports whether p is a directory with nothing in it.
func empty(p place.Place) bool {
	f, _, err := p.Open()
	if err != nil {
		return false
	}
	defer f.Close()
	names, _ := f.Readdirnames(1)
	return len(names) == 0
}

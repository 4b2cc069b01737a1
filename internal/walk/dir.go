// Package walk reads directories through open handles, so that a walk never
// leaves the allowed directory it began in.
package walk

import (
	"cmp"
	"context"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// A Dir is an open directory.
type Dir struct {
	place   place.Place
	root    *os.Root // nil where d was opened for reading alone
	file    *os.File // nil where there is but a descriptor
	fd      int      // where package dirfd knows the system's calls; otherwise unused
	guarded bool     // a deny rule may match below
	refs    atomic.Int32
}

// MaxLevels is how deep a tree may be nested that is worked on as a whole.
const MaxLevels = 1000

// TooDeep refuses a tree that is nested deeper at abs; advice says what to do
// instead.
func TooDeep(abs, advice string) error {
	return fault.New(fault.TooDeep, "the tree is nested more than %d levels deep at %s; %s", MaxLevels, fault.ClipTo(abs, 200), advice)
}

// An Entry is a name in a directory and what it is.
type Entry struct {
	Name string
	Type fs.FileMode // type bits only
}

// IsDir reports whether the entry itself is a directory.
func (e Entry) IsDir() bool { return e.Type.IsDir() }

// IsLink reports whether the entry is a symbolic link.
func (e Entry) IsLink() bool { return e.Type&fs.ModeSymlink != 0 }

// Open opens the directory p and, through Sub, those below it, for reading.
// Anything else is ERR_FS_IS_FILE.
func Open(p place.Place) (*Dir, error) { return open(p, openFile) }

// OpenRoot is [Open] for callers that also change what is there: its directories
// have a Root and a File.
func OpenRoot(p place.Place) (*Dir, error) { return open(p, openRoot) }

func open(p place.Place, how func(p place.Place, root *os.Root, name string) (*Dir, error)) (*Dir, error) {
	fi, err := p.Stat()
	if err != nil {
		return nil, err
	}
	if !fi.IsDir() {
		return nil, fault.New(fault.FSIsFile, "%s is a file; name a directory", p.Abs)
	}
	return how(p, p.Root, p.Name)
}

// openRoot opens the directory name below root, which is p, with a root of its
// own.
func openRoot(p place.Place, root *os.Root, name string) (*Dir, error) {
	q := p
	q.Root, q.Name = root, name
	sub, err := q.OpenRoot()
	if err != nil {
		return nil, err
	}
	f, err := sub.Open(".")
	if err != nil {
		sub.Close()
		return nil, p.Explain(err)
	}
	return newDir(p, sub, f), nil
}

// newDir takes charge of root, which may be nil, and f.
func newDir(p place.Place, root *os.Root, f *os.File) *Dir {
	d := &Dir{place: p, root: root, file: f, fd: int(f.Fd()), guarded: p.Guard != nil && p.Guard.DeniedBelow(p.Abs)}
	d.refs.Store(1)
	return d
}

// Retain keeps d open until one more Close.
func (d *Dir) Retain() { d.refs.Add(1) }

// Close closes d once every holder has done so.
func (d *Dir) Close() {
	if d.refs.Add(-1) != 0 {
		return
	}
	if d.file == nil {
		closeDescriptor(d.fd)
		d.fd = -1 // nobody shall take the next file of that number for d
	} else {
		d.file.Close()
	}
	if d.root != nil {
		d.root.Close()
	}
}

// Place is where d is.
func (d *Dir) Place() place.Place { return d.place }

// Path is the absolute path of the entry called name.
func (d *Dir) Path(name string) string {
	abs := d.place.Abs
	if abs != "" && os.IsPathSeparator(abs[len(abs)-1]) { // the root of a file system
		return abs + name
	}
	return abs + string(os.PathSeparator) + name
}

// Root is a handle of d itself: names below it need no further resolution. It
// is valid until d is closed. Only what [OpenRoot] opened has one.
func (d *Dir) Root() *os.Root { return d.root }

// File is d opened for reading, for calls on its descriptor. Only what
// [OpenRoot] opened has one.
func (d *Dir) File() *os.File { return d.file }

// Entries returns what is in d, sorted by name, without our temporary files and
// what a deny rule covers.
func (d *Dir) Entries() ([]Entry, error) {
	list, _, err := d.EntriesCounted()
	return list, err
}

// EntriesCounted is Entries, and how many entries a deny rule left out. It can
// be called once per Dir.
func (d *Dir) EntriesCounted() (list []Entry, denied int, err error) {
	return d.entries(context.Background())
}

// entries is EntriesCounted until ctx ends.
func (d *Dir) entries(ctx context.Context) (list []Entry, denied int, err error) {
	if list, err = d.read(ctx); err != nil {
		return nil, 0, d.place.Explain(err)
	}
	list = slices.DeleteFunc(list, func(e Entry) bool {
		if atomicfile.IsTemp(e.Name) {
			return true
		}
		hidden := d.guarded && d.place.Guard.DeniedName(e.Name) && d.place.Guard.Denied(d.Path(e.Name))
		if hidden {
			denied++
		}
		return hidden
	})
	return list, denied, sortEntries(ctx, list)
}

// Parts yields list in parts for several workers: of at most n entries, and
// ending with a directory where there is one, since what is below it is work
// enough.
func Parts(list []Entry, n int) iter.Seq[[]Entry] {
	return func(yield func([]Entry) bool) {
		for first, i := 0, 0; i < len(list); i++ {
			if end := i + 1; list[i].IsDir() || end-first == n || end == len(list) {
				if !yield(list[first:end]) {
					return
				}
				first = end
			}
		}
	}
}

// run is how many entries are sorted without a look at the context.
const run = 16 << 10

// sortEntries sorts list by name, unless ctx ends meanwhile.
func sortEntries(ctx context.Context, list []Entry) error {
	byName := func(a, b Entry) int { return strings.Compare(a.Name, b.Name) }
	for part := range slices.Chunk(list, run) {
		if err := ctx.Err(); err != nil {
			return err
		}
		slices.SortFunc(part, byName)
	}
	var from []Entry
	for size := run; size < len(list); size *= 2 {
		from = append(from[:0], list...)
		for at := 0; at < len(from); at += 2 * size {
			if err := ctx.Err(); err != nil {
				return err
			}
			middle, end := min(at+size, len(from)), min(at+2*size, len(from))
			merge(list[at:end], from[at:middle], from[middle:end])
		}
	}
	return nil
}

// merge fills to with the entries of a and b, both sorted by name.
func merge(to, a, b []Entry) {
	for i := range to {
		if len(b) == 0 || len(a) > 0 && a[0].Name < b[0].Name {
			to[i], a = a[0], a[1:]
		} else {
			to[i], b = b[0], b[1:]
		}
	}
}

// Info describes the entry called name; links are not followed.
func (d *Dir) Info(name string) (fileinfo.Info, error) {
	i, err := d.info(name)
	if err != nil {
		return i, d.place.Child(name).Explain(err)
	}
	return i, nil
}

// Sub opens the directory called name in d, as d was opened. A link is none.
func (d *Dir) Sub(name string) (*Dir, error) {
	if d.root != nil {
		return openRoot(d.place.Child(name), d.root, name)
	}
	return d.sub(name)
}

// ComparePaths orders slash-separated relative paths as walks meet them:
// element by element, a directory before what it contains.
func ComparePaths(a, b string) int {
	for {
		x, restA, moreA := strings.Cut(a, "/")
		y, restB, moreB := strings.Cut(b, "/")
		if c := strings.Compare(x, y); c != 0 {
			return c
		}
		if !moreA || !moreB {
			return cmp.Compare(len(a), len(b))
		}
		a, b = restA, restB
	}
}

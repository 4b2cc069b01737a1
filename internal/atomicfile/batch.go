package atomicfile

import (
	"cmp"
	"context"
	"crypto/sha256"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/conduit-mcp/conduit-mcp/internal/parallel"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// A Job is one file for [Writer.Run] to write. The last three fields are
// results.
type Job struct {
	Place   place.Place
	Content string
	Pieces  [][]byte // where not nil, the content in place of Content; not for Append
	Mode    Mode
	IfMatch string
	Keep    Keeper // where not nil, keeps what is replaced

	Report
	Sum []byte // SHA-256 of the file; nil after Append
	Err error
}

// runners is how many jobs are under way at once. They mostly wait for the
// disk, and file systems flush files together that are waited for together.
const runners = 16

// Run carries out jobs, several at a time but those for one file in order. When
// it returns, what it wrote is durable; each directory is opened and flushed
// once. done, which may be nil, is called after each job. The error is that of
// ctx, after which jobs may be left undone, or a panic.
func (w *Writer) Run(ctx context.Context, jobs []*Job, done func()) error {
	dirs := map[string]*sharedDir{}
	var files [][]*queued // one element a file
	for _, q := range queue(jobs) {
		abs := q.Place.Parent().Abs
		if q.dir = dirs[abs]; q.dir == nil {
			q.dir = &sharedDir{}
			dirs[abs] = q.dir
		}
		q.dir.users.Add(1)
		if n := len(files); n > 0 && files[n-1][0].key == q.key {
			files[n-1] = append(files[n-1], q)
		} else {
			files = append(files, []*queued{q})
		}
	}
	if err := w.keepFirst(ctx, files); err != nil {
		return err
	}
	g := parallel.New()
	g.SetLimit(runners)
	for _, file := range files {
		g.Go(func() error {
			for _, q := range file {
				if err := ctx.Err(); err != nil {
					return err
				}
				q.Err = w.do(ctx, q)
				q.dir.release()
				if done != nil {
					done()
				}
			}
			return nil
		})
	}
	err := g.Wait()
	for _, d := range dirs {
		d.close()
	}
	for _, j := range jobs {
		if d := dirs[j.Place.Parent().Abs]; j.Err == nil {
			j.Err = d.err
		}
	}
	return err
}

// keptAtATime is how many files one goroutine keeps in a row.
const keptAtATime = 64

// keepFirst keeps what jobs will replace before any is carried out, so that it
// becomes durable at once and not file by file.
func (w *Writer) keepFirst(ctx context.Context, files [][]*queued) error {
	var kept []*queued
	for _, jobs := range files {
		if q := jobs[0]; q.Keep != nil && q.Mode == Overwrite && q.Place.Name != "." {
			kept = append(kept, q)
		}
	}
	if len(kept) == 1 {
		return nil
	}
	g := parallel.New()
	g.SetLimit(runtime.GOMAXPROCS(0))
	for len(kept) > 0 {
		n := 1
		for n < min(len(kept), keptAtATime) && kept[n].parent == kept[0].parent {
			n++
		}
		some := kept[:n]
		kept = kept[n:]
		g.Go(func() error {
			d, err := w.open(some[0].Place.Parent())
			if err != nil {
				return nil // the job will say so, or make it
			}
			defer d.Close()
			for _, q := range some {
				if err := ctx.Err(); err != nil {
					return err
				}
				d.BackUp(ctx, q.Keep, base(q.Place), Replaced)
			}
			return nil
		})
	}
	return g.Wait()
}

// A queued job knows the directory it shares with others.
type queued struct {
	*Job
	parent, key string
	dir         *sharedDir
}

// queue orders jobs by directory, so that few are open at a time, and then by
// file. Names that differ only in case count as one file, which some file
// systems make them.
func queue(jobs []*Job) []*queued {
	list := make([]*queued, len(jobs))
	for i, j := range jobs {
		list[i] = &queued{Job: j, parent: strings.ToLower(j.Place.Parent().Abs), key: strings.ToLower(j.Place.Abs)}
	}
	slices.SortStableFunc(list, func(a, b *queued) int {
		return cmp.Or(strings.Compare(a.parent, b.parent), strings.Compare(a.key, b.key))
	})
	return list
}

// A sharedDir is opened by its first user and closed after its last.
type sharedDir struct {
	users atomic.Int64

	mu  sync.Mutex
	dir *Dir
	err error // of closing
}

func (s *sharedDir) open(w *Writer, p place.Place, create bool) (*Dir, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dir != nil {
		return s.dir, nil
	}
	d, err := w.Open(p, create)
	if err == nil {
		s.dir = d
	}
	return d, err
}

func (s *sharedDir) release() {
	if s.users.Add(-1) == 0 {
		s.close()
	}
}

func (s *sharedDir) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dir != nil {
		s.err = s.dir.Close()
		s.dir = nil
	}
}

func (w *Writer) do(ctx context.Context, q *queued) error {
	if q.Place.Name == "." {
		return isDirectory(q.Place)
	}
	d, err := q.dir.open(w, q.Place.Parent(), q.IfMatch == "")
	if err != nil {
		return missing(q.IfMatch, q.Place, err)
	}
	if q.Mode == Append {
		q.Report, err = d.Append(ctx, base(q.Place), Options{IfMatch: q.IfMatch, Keep: q.Keep}, q.Content)
		return err
	}
	q.Report, err = d.Write(ctx, base(q.Place), Options{Mode: q.Mode, IfMatch: q.IfMatch, Keep: q.Keep, Sum: &q.Sum}, func(f *os.File) error {
		q.Sum, err = writeAndSum(ctx, f, q.Content, q.Pieces)
		return err
	})
	return err
}

// writeAndSum writes content, or the pieces where there are any, to f and
// returns the SHA-256.
func writeAndSum(ctx context.Context, f *os.File, content string, pieces [][]byte) ([]byte, error) {
	const most = 256 << 10
	size := len(content)
	for _, p := range pieces {
		size += len(p)
	}
	buf := make([]byte, 0, min(size, most))
	h := sha256.New()
	flush := func() error {
		h.Write(buf)
		_, err := f.Write(buf)
		buf = buf[:0]
		return cmp.Or(err, ctx.Err())
	}
	for ; len(content) > 0; content = content[cap(buf):] {
		if buf = append(buf, content[:min(len(content), cap(buf))]...); len(buf) < cap(buf) {
			break
		}
		if err := flush(); err != nil {
			return nil, err
		}
	}
	for _, p := range pieces {
		for len(p) > 0 {
			n := min(len(p), cap(buf)-len(buf))
			buf, p = append(buf, p[:n]...), p[n:]
			if len(buf) == cap(buf) {
				if err := flush(); err != nil {
					return nil, err
				}
			}
		}
	}
	if len(buf) > 0 {
		if err := flush(); err != nil {
			return nil, err
		}
	}
	return h.Sum(nil), nil
}

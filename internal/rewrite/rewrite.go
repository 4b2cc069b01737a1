// Package rewrite changes files that exist: it locks and reads them, has their
// new content planned, checks that they are still what was read, has what they
// hold kept for undo, and replaces them. Calls that change one file wait for
// each other, those of other servers included.
package rewrite

import (
	"context"
	"crypto/sha256"
	"io"
	"runtime"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/etag"
	"github.com/conduit-mcp/conduit-mcp/internal/parallel"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// A File is one file to change.
type File struct {
	Place   place.Place
	Name    string            // what errors about the file call it
	Path    string            // what errors about the call do
	IfMatch string            // the etag that it must have, or ""
	Keep    atomicfile.Keeper // where not nil, keeps what is replaced
	// Plan returns the new content in pieces, most of them parts of old; nil
	// leaves the file alone. It is called by several goroutines, each with a file
	// of its own.
	Plan func(ctx context.Context, old []byte) ([][]byte, error)

	// Err is why the file was left alone: ERR_PRECONDITION_FAILED where somebody
	// else has changed it meanwhile. Where it is set before, the rest is not
	// looked at.
	Err error

	Changed bool   // it was replaced, or would be but for Options.DryRun
	ETag    string // as it is now; set once it was read
	Note    string // sentences on how it was written; see [atomicfile.Report]

	size   int64 // as it was found
	old    []byte
	pieces [][]byte
}

// Options say how files are changed.
type Options struct {
	DryRun   bool                    // write nothing
	Together bool                    // all or none
	Progress func(done, total int64) // of files, told now and then; may be nil
}

// An Engine changes the files of a server.
type Engine struct {
	Writer   *atomicfile.Writer
	MaxBytes int64 // of one file: CONDUIT_MAX_FILE_READ_BYTES
}

// Bounds of what is held in memory before it is written.
const (
	batchFiles = 512
	batchBytes = 64 << 20
	holdFiles  = 4 // times MaxBytes, where all are changed or none
)

// Run changes files, no two of which may be the same, each whole or not at all.
// What becomes of each is in it. The error is that of ctx or of the whole call,
// which then has changed nothing if Together is set.
func (e Engine) Run(ctx context.Context, files []*File, o Options) error {
	for _, f := range files {
		if f.Err != nil {
			continue
		}
		if fi, err := f.Place.Stat(); err == nil {
			f.size = fi.Size()
		}
	}
	if o.Together {
		return e.together(ctx, files, o)
	}
	done := int64(0)
	for some := range batches(files) {
		if err := e.batch(ctx, some, o); err != nil {
			return err
		}
		if done += int64(len(some)); o.Progress != nil {
			o.Progress(done, int64(len(files)))
		}
	}
	return nil
}

// batches divides all into parts that fit into memory together.
func batches(all []*File) func(yield func([]*File) bool) {
	return func(yield func([]*File) bool) {
		for len(all) > 0 {
			n, bytes := 1, all[0].size
			for n < min(len(all), batchFiles) && bytes+all[n].size <= batchBytes {
				bytes += all[n].size
				n++
			}
			if !yield(all[:n]) {
				return
			}
			all = all[n:]
		}
	}
}

// batch changes some files, each by itself.
func (e Engine) batch(ctx context.Context, some []*File, o Options) error {
	ctx, unlock, err := e.lock(ctx, some, o)
	if err != nil {
		return err
	}
	defer unlock()
	if err = e.plan(ctx, some); err == nil && !o.DryRun {
		err = e.write(ctx, &Tx{Writer: e.Writer}, some)
	}
	for _, f := range some {
		f.old, f.pieces = nil, nil
	}
	return err
}

// together changes all files or none.
func (e Engine) together(ctx context.Context, all []*File, o Options) error {
	var bytes int64
	for _, f := range all {
		bytes += f.size
	}
	if bytes > holdFiles*e.MaxBytes {
		return fault.New(fault.LimitExceeded, "with all_or_nothing the files may have %d bytes together (%d times CONDUIT_MAX_FILE_READ_BYTES), and have %d; divide the call, or leave all_or_nothing out", holdFiles*e.MaxBytes, holdFiles, bytes)
	}
	ctx, unlock, err := e.lock(ctx, all, o)
	if err != nil {
		return err
	}
	defer unlock()
	if err := e.plan(ctx, all); err != nil {
		return err
	}
	if stop(all) || o.DryRun {
		return nil
	}
	tx := &Tx{Writer: e.Writer}
	if err = e.write(ctx, tx, all); err == nil && !anyFailed(all) {
		return nil
	}
	byPath := map[string]*File{}
	for _, f := range all {
		byPath[f.Place.Abs] = f
	}
	// What was written is put back even where the call was cancelled.
	tx.Rollback(context.WithoutCancel(ctx), nil, func(abs string, err error) {
		f := byPath[abs]
		f.Err = fault.Hide(fault.FSWriteFailed, err, "%s was changed before another file failed, and could not be put back; its etag is %s now", f.Path, f.ETag)
	})
	stop(all)
	return err
}

func anyFailed(all []*File) bool {
	for _, f := range all {
		if f.Err != nil {
			return true
		}
	}
	return false
}

// stop fails all files where one has failed.
func stop(all []*File) bool {
	var culprit *File
	for _, f := range all {
		if f.Err != nil && culprit == nil {
			culprit = f
		}
	}
	for _, f := range all {
		if culprit != nil && f.Err == nil {
			f.Err = fault.New(fault.PreconditionFailed, "%s is left as it was, since the call is all_or_nothing and %s failed; see the error there", f.Path, culprit.Path)
		}
	}
	return culprit != nil
}

// lock keeps others from the files from before they are read until they are
// written.
func (e Engine) lock(ctx context.Context, some []*File, o Options) (context.Context, func(), error) {
	var places []place.Place
	for _, f := range some {
		if f.Err == nil && !o.DryRun {
			places = append(places, f.Place)
		}
	}
	return e.Writer.Lock(ctx, places...)
}

// plan reads files and has planned what is to become of them.
func (e Engine) plan(ctx context.Context, some []*File) error {
	g := parallel.New()
	g.SetLimit(runtime.GOMAXPROCS(0))
	for _, f := range some {
		g.Go(func() error {
			if f.Err == nil && ctx.Err() == nil {
				f.Err = e.planOne(ctx, f)
			}
			return ctx.Err() // which a file's own error may have been
		})
	}
	return g.Wait()
}

func (e Engine) planOne(ctx context.Context, f *File) (err error) {
	if f.old, err = e.read(f); err != nil {
		return err
	}
	sum := sha256.Sum256(f.old)
	f.ETag = etag.Of(sum[:])
	if f.IfMatch != "" && f.IfMatch != f.ETag {
		return fault.New(fault.PreconditionFailed, "%s has changed: its etag is %s, not the if_match given; read it again before editing", f.Name, f.ETag)
	}
	f.pieces, err = f.Plan(ctx, f.old)
	f.Changed = err == nil && f.pieces != nil
	return err
}

func (e Engine) read(f *File) ([]byte, error) {
	file, fi, err := f.Place.OpenFileOnly()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if fi.Size() > e.MaxBytes {
		return nil, fault.New(fault.LimitExceeded, "%s has %d bytes, more than CONDUIT_MAX_FILE_READ_BYTES (%d)", f.Name, fi.Size(), e.MaxBytes)
	}
	b := make([]byte, fi.Size())
	n, err := io.ReadFull(file, b)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF { // shorter by now: whether it goes on changing shows when it is written
		return nil, fault.Hide(fault.FSReadFailed, err, "reading %s failed at byte %d", f.Name, n)
	}
	return b[:n], nil
}

// write writes the files that have new content. Each must still be what it was
// when it was read.
func (e Engine) write(ctx context.Context, tx *Tx, some []*File) error {
	var writes []*Write
	var files []*File
	for _, f := range some {
		if f.Err == nil && f.pieces != nil {
			writes = append(writes, &Write{
				Job: atomicfile.Job{Place: f.Place, Pieces: f.pieces, IfMatch: f.ETag, Keep: f.Keep},
				Old: func(context.Context) (string, error) { return string(f.old), nil },
			})
			files = append(files, f)
		}
	}
	err := tx.Write(ctx, writes, nil)
	for i, f := range files {
		w := writes[i]
		switch code, _ := fault.Of(w.Err); {
		case w.Err == nil:
			f.ETag, f.Note = etag.Of(w.Sum), w.Note()
			continue
		case code == fault.PreconditionFailed:
			f.Err = fault.Hide(fault.PreconditionFailed, w.Err, "%s changed while it was edited, and was left as it is; call again", f.Name)
		default:
			f.Err = w.Err
		}
		f.Changed = false
	}
	return err
}

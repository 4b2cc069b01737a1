package filesystem

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/etag"
	"github.com/conduit-mcp/conduit-mcp/internal/search"
	"github.com/conduit-mcp/conduit-mcp/internal/textedit"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// rewriteErrors are those of tools that change a part of files.
var rewriteErrors = codes(fault.FSNotFound, fault.FSIsDirectory, fault.FSOperation, fault.FSReadFailed, fault.FSWriteFailed,
	fault.PreconditionFailed, fault.LimitExceeded)

// rewrite reads the file that p names, has f make its new content, and writes
// that whole, unless write is false, if the file is still what it was. It
// reports whether there is a difference.
func rewrite(ctx context.Context, w *atomicfile.Writer, p registry.Path, most int64, keep atomicfile.Keeper, write bool, f func(old []byte) ([]byte, error)) (changed bool, err error) {
	at, err := p.Place()
	if err != nil {
		return false, err
	}
	if write {
		var unlock func()
		if ctx, unlock, err = w.Lock(ctx, at); err != nil {
			return false, err
		}
		defer unlock()
	}
	old, err := readAll(at, p, most)
	if err != nil {
		return false, located(p, err)
	}
	content, err := f(old)
	if err != nil || bytes.Equal(old, content) {
		return false, err
	}
	if !write {
		return true, nil
	}
	sum := sha256.Sum256(old)
	job := &atomicfile.Job{Place: at, Content: string(content), IfMatch: etag.Of(sum[:]), Keep: keep}
	if err := w.Run(ctx, []*atomicfile.Job{job}, nil); err != nil {
		return false, err
	}
	if code, _ := fault.Of(job.Err); job.Err != nil && (code == fault.PreconditionFailed || errors.Is(job.Err, fs.ErrNotExist)) {
		return false, fault.Hide(fault.PreconditionFailed, job.Err, "%s changed while it was edited, and was left as it is; call again", p)
	}
	return job.Err == nil, job.Err
}

func readAll(at place.Place, p registry.Path, most int64) ([]byte, error) {
	f, fi, err := at.OpenFileOnly()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if fi.Size() > most {
		return nil, fault.New(fault.LimitExceeded, "%s has %d bytes, more than CONDUIT_MAX_FILE_READ_BYTES (%d)", p, fi.Size(), most)
	}
	b := make([]byte, fi.Size())
	n, err := io.ReadFull(f, b)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF { // shorter by now: whether it goes on changing shows when it is written
		return nil, fault.Hide(fault.FSReadFailed, err, "reading %s failed at byte %d", p, n)
	}
	return b[:n], nil
}

// expression compiles what the parameter at holds. Unlike in search_files a
// pattern in slashes is one that has slashes.
func expression(at, pattern string, ignoreCase bool) (search.Matcher, error) {
	if len(pattern) > search.MaxPattern {
		return nil, fault.New(fault.InvalidParameter, "%s may have at most %d bytes", at, search.MaxPattern)
	}
	if strings.HasPrefix(pattern, "/") {
		pattern = "(?:" + pattern + ")"
	}
	compile := search.NewExpression
	if ignoreCase {
		compile = search.NewFolded
	}
	re, err := compile(pattern, true)
	if err != nil {
		return nil, fault.New(fault.InvalidParameter, "%s is not a valid JavaScript regular expression: %v", at, err)
	}
	return re, nil
}

// searched is the error of searching the file that p names.
func searched(p registry.Path, err error) error {
	if errors.Is(err, search.ErrGivenUp) {
		return fault.New(fault.LimitExceeded, "%s: the expression takes too long; simplify it, avoid nested repetitions", p)
	}
	return err
}

// parsed is the content of the file that p names as a text to be changed.
func parsed(p registry.Path, content []byte) (*textedit.Doc, error) {
	d, err := textedit.Parse(content, "")
	if err != nil {
		return nil, fault.Hide(fault.InvalidParameter, err, "%s is binary, and only text can be edited; replace it whole with write_content", p)
	}
	return d, nil
}

// about puts the name of the file in front of a message that lacks it.
func about(p registry.Path, err error) error {
	if coded := new(fault.Error); errors.As(err, &coded) {
		return fault.Hide(coded.Code, coded, "%s: %s", p, coded.Message)
	}
	return err
}

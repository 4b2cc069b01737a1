package fetch

import (
	"context"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// GetRange reads length bytes of u from offset on, or with length -1 all from
// there. Body holds exactly these: fewer where the content ends before, none
// where offset lies past its end (status 416 included). Document.Range tells how
// they were had. Above offset 0, whoever read the whole before goes on in that:
// a copy that Resume would use is cut and nothing is requested.
//
// The limit counts what is downloaded: of a server that sends ranges the part
// alone, otherwise everything up to the end of the part.
func (f *Fetcher) GetRange(ctx context.Context, u *url.URL, offset, length int64) (*Document, error) {
	if offset < 0 || length < -1 {
		return nil, fault.New(fault.InvalidParameter, "offset must be 0 or more, and length -1 or more")
	}
	// No range is empty, so one byte stands for none.
	want := span{offset, max(length, 1)}
	if length < 0 || length > math.MaxInt64-offset {
		want.n = -1
	}
	doc, err := f.copied(ctx, u, want), error(nil)
	if doc == nil {
		doc, err = f.getRange(ctx, u, want)
	}
	if err == nil && length == 0 {
		doc.Body = doc.Body[:0]
	}
	return doc, err
}

// copied cuts the wanted bytes from a copy, or returns nil.
func (f *Fetcher) copied(ctx context.Context, u *url.URL, want span) *Document {
	if want.from == 0 || ctx.Err() != nil {
		return nil
	}
	held := f.copies.get(u.String(), f.now())
	if held == nil {
		return nil
	}
	doc := *held
	doc.Range = RangeSimulated
	doc.Body = doc.Body[min(want.from, int64(len(doc.Body))):]
	if want.n >= 0 {
		doc.Body = doc.Body[:min(want.n, int64(len(doc.Body)))]
	}
	return &doc
}

// A span is n bytes from offset from on, with n -1 all from there.
type span struct{ from, n int64 }

// header returns the value of Range.
func (s span) header() string {
	if s.n < 0 {
		return fmt.Sprintf("bytes=%d-", s.from)
	}
	return fmt.Sprintf("bytes=%d-%d", s.from, s.from+s.n-1)
}

func (f *Fetcher) getRange(ctx context.Context, u *url.URL, want span) (*Document, error) {
	resp, err := f.send(ctx, http.MethodGet, u, http.Header{"Accept-Encoding": {"identity"}, "Range": {want.header()}})
	if err != nil {
		return nil, err
	}
	defer finish(resp)
	switch resp.StatusCode {
	case http.StatusPartialContent:
		if doc, err := f.part(ctx, u, resp, want); doc != nil || err != nil {
			return doc, err
		}
	case http.StatusRequestedRangeNotSatisfiable:
		if total, ok := strings.CutPrefix(resp.Header.Get("Content-Range"), "bytes */"); ok {
			if n, ok := parseCount(total); ok && n <= want.from {
				doc := document(u, resp)
				doc.Body, doc.Range = []byte{}, RangeNative
				return doc, nil
			}
		}
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusGone, http.StatusTooManyRequests:
		return nil, statusError(u, resp.StatusCode)
	default:
		if resp.StatusCode < 400 {
			return f.cut(ctx, u, resp, want)
		}
	}

	// The range was refused, or answered with something else. What is asked for
	// may still be had from the whole.
	finish(resp)
	whole, err := f.send(ctx, http.MethodGet, u, http.Header{"Accept-Encoding": {"gzip, deflate, br"}})
	var doc *Document
	if err == nil {
		defer finish(whole)
		doc, err = f.cut(ctx, u, whole, want)
	}
	if err != nil && ctx.Err() == nil && resp.StatusCode == http.StatusRequestedRangeNotSatisfiable {
		_, why := fault.Of(err)
		return nil, fault.Hide(fault.HTTPRange, &httpError{resp.StatusCode, RangeNotSupported, err},
			"%s answered with HTTP status %s, and the whole could not be read in its place: %s", label(u), status(resp.StatusCode), why)
	}
	return doc, err
}

// part reads the wanted bytes from a 206. It returns nil and no error where the
// answer does not hold them.
func (f *Fetcher) part(ctx context.Context, u *url.URL, resp *http.Response, want span) (*Document, error) {
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if media == "multipart/byteranges" || len(encodings(resp.Header)) > 0 {
		return nil, nil
	}
	first, last, total, ok := parseContentRange(resp.Header.Get("Content-Range"))
	if !ok || first != want.from {
		return nil, nil
	}
	toEnd := total >= 0 && last == total-1
	n := last - first + 1
	switch {
	case want.n >= 0 && n >= want.n:
		n = want.n
	case !toEnd: // less than asked for, though there is more
		return nil, nil
	}
	if n > f.max {
		return nil, f.tooLarge(u, n, "; ask for a smaller length")
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, n))
	if err != nil {
		if ctx.Err() != nil || isTimeout(err) {
			return nil, f.failure(ctx, u, err)
		}
		return nil, nil
	}
	if int64(len(body)) < n { // not what the header promises, so nothing of it is relied on
		return nil, nil
	}
	doc := document(u, resp)
	doc.Body, doc.Range = slices.Clip(body), RangeNative
	return doc, nil
}

// cut reads the wanted bytes from an answer that holds the whole.
func (f *Fetcher) cut(ctx context.Context, u *url.URL, resp *http.Response, want span) (*Document, error) {
	if err := accept(u, resp); err != nil {
		return nil, err
	}
	const hint = "; the server sends no ranges, so only parts near the start can be read"
	if want.n >= 0 && want.n <= f.max-want.from {
		resp.ContentLength = -1 // need not be read to its end
	}
	body, err := f.open(ctx, u, resp, hint)
	if err != nil {
		return nil, err
	}
	doc := document(u, resp)
	doc.Body, doc.Range = []byte{}, RangeSimulated
	if _, err := io.CopyN(io.Discard, body, want.from); err == io.EOF {
		return doc, nil
	} else if err != nil {
		return nil, err
	}
	wanted := body
	if want.n >= 0 {
		wanted = io.LimitReader(body, want.n)
	}
	if doc.Body, err = io.ReadAll(wanted); err != nil {
		return nil, err
	}
	doc.Body = slices.Clip(doc.Body)
	if want.from == 0 && atEnd(body) {
		doc.Range = RangeFull
	}
	return doc, nil
}

func atEnd(r io.Reader) bool {
	_, err := io.ReadFull(r, make([]byte, 1))
	return err == io.EOF
}

// parseContentRange reads "bytes first-last/total"; total is -1 where the server
// does not know it ("*").
func parseContentRange(s string) (first, last, total int64, ok bool) {
	s, ok = strings.CutPrefix(s, "bytes ")
	span, size, ok2 := strings.Cut(s, "/")
	from, to, ok3 := strings.Cut(span, "-")
	if !ok || !ok2 || !ok3 {
		return 0, 0, 0, false
	}
	first, ok = parseCount(from)
	last, ok2 = parseCount(to)
	total, ok3 = parseCount(size)
	if size == "*" {
		total, ok3 = -1, true
	}
	return first, last, total, ok && ok2 && ok3 && first <= last && last < math.MaxInt64 && (total < 0 || last < total)
}

// parseCount reads digits alone.
func parseCount(s string) (int64, bool) {
	n, err := strconv.ParseUint(s, 10, 63)
	return int64(n), err == nil
}

// Package fetch reads URLs within limits and behind a guard. Whatever a server
// sends, a call ends in time, in bounded memory, with the content or with an
// error that says what went wrong.
package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// A Document is what a URL led to. It may be shared with other callers, so
// nothing in it may be changed.
type Document struct {
	URL    *url.URL    // the final one, without credentials where it is not the one asked for
	Status int         // 200 also where a copy was found to be current
	Header http.Header // as sent
	Body   []byte      // without Content-Encoding
	Range  RangeStatus // of GetRange

	redirected bool
	final      string // as the last request had it
}

// Redirected reports whether URL is another than the one asked for.
func (d *Document) Redirected() bool { return d.redirected }

// A RangeStatus tells how a part of a URL was read (spec section 5.1,
// range_request_status).
type RangeStatus string

const (
	RangeNative       RangeStatus = "native"                // the server sent the part
	RangeSimulated    RangeStatus = "simulated"             // the part was cut out here
	RangeFull         RangeStatus = "full_content_returned" // the whole was the part asked for
	RangeNotSupported RangeStatus = "not_supported"         // neither worked
)

// A Fetcher reads URLs and keeps copies of what it read in memory: whole answers
// of status 200, 32 MB in all, for 5 minutes, none larger than 8 MB. It may be
// used by several goroutines at a time.
//
// Its errors are ERR_HTTP_INVALID_URL, ERR_HTTP_REQUEST_FAILED,
// ERR_HTTP_TIMEOUT, ERR_HTTP_STATUS_ERROR (for a status of 400 or above, see
// StatusOf), ERR_RESOURCE_LIMIT_EXCEEDED, of GetRange
// ERR_HTTP_RANGE_NOT_SATISFIABLE too, and the error of the context where that
// ended. Messages hold neither credentials nor queries of URLs, and of what a
// server wrote no more than the host or scheme it redirects to.
type Fetcher struct {
	client *http.Client
	max    int64
	now    func() time.Time
	copies cache
}

// New returns a Fetcher that reads through client at most maxBytes of one URL
// (CONDUIT_MAX_URL_DOWNLOAD_BYTES), counted both as sent and decoded.
func New(client *http.Client, maxBytes int64, now func() time.Time) *Fetcher {
	return &Fetcher{client: client, max: maxBytes, now: now}
}

// Get reads the whole of u. It always asks the server, which may answer that a
// copy is current.
func (f *Fetcher) Get(ctx context.Context, u *url.URL) (*Document, error) {
	return f.get(ctx, u, f.copies.get(u.String(), f.now()))
}

// Resume reads the whole of u, of which a part has been read before. A copy of
// at most 5 minutes is used as it is; without one it is Get.
func (f *Fetcher) Resume(ctx context.Context, u *url.URL) (*Document, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if doc := f.copies.get(u.String(), f.now()); doc != nil {
		return doc, nil
	}
	return f.get(ctx, u, nil)
}

// get reads u, of which held is a copy unless it is nil.
func (f *Fetcher) get(ctx context.Context, u *url.URL, held *Document) (*Document, error) {
	header := http.Header{"Accept-Encoding": {"gzip, deflate, br"}}
	conditional := held != nil && addConditions(header, held.Header)
	resp, err := f.send(ctx, http.MethodGet, u, header)
	if err != nil {
		return nil, err
	}
	defer finish(resp)
	if conditional && resp.StatusCode == http.StatusNotModified {
		if finalURL(resp) != held.final {
			// A redirect led elsewhere, where the validators mean nothing.
			return f.get(ctx, u, nil)
		}
		f.copies.put(u.String(), held, f.now())
		return held, nil
	}
	if err := accept(u, resp); err != nil {
		return nil, err
	}
	body, err := f.open(ctx, u, resp, inParts)
	if err != nil {
		return nil, err
	}
	doc := document(u, resp)
	if doc.Body, err = io.ReadAll(body); err != nil {
		return nil, err
	}
	doc.Body = slices.Clip(doc.Body)
	if doc.Status == http.StatusOK {
		f.copies.put(u.String(), doc, f.now())
	}
	return doc, nil
}

// Copy writes the whole of u to w as it arrives, under the limit. The Document
// has no Body. After an error, which may be one of w, w may have been given a
// part.
func (f *Fetcher) Copy(ctx context.Context, u *url.URL, w io.Writer) (*Document, error) {
	resp, err := f.send(ctx, http.MethodGet, u, http.Header{"Accept-Encoding": {"gzip, deflate, br"}})
	if err != nil {
		return nil, err
	}
	defer finish(resp)
	if err := accept(u, resp); err != nil {
		return nil, err
	}
	body, err := f.open(ctx, u, resp, "")
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(w, body); err != nil {
		return nil, err
	}
	return document(u, resp), nil
}

// Head reads the header of u alone. Servers that do not answer HEAD (405, 501)
// are asked with GET, whose body is left unread. No encoding is offered, so a
// Content-Length is that of the content.
func (f *Fetcher) Head(ctx context.Context, u *url.URL) (*Document, error) {
	header := http.Header{"Accept-Encoding": {"identity"}}
	resp, err := f.send(ctx, http.MethodHead, u, header)
	if err != nil {
		return nil, err
	}
	resp.Body.Close()
	if resp.StatusCode == http.StatusMethodNotAllowed || resp.StatusCode == http.StatusNotImplemented {
		if resp, err = f.send(ctx, http.MethodGet, u, header); err != nil {
			return nil, err
		}
		resp.Body.Close()
	}
	if err := accept(u, resp); err != nil {
		return nil, err
	}
	return document(u, resp), nil
}

// send makes one exchange, redirects included, up to the header of the answer.
func (f *Fetcher) send(ctx context.Context, method string, u *url.URL, header http.Header) (*http.Response, error) {
	header.Set("User-Agent", "Mozilla/5.0 (compatible; conduit-mcp)")
	header.Set("Accept", "text/html, application/xhtml+xml, */*;q=0.8")
	req := (&http.Request{Method: method, URL: u, Header: header}).WithContext(ctx)
	resp, err := f.client.Do(req)
	if err != nil {
		return nil, f.failure(ctx, u, err)
	}
	return resp, nil
}

// finish ends an exchange. What little of the body may be left is read, for a
// connection whose answer has been read to the end can serve the next request,
// but not at the price of waiting for a slow server.
func finish(resp *http.Response) {
	const (
		most = 16 << 10
		wait = 50 * time.Millisecond
	)
	if resp.ContentLength <= most {
		timer := time.AfterFunc(wait, func() { resp.Body.Close() })
		defer timer.Stop()
		io.CopyN(io.Discard, resp.Body, most)
	}
	resp.Body.Close()
}

// accept refuses answers that are not the content asked for.
func accept(u *url.URL, resp *http.Response) error {
	switch code := resp.StatusCode; {
	case code >= 400:
		return statusError(u, code)
	case code < 200, code == http.StatusPartialContent, code == http.StatusNotModified:
		return fault.Hide(fault.HTTPRequestFailed, &httpError{status: code}, "%s answered with HTTP status %s, which is no answer to the request", label(u), status(code))
	}
	return nil
}

// open returns the content of an answer. Reading it fails with an error to be
// shown, beyond the limit with [tooLarge].
func (f *Fetcher) open(ctx context.Context, u *url.URL, resp *http.Response, hint string) (io.Reader, error) {
	if len(encodings(resp.Header)) == 0 && resp.ContentLength > f.max {
		return nil, f.tooLarge(u, resp.ContentLength, hint)
	}
	r, err := decode(resp.Header, resp.Body, f.max)
	if err != nil {
		return nil, err
	}
	return &content{r, func(err error) error {
		if errors.Is(err, errLimit) {
			return f.tooLarge(u, -1, hint)
		}
		return f.failure(ctx, u, err)
	}}, nil
}

// A content reader makes errors fit to be shown.
type content struct {
	r    io.Reader
	show func(error) error
}

func (c *content) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if err != nil && err != io.EOF {
		err = c.show(err)
	}
	return n, err
}

// inParts tells how to read what is too large as a whole.
const inParts = "; read it in parts with offset and length"

// tooLarge tells that u has more than the limit: size bytes, where that is known
// (not -1).
func (f *Fetcher) tooLarge(u *url.URL, size int64, hint string) error {
	has := "has more"
	if size >= 0 {
		has = fmt.Sprintf("has %d bytes", size)
	}
	return fault.New(fault.LimitExceeded, "URL download exceeds CONDUIT_MAX_URL_DOWNLOAD_BYTES (%d): %s %s%s", f.max, label(u), has, hint)
}

// document describes an answer to a request for u.
func document(u *url.URL, resp *http.Response) *Document {
	d := &Document{URL: u, Status: resp.StatusCode, Header: resp.Header, final: finalURL(resp)}
	if d.final != u.String() {
		last := *resp.Request.URL
		last.User = nil
		d.URL, d.redirected = &last, true
	}
	return d
}

func finalURL(resp *http.Response) string { return resp.Request.URL.String() }

// addConditions makes a request ask for changes alone since the answer with the
// header old. It reports false where old has nothing of a sensible length to tell
// by.
func addConditions(header, old http.Header) bool {
	found := false
	for from, to := range map[string]string{"Etag": "If-None-Match", "Last-Modified": "If-Modified-Since"} {
		if v := old.Get(from); v != "" && len(v) <= 1024 {
			header.Set(to, v)
			found = true
		}
	}
	return found
}

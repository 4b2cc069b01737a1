package fetch

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

const digits = "0123456789"

// part answers with a 206 of ten digits.
func part(w http.ResponseWriter, contentRange, body string, header ...string) {
	w.Header().Set("Content-Range", contentRange)
	w.Header().Set("Content-Type", "text/plain")
	for i := 0; i < len(header); i += 2 {
		w.Header().Set(header[i], header[i+1])
	}
	w.WriteHeader(http.StatusPartialContent)
	io.WriteString(w, body)
}

func TestGetRange(t *testing.T) {
	honest := func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(digits))
	}
	whole := func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, digits) }
	// whole, but only to those who ask for no range
	unless := func(ranged http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Range") != "" {
				ranged(w, r)
				return
			}
			whole(w, r)
		}
	}
	code := func(code int, header ...string) http.HandlerFunc {
		return unless(func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(code)
			io.WriteString(w, "an error page")
		})
	}
	sends := func(contentRange, body string, header ...string) http.HandlerFunc {
		return unless(func(w http.ResponseWriter, _ *http.Request) { part(w, contentRange, body, header...) })
	}
	gzipped := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(encode(t, "gzip", []byte(digits)))
	}
	for _, c := range []struct {
		name           string
		server         http.HandlerFunc
		offset, length int64
		body           string
		status         int
		rng            RangeStatus
		requests       int32
	}{
		{"native", honest, 2, 3, "234", 206, RangeNative, 1},
		{"native to the end", honest, 7, -1, "789", 206, RangeNative, 1},
		{"native beyond the end", honest, 7, 100, "789", 206, RangeNative, 1},
		{"native whole", honest, 0, -1, digits, 206, RangeNative, 1},
		{"native, nothing", honest, 2, 0, "", 206, RangeNative, 1},
		{"native, longest", honest, 9, math.MaxInt64, "9", 206, RangeNative, 1},
		{"past the end", honest, 10, 5, "", 416, RangeNative, 1},
		{"far past the end", honest, math.MaxInt64, math.MaxInt64, "", 416, RangeNative, 1},
		{"far past the end, nothing", honest, math.MaxInt64, 0, "", 416, RangeNative, 1},

		{"whole, cut", whole, 2, 3, "234", 200, RangeSimulated, 1},
		{"whole, cut at the start", whole, 0, 3, "012", 200, RangeSimulated, 1},
		{"whole, cut to the end", whole, 7, -1, "789", 200, RangeSimulated, 1},
		{"whole, beyond the end", whole, 7, 100, "789", 200, RangeSimulated, 1},
		{"whole, past the end", whole, 10, 1, "", 200, RangeSimulated, 1},
		{"whole, far past the end", whole, math.MaxInt64, 0, "", 200, RangeSimulated, 1},
		{"whole, nothing", whole, 3, 0, "", 200, RangeSimulated, 1},
		{"whole", whole, 0, -1, digits, 200, RangeFull, 1},
		{"whole, exactly", whole, 0, 10, digits, 200, RangeFull, 1},
		{"whole, more", whole, 0, 99, digits, 200, RangeFull, 1},
		{"whole, encoded all the same", gzipped, 2, 3, "234", 200, RangeSimulated, 1},

		{"more than asked for", sends("bytes 2-9/10", "23456789"), 2, 3, "234", 206, RangeNative, 1},
		{"more than promised", sends("bytes 2-4/10", "23456789"), 2, 3, "234", 206, RangeNative, 1},
		{"to an end unknown", sends("bytes 2-4/*", "234"), 2, 3, "234", 206, RangeNative, 1},
		{"less than promised", sends("bytes 2-4/10", "23"), 2, 3, "234", 200, RangeSimulated, 2},
		{"less than announced", sends("bytes 2-4/10", "23", "Content-Length", "3"), 2, 3, "234", 200, RangeSimulated, 2},
		{"nothing", sends("bytes 2-4/10", ""), 2, 3, "234", 200, RangeSimulated, 2},
		{"less than asked for", sends("bytes 2-3/10", "23"), 2, 3, "234", 200, RangeSimulated, 2},
		{"less, the end unknown", sends("bytes 2-3/*", "23"), 2, 3, "234", 200, RangeSimulated, 2},
		{"to the end, which is unknown", sends("bytes 7-9/*", "789"), 7, -1, "789", 200, RangeSimulated, 2},
		{"another range", sends("bytes 0-2/10", "012"), 2, 3, "234", 200, RangeSimulated, 2},
		{"a range upside down", sends("bytes 4-2/10", "234"), 2, 3, "234", 200, RangeSimulated, 2},
		{"an empty range", sends("bytes 2-1/2", ""), 2, 3, "234", 200, RangeSimulated, 2},
		{"a range past its end", sends("bytes 2-4/3", "234"), 2, 3, "234", 200, RangeSimulated, 2},
		{"a range of all numbers", sends("bytes 2-9223372036854775807/*", "234"), 2, -1, "23456789", 200, RangeSimulated, 2},
		{"signs", sends("bytes +2-4/10", "234"), 2, 3, "234", 200, RangeSimulated, 2},
		{"other units", sends("lines 2-4/10", "234"), 2, 3, "234", 200, RangeSimulated, 2},
		{"no Content-Range", sends("", "234"), 2, 3, "234", 200, RangeSimulated, 2},
		{"nonsense", sends("bytes */10", "234"), 2, 3, "234", 200, RangeSimulated, 2},
		{"encoded", sends("bytes 2-4/10", "\x1f\x8b\x08", "Content-Encoding", "gzip"), 2, 3, "234", 200, RangeSimulated, 2},
		{"multipart", sends("bytes 2-4/10", "--x\r\n", "Content-Type", "multipart/byteranges; boundary=x"), 2, 3, "234", 200, RangeSimulated, 2},

		{"416 of an empty file", code(416, "Content-Range", "bytes */0"), 0, 5, "", 416, RangeNative, 1},
		{"416 of a range that exists", code(416, "Content-Range", "bytes */10"), 2, 3, "234", 200, RangeSimulated, 2},
		{"416 without a length", code(416), 2, 3, "234", 200, RangeSimulated, 2},
		{"416 without a length, past the end", code(416), 20, 3, "", 200, RangeSimulated, 2},
		{"416 with nonsense", code(416, "Content-Range", "bytes */-1"), 2, 3, "234", 200, RangeSimulated, 2},
		{"416, and the whole will do", code(416), 0, 10, digits, 200, RangeFull, 2},
		{"400", code(400), 2, 3, "234", 200, RangeSimulated, 2},
		{"501", code(501), 0, -1, digits, 200, RangeFull, 2},
	} {
		s, hits := serve(t, c.server)
		doc, err := fetcher(t, Settings{}).GetRange(t.Context(), parse(t, s.URL), c.offset, c.length)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if doc.Body == nil || string(doc.Body) != c.body || doc.Status != c.status || doc.Range != c.rng || hits.Load() != c.requests {
			t.Errorf("%s: %d %q %s after %d requests, want %d %q %s after %d", c.name, doc.Status, doc.Body, doc.Range, hits.Load(), c.status, c.body, c.rng, c.requests)
		}
	}
}

func TestRangeRequests(t *testing.T) {
	var seen []string
	s, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Range")+"|"+r.Header.Get("Accept-Encoding"))
		if r.Header.Get("Range") != "" {
			w.WriteHeader(416)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(encode(t, "gzip", []byte(digits)))
	})
	f := fetcher(t, Settings{})
	for _, c := range [][2]int64{{2, 3}, {7, -1}, {5, 0}} {
		if _, err := f.GetRange(t.Context(), parse(t, s.URL), c[0], c[1]); err != nil {
			t.Error(err)
		}
	}
	if got := strings.Join(seen, " "); got != "bytes=2-4|identity |gzip, deflate, br bytes=7-|identity |gzip, deflate, br bytes=5-5|identity |gzip, deflate, br" {
		t.Errorf("the server was asked %s", got)
	}
	for _, c := range [][2]int64{{-1, 5}, {0, -2}} {
		_, err := f.GetRange(t.Context(), parse(t, s.URL), c[0], c[1])
		fails(t, fmt.Sprint(c), err, fault.InvalidParameter)
	}
}

func TestRangeErrors(t *testing.T) {
	for _, c := range []struct {
		ranged, plain int
		code          fault.Code
		status        int
		rng           RangeStatus
		requests      int32
	}{
		{404, 200, fault.HTTPStatus, 404, "", 1},
		{401, 200, fault.HTTPStatus, 401, "", 1},
		{403, 200, fault.HTTPStatus, 403, "", 1},
		{410, 200, fault.HTTPStatus, 410, "", 1},
		{429, 200, fault.HTTPStatus, 429, "", 1},
		{500, 503, fault.HTTPStatus, 503, "", 2},
		{400, 404, fault.HTTPStatus, 404, "", 2},
		{416, 500, fault.HTTPRange, 416, RangeNotSupported, 2},
		{416, 416, fault.HTTPRange, 416, RangeNotSupported, 2},
		{206, 404, fault.HTTPStatus, 404, "", 2}, // a 206 of no use
		{206, 206, fault.HTTPRequestFailed, 206, "", 2},
	} {
		s, hits := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(map[bool]int{true: c.ranged, false: c.plain}[r.Header.Get("Range") != ""])
			io.WriteString(w, digits)
		})
		_, err := fetcher(t, Settings{}).GetRange(t.Context(), parse(t, s.URL+"/?q=secret"), 2, 3)
		what := fmt.Sprintf("%d, then %d", c.ranged, c.plain)
		fails(t, what, err, c.code, s.URL, fmt.Sprint(c.status))
		if StatusOf(err) != c.status || RangeOf(err) != c.rng || hits.Load() != c.requests || strings.Contains(fmt.Sprint(err), "secret") {
			t.Errorf("%s: %v, StatusOf = %d, RangeOf = %q after %d requests", what, err, StatusOf(err), RangeOf(err), hits.Load())
		}
	}

	// A 416 after which the connection fails, and one after which the limit does.
	var n atomic.Int32
	u := raw(t, func(c net.Conn) {
		if n.Add(1) == 1 {
			io.WriteString(c, "HTTP/1.1 416 Nope\r\nConnection: close\r\n\r\n")
		}
	})
	_, err := fetcher(t, Settings{}).GetRange(t.Context(), parse(t, u), 2, 3)
	fails(t, "416, then nothing", err, fault.HTTPRange, "416", "could not be read")
}

func TestCancelledInTheSecondAttempt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var n atomic.Int32
	u := raw(t, func(c net.Conn) {
		if n.Add(1) == 1 {
			io.WriteString(c, "HTTP/1.1 416 Nope\r\nConnection: close\r\n\r\n")
			return
		}
		cancel()
		io.Copy(io.Discard, c)
	})
	if _, err := fetcher(t, Settings{}).GetRange(ctx, parse(t, u), 2, 3); err != context.Canceled || n.Load() != 2 {
		t.Errorf("%v after %d requests, want %v after 2", err, n.Load(), context.Canceled)
	}
}

func TestRangesAndTheLimit(t *testing.T) {
	big := bytes.Repeat([]byte(digits), 3*testLimit/10+1)
	ranges := true
	s, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if !ranges {
			r.Header.Del("Range")
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(big))
	})
	u := parse(t, s.URL)
	f := fetcher(t, Settings{})
	size := int64(len(big))
	for _, c := range [][2]int64{{2 * testLimit, testLimit}, {size - 100, -1}, {0, testLimit}} {
		doc, err := f.GetRange(t.Context(), u, c[0], c[1])
		end := size
		if c[1] > 0 {
			end = c[0] + c[1]
		}
		if err != nil || !bytes.Equal(doc.Body, big[c[0]:end]) || doc.Range != RangeNative {
			t.Errorf("native %d: %v", c, err)
		}
	}
	for _, c := range [][2]int64{{0, -1}, {100, testLimit + 1}} {
		_, err := f.GetRange(t.Context(), u, c[0], c[1])
		fails(t, fmt.Sprint("native ", c), err, fault.LimitExceeded, "CONDUIT_MAX_URL_DOWNLOAD_BYTES", "smaller length")
	}

	ranges = false // everything up to the end of the part counts
	for _, c := range [][2]int64{{0, testLimit}, {testLimit - 100, 100}, {1000, 1000}} {
		doc, err := f.GetRange(t.Context(), u, c[0], c[1])
		if err != nil || !bytes.Equal(doc.Body, big[c[0]:c[0]+c[1]]) || doc.Range != RangeSimulated {
			t.Errorf("simulated %d: %v", c, err)
		}
	}
	for _, c := range [][2]int64{{0, -1}, {testLimit, 1}, {testLimit - 100, 101}, {size + 5, 1}} {
		_, err := f.GetRange(t.Context(), u, c[0], c[1])
		fails(t, fmt.Sprint("simulated ", c), err, fault.LimitExceeded, "CONDUIT_MAX_URL_DOWNLOAD_BYTES", "sends no ranges")
	}
}

func FuzzContentRange(f *testing.F) {
	for _, s := range []string{"bytes 0-4/10", "bytes 0-4/*", "bytes */10", "bytes 0-9223372036854775807/*", "bytes 5-1/2", "bytes 9223372036854775806-9223372036854775807/*", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		first, last, total, ok := parseContentRange(s)
		if ok && (first < 0 || last < first || last-first+1 <= 0 || total >= 0 && last >= total || total < -1) {
			t.Errorf("parseContentRange(%q) = %d, %d, %d", s, first, last, total)
		}
	})
}

func TestGetRangeGoesOnInACopy(t *testing.T) {
	var hits atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		io.WriteString(w, "0123456789")
	}))
	defer s.Close()
	f := New(&http.Client{}, 1000, time.Now)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Get(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		offset, length int64
		want           string
	}{{3, 4, "3456"}, {3, -1, "3456789"}, {8, 20, "89"}, {10, 1, ""}, {50, -1, ""}, {5, 0, ""}} {
		d, err := f.GetRange(t.Context(), u, c.offset, c.length)
		if err != nil || string(d.Body) != c.want || d.Range != RangeSimulated || d.Status != http.StatusOK {
			t.Errorf("%d bytes from %d: %+v, %v", c.length, c.offset, d, err)
		}
	}
	if n := hits.Load(); n != 1 {
		t.Errorf("%d requests", n)
	}
	if d, err := f.GetRange(t.Context(), u, 0, 4); err != nil || string(d.Body) != "0123" || hits.Load() != 2 {
		t.Errorf("from the start: %+v, %v after %d requests", d, err, hits.Load())
	}
}

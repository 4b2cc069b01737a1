package metadata

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/optest"
)

func TestURL(t *testing.T) {
	var methods []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		methods = append(methods, r.Method+" "+r.URL.Path)
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/a/caf%C3%A9.pdf?x=1", http.StatusFound)
		case "/get-only":
			if r.Method == http.MethodHead {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			w.Header().Set("Content-Type", "Text/HTML; charset=utf-8")
			fmt.Fprint(w, "hello")
		case "/gone":
			w.WriteHeader(http.StatusGone)
		default:
			w.Header().Set("Content-Type", "application/pdf")
			w.Header().Set("Content-Length", "1234")
			w.Header().Set("Last-Modified", "Sun, 01 Mar 2026 10:00:00 GMT")
			w.Header().Set("Date", "Sun, 01 Mar 2026 11:00:00 GMT")
			w.Header().Add("X-Two", "a")
			w.Header().Add("X-Two", "b")
		}
	}))
	defer s.Close()
	b := optest.New(t, registry.New(desc, build), nil)
	ask := func(path string) string {
		return strings.ReplaceAll(b.Text(t, fmt.Sprintf(`{"sources": [%q]}`, s.URL+path)), s.URL, "SITE")
	}
	const headers = `"http_headers":{"content-length":"1234","content-type":"application/pdf","date":"Sun, 01 Mar 2026 11:00:00 GMT","last-modified":"Sun, 01 Mar 2026 10:00:00 GMT","x-two":"a, b"}`
	for path, want := range map[string]string{
		"/a/caf%C3%A9.pdf": `[{"source":"SITE/a/caf%C3%A9.pdf","source_type":"url","status":"success","http_status_code":200,"metadata":{"name":"café.pdf","entry_type":"url","size_bytes":1234,"mime_type":"application/pdf","modified_at_iso":"2026-03-01T10:00:00.000Z",` + headers + `}}]`,
		"/moved":           `[{"source":"SITE/moved","source_type":"url","status":"success","http_status_code":200,"metadata":{"name":"moved","entry_type":"url","size_bytes":1234,"mime_type":"application/pdf","modified_at_iso":"2026-03-01T10:00:00.000Z",` + headers + `,"final_url":"SITE/a/caf%C3%A9.pdf?x=1"}}]`,
		"/gone":            `[{"source":"SITE/gone","source_type":"url","status":"error","error_code":"ERR_HTTP_STATUS_ERROR","error_message":"`,
	} {
		if got := ask(path); !strings.HasPrefix(got, want) || path == "/gone" && !strings.HasSuffix(got, `","http_status_code":410}]`) {
			t.Errorf("%s:\ngot  %s\nwant %s", path, got, want)
		}
	}
	methods = nil
	got := ask("/get-only")
	if !strings.Contains(got, `"mime_type":"text/html"`) || !strings.Contains(got, `"content-type":"Text/HTML; charset=utf-8"`) || strings.Join(methods, ", ") != "HEAD /get-only, GET /get-only" {
		t.Errorf("%s by %v", got, methods)
	}
	var list []struct{ Metadata metadata }
	if err := json.Unmarshal([]byte(ask("")), &list); err != nil || len(list) != 1 || list[0].Metadata.Name != strings.TrimPrefix(s.URL, "http://") {
		t.Errorf("the name of a URL without a path: %+v, %v", list, err)
	}
	lean := b.Text(t, fmt.Sprintf(`{"sources": [%q], "view": "lean"}`, s.URL+"/moved"))
	if want := s.URL + "/moved: url, 1234 bytes, application/pdf, modified 2026-03-01T10:00:00.000Z, redirected to " + s.URL + "/a/caf%C3%A9.pdf?x=1"; lean != want {
		t.Errorf("lean:\n%s\nwant\n%s", lean, want)
	}
}

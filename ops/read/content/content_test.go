package content

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/body"
	"github.com/conduit-mcp/conduit-mcp/internal/etag"
	"github.com/conduit-mcp/conduit-mcp/internal/fetch"
	"github.com/conduit-mcp/conduit-mcp/internal/roots"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// A desk runs calls in a directory of its own and keeps their typed results.
type desk struct {
	dir   string
	op    *registry.Op
	roots *roots.Roots
	env   map[string]string

	handle registry.Handler
}

func newDesk(t testing.TB, files map[string]string, env map[string]string) *desk {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, _, err := roots.New(roots.Config{Allowed: []string{dir}, Project: dir})
	if err != nil {
		t.Fatal(err)
	}
	return &desk{dir: dir, op: registry.New(desc, build), roots: r, env: env}
}

func (d *desk) call(ctx context.Context, args string) (results, error) {
	in, err := d.op.Decode(json.RawMessage(args))
	if err != nil {
		return nil, err
	}
	registry.Paths(in, func(p *registry.Path) { p.Vet(d.roots.Resolve) })
	lookup := func(key string) (string, bool) { v, ok := d.env[key]; return v, ok }
	urls, err := registry.LoadSettings[fetch.Settings](lookup)
	if err != nil {
		return nil, err
	}
	web, err := fetch.NewClient(urls)
	if err != nil {
		return nil, err
	}
	if d.handle == nil {
		d.handle, err = d.op.Bind(&registry.Env{Lookup: lookup, HTTP: web, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	}
	if err != nil {
		return nil, err
	}
	a, err := d.handle(ctx, &registry.Call{Op: d.op, Input: in})
	list, _ := a.Value.(results)
	return list, err
}

// one runs a call of a single source that must not fail as a whole.
func (d *desk) one(t testing.TB, args string) result {
	t.Helper()
	list, err := d.call(t.Context(), args)
	if err != nil || len(list) != 1 {
		t.Fatalf("%s: %d results, %v", args, len(list), err)
	}
	return list[0]
}

// etagOf is the etag of r, "" without one, once its content is written.
func etagOf(t testing.TB, r result) string {
	t.Helper()
	if r.Content != nil {
		if _, err := r.Content.WriteTo(io.Discard); err != nil {
			t.Fatal(err)
		}
	}
	if r.ETag == nil {
		return ""
	}
	return r.ETag.String()
}

func TestLargeTextStreams(t *testing.T) {
	content := strings.Repeat("a line of text\n", 40_000)
	d := newDesk(t, map[string]string{"a.txt": content, "broken.txt": content + "\xff"}, nil)
	r := d.one(t, `{"sources": ["a.txt"]}`)
	if r.body() == nil {
		t.Fatal("the content is held in memory")
	}
	if *r.Size != int64(len(content)) || r.Content.String() != content || r.ETag == nil || r.Lossy || r.Status != "success" {
		t.Errorf("size %d, etag %q, lossy %t, %s", *r.Size, r.ETag, r.Lossy, r.Status)
	}
	if err := r.body().Close(); err != nil {
		t.Errorf("Close: %v; the file must be open until then", err)
	}
	r = d.one(t, `{"sources": ["broken.txt"], "line_numbers": true}`)
	if text := r.Content.String(); !r.Lossy || !strings.HasSuffix(text, "\n40001\t\uFFFD") || *r.Size != int64(len(text)) {
		t.Errorf("lossy %t, size %d, ends in %q", r.Lossy, *r.Size, text[len(text)-20:])
	}
	r.body().Close()
	r = d.one(t, `{"sources": ["a.txt"], "offset": 1}`)
	if r.body() == nil || r.Content.String() != content[1:] || r.ETag != nil {
		t.Errorf("from the second byte: %d bytes, etag %q, want none", *r.Size, etagOf(t, r))
	}
	r.body().Close()
	r = d.one(t, `{"sources": ["a.txt"], "start_line": -1}`)
	if r.body() != nil || r.Content.String() != "a line of text\n" {
		t.Errorf("a short part of a long file: streamed %t, %q", r.body() != nil, r.Content)
	}
}

func TestLargeBinaryStreams(t *testing.T) {
	content := "\x00\x01\x02" + strings.Repeat("\xff\x00", 300_000)
	d := newDesk(t, map[string]string{"a.bin": content}, nil)
	for args, want := range map[string]string{
		`{"sources": ["a.bin"]}`:                                     content,
		`{"sources": ["a.bin"], "offset": 2, "length": 500000}`:      content[2:500_002],
		`{"sources": ["a.bin"], "offset": 600000, "length": 500000}`: content[600_000:],
	} {
		r := d.one(t, args)
		if got := r.Content.String(); got != base64.StdEncoding.EncodeToString([]byte(want)) || *r.Size != int64(len(got)) || r.Format != "base64" {
			t.Errorf("%s: %d characters as %s, size %d", args, len(got), r.Format, *r.Size)
		}
		if whole := want == content; whole != (r.ETag != nil) {
			t.Errorf("%s: etag %q", args, etagOf(t, r))
		}
		if b := r.body(); b != nil {
			b.Close()
		}
	}
}

// The etag says what a file holds, however it was read.
func TestETagIsThatOfTheFile(t *testing.T) {
	content := strings.Repeat("0123456789\n", 50_000)
	d := newDesk(t, map[string]string{"a.txt": content}, nil)
	want := etagOf(t, d.one(t, `{"sources": ["a.txt"]}`))
	if len(want) != 22 {
		t.Fatalf("etag %q, want 22 characters", want)
	}
	for _, args := range []string{
		`{"sources": ["a.txt"], "format": "base64"}`,
		`{"sources": ["a.txt"], "format": "checksum", "checksum_algorithm": "md5"}`,
		`{"sources": ["a.txt"], "format": "checksum"}`,
		`{"sources": ["a.txt"], "line_numbers": true}`,
		`{"sources": ["a.txt"], "length": 3, "etag": true}`,
		`{"sources": ["a.txt"], "length": 0, "format": "base64", "etag": true}`,
		`{"sources": ["a.txt"], "max_chars": 5, "etag": true}`,
	} {
		if got := etagOf(t, d.one(t, args)); got != want {
			t.Errorf("%s: etag %q, want %q", args, got, want)
		}
	}
}

// The etag of large content is that of the bytes that were written with it.
func TestETagComesWithTheContent(t *testing.T) {
	before, after := strings.Repeat("\x00before", 100_000), strings.Repeat("\x00after!", 100_000)
	d := newDesk(t, map[string]string{"a.bin": before}, nil)
	name := filepath.Join(d.dir, "a.bin")
	r := d.one(t, `{"sources": ["a.bin"]}`)
	defer r.body().Close()
	if got := r.ETag.String(); got != "" {
		t.Errorf("etag %q of content that nobody has read", got)
	}
	for _, content := range []string{before, after} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256([]byte(content))
		if got, want := etagOf(t, r), etag.Of(sum[:]); got != want {
			t.Errorf("etag %q, want %q", got, want)
		}
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(after))
	if want := `"etag":"` + etag.Of(sum[:]) + `"}`; !strings.HasSuffix(string(text), want) {
		t.Errorf("the result ends in %s, want %s", text[len(text)-100:], want)
	}
	if b := r.ETag.Body(); b.Size() != int64(len(r.ETag.String())) || b.EscapedSize(2) != b.Size() {
		t.Errorf("sizes %d and %d of %q", b.Size(), b.EscapedSize(2), r.ETag)
	}

	if err := os.Truncate(name, 300_000); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Content.WriteTo(io.Discard); err == nil {
		t.Error("a file that shrank was written whole")
	}
	if got, err := r.ETag.MarshalText(); err != nil || len(got) > 0 {
		t.Errorf("of content that failed: etag %q, %v", got, err)
	}
}

// In a message, as it is written: a content that fails is the error of its own
// item, which then has no etag, and of no other.
func TestETagInAMessage(t *testing.T) {
	content := strings.Repeat("\x00", 900_000)
	d := newDesk(t, map[string]string{"a.bin": content, "b.bin": content}, nil)
	list, err := d.call(t.Context(), `{"sources": ["a.bin", "b.bin"]}`)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(d.dir, "a.bin"), 300_000); err != nil {
		t.Fatal(err)
	}
	store := body.NewStore()
	registry.Texts(list, func(text *registry.Text) { text.SetToken(store.Put(text.Body()).Plain()) })
	line, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := store.Expand(&b, line); !errors.As(err, new(*body.Failure)) {
		t.Errorf("err = %v, want that of a.bin", err)
	}
	var got []struct {
		Source, Content, Status string
		Code                    fault.Code `json:"error_code"`
		ETag                    *string
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || len(got) != 2 || got[0].ETag == nil || got[1].ETag == nil {
		t.Fatalf("%v: %.300q", err, b.String())
	}
	if r := got[0]; r.Source != "a.bin" || r.Code != fault.FSReadFailed || *r.ETag != "" {
		t.Errorf("%s: %s %s, etag %q", r.Source, r.Status, r.Code, *r.ETag)
	}
	sum := sha256.Sum256([]byte(content))
	if r := got[1]; r.Source != "b.bin" || r.Status != "success" || *r.ETag != etag.Of(sum[:]) || r.Content != base64.StdEncoding.EncodeToString([]byte(content)) {
		t.Errorf("%s: %s %s, etag %q", r.Source, r.Status, r.Code, *r.ETag)
	}
}

// An etag stands for a file, which a large member of an archive is not.
func TestLargeMemberHasNoETag(t *testing.T) {
	content := strings.Repeat("\x00\xff", 200_000)
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create("a.bin")
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(w, content)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	d := newDesk(t, map[string]string{"a.zip": b.String()}, nil)
	r := d.one(t, `{"sources": ["a.zip!/a.bin"]}`)
	if r.Content.String() != base64.StdEncoding.EncodeToString([]byte(content)) || r.ETag != nil {
		t.Errorf("%s, size %d, etag %q", r.Status, *r.Size, etagOf(t, r))
	}
}

// Whoever does not show the etag closes it, which spares its computation.
func TestETagThatIsNotShown(t *testing.T) {
	d := newDesk(t, map[string]string{"a.bin": strings.Repeat("\x00", 300_000)}, nil)
	r := d.one(t, `{"sources": ["a.bin"]}`)
	defer r.body().Close()
	r.ETag.Body().Close()
	if got := etagOf(t, r); got != "" {
		t.Errorf("etag %q", got)
	}
}

func TestFileThatShrinksUnderWay(t *testing.T) {
	content := strings.Repeat("a line of text\n", 40_000)
	d := newDesk(t, map[string]string{"a.txt": content}, nil)
	r := d.one(t, `{"sources": ["a.txt"]}`)
	defer r.body().Close()
	if err := os.Truncate(filepath.Join(d.dir, "a.txt"), 300_000); err != nil {
		t.Fatal(err)
	}
	n, err := r.Content.WriteTo(io.Discard)
	if code, message := fault.Of(err); code != fault.FSReadFailed || !strings.HasPrefix(message, "a.txt changed") || n > *r.Size {
		t.Errorf("%d bytes, then %s %q", n, code, message)
	}
}

// A file replaced by another one leaves a text under way as it was.
func TestFileThatIsReplacedUnderWay(t *testing.T) {
	content := strings.Repeat("a line of text\n", 40_000)
	d := newDesk(t, map[string]string{"a.txt": content, "b.txt": "other"}, nil)
	r := d.one(t, `{"sources": ["a.txt"]}`)
	defer r.body().Close()
	if err := os.Rename(filepath.Join(d.dir, "b.txt"), filepath.Join(d.dir, "a.txt")); err != nil {
		t.Fatal(err)
	}
	if r.Content.String() != content {
		t.Error("the text is not the one that was measured")
	}
}

func TestManySources(t *testing.T) {
	files := map[string]string{}
	var names, wants []string
	for i := range 200 {
		name := fmt.Sprintf("%03d.txt", i)
		files[name] = strings.Repeat(name, i)
		names, wants = append(names, name), append(wants, files[name])
	}
	d := newDesk(t, files, nil)
	args, err := json.Marshal(map[string]any{"sources": append(names, "missing")})
	if err != nil {
		t.Fatal(err)
	}
	list, err := d.call(t.Context(), string(args))
	if err != nil || len(list) != 201 {
		t.Fatalf("%d results, %v", len(list), err)
	}
	for i, want := range wants {
		if r := list[i]; r.Source != names[i] || r.Status != "success" || r.Content.String() != want {
			t.Errorf("result %d is of %s, %s", i, r.Source, r.Status)
		}
	}
	if r := list[200]; r.Source != "missing" || r.SourceType != "file" || r.ErrorCode != fault.FSNotFound {
		t.Errorf("the missing file: %s %s", r.Source, r.ErrorCode)
	}
}

func TestShed(t *testing.T) {
	d := newDesk(t, map[string]string{"a.txt": "text"}, nil)
	r := d.one(t, `{"sources": ["a.txt"]}`)
	r.Trim(fault.New(fault.LimitExceeded, "too large"))
	got, err := json.Marshal(r)
	want := `{"source":"a.txt","source_type":"file","status":"error","error_code":"ERR_RESOURCE_LIMIT_EXCEEDED","error_message":"too large"}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v\nwant %s", got, err, want)
	}
}

// The status follows the content, whose failure under way it must tell.
func TestStatusFollowsContent(t *testing.T) {
	d := newDesk(t, map[string]string{"a.txt": "text"}, nil)
	got, err := json.Marshal(d.one(t, `{"sources": ["a.txt"]}`))
	if err != nil {
		t.Fatal(err)
	}
	if c, s := bytes.Index(got, []byte(`"content":`)), bytes.Index(got, []byte(`"status":`)); c < 0 || s < c {
		t.Errorf("%s", got)
	}
}

func TestLeanView(t *testing.T) {
	d := newDesk(t, map[string]string{"a.txt": "one\ntwo\n", "b.txt": "no end", "c.bin": "\x00\x01"}, nil)
	for args, want := range map[string]string{
		`{"sources": ["a.txt"]}`:                                        "one\ntwo\n",
		`{"sources": ["c.bin"]}`:                                        "AAE=",
		`{"sources": ["a.txt"], "max_chars": 5}`:                        "one\n[truncated: go on with offset 4 of 8]",
		`{"sources": ["b.txt"], "format": "checksum"}`:                  "c1d16127cad537c209c827bed8db2fd11ab51476ffba289ab9269bb52c076354",
		`{"sources": ["a.txt", "b.txt", "gone", "c.bin"], "length": 1}`: "==> a.txt <==\no\n==> b.txt <==\nn\n==> gone <==\nERR_FS_NOT_FOUND: no such file or directory: " + d.dir + "/gone\n==> c.bin <==\nAA==",
	} {
		list, err := d.call(t.Context(), args)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := list.Lean(&b); err != nil || b.String() != want {
			t.Errorf("%s: %v\ngot  %q\nwant %q", args, err, b.String(), want)
		}
	}
}

func TestLeanViewKeepsTheWritersError(t *testing.T) {
	d := newDesk(t, map[string]string{"a.txt": "one\ntwo\n"}, nil)
	for _, args := range []string{`{"sources": ["a.txt"]}`, `{"sources": ["gone"]}`, `{"sources": ["a.txt", "a.txt"]}`} {
		list, err := d.call(t.Context(), args)
		if err != nil {
			t.Fatal(err)
		}
		gone := errors.New("gone")
		r, w := io.Pipe()
		r.CloseWithError(gone)
		if err := list.Lean(w); !errors.Is(err, gone) {
			t.Errorf("%s: %v, want that of the writer", args, err)
		}
	}
}

func TestBadSettings(t *testing.T) {
	for key, value := range map[string]string{"CONDUIT_MAX_FILE_READ_BYTES": "0", "CONDUIT_DEFAULT_CHECKSUM_ALGORITHM": "crc32"} {
		d := newDesk(t, nil, map[string]string{key: value})
		_, err := d.call(t.Context(), `{"sources": ["a"]}`)
		if code, message := fault.Of(err); code != fault.ConfigInvalid || !strings.Contains(message, key) {
			t.Errorf("%s=%s: %s %s", key, value, code, message)
		}
	}
}

// big makes a binary file of so many MiB.
func big(t testing.TB, dir string, mib int) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "big"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, 1<<20)
	for range mib {
		if _, err := f.Write(block); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMemoryDoesNotGrowWithTheFile(t *testing.T) {
	const allowed = 8 << 20
	d := newDesk(t, nil, nil)
	big(t, d.dir, 50)
	for _, args := range []string{
		`{"sources": ["big"], "format": "checksum"}`,
		`{"sources": ["big"], "format": "base64"}`,
		`{"sources": ["big"], "format": "base64", "offset": 50000000, "length": 10, "etag": true}`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := d.one(t, args)
		if r.Content != nil {
			if _, err := r.Content.WriteTo(io.Discard); err != nil {
				t.Fatal(err)
			}
		}
		runtime.ReadMemStats(&after)
		if b := r.body(); b != nil {
			b.Close()
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > allowed || r.Status != "success" {
			t.Errorf("%s: %s, %d bytes were allocated, want at most %d", args, r.Status, n, allowed)
		}
	}
}

func BenchmarkReadSmall(b *testing.B) {
	d := newDesk(b, map[string]string{"a.go": strings.Repeat("package content // a line of text\n", 100)}, nil)
	b.ReportAllocs()
	for b.Loop() {
		d.one(b, `{"sources": ["a.go"]}`)
	}
}

func BenchmarkRead200Small(b *testing.B) {
	files := map[string]string{}
	var names []string
	for i := range 200 {
		name := fmt.Sprintf("%03d.go", i)
		files[name] = strings.Repeat("package content // a line of text\n", 100)
		names = append(names, name)
	}
	d := newDesk(b, files, nil)
	args, err := json.Marshal(map[string]any{"sources": names})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("op", func(b *testing.B) {
		for b.Loop() {
			if _, err := d.call(b.Context(), string(args)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("os.ReadFile", func(b *testing.B) {
		for b.Loop() {
			for _, name := range names {
				if _, err := os.ReadFile(filepath.Join(d.dir, name)); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

func BenchmarkChecksum200MB(b *testing.B) {
	d := newDesk(b, nil, nil)
	big(b, d.dir, 200)
	b.SetBytes(200 << 20)
	for b.Loop() {
		d.one(b, `{"sources": ["big"], "format": "checksum"}`)
	}
}

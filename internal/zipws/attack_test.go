package zipws

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/zipfile"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// refused fails the test unless opening raw is refused, leaving nothing.
func refused(t *testing.T, s *scratch, raw []byte, code fault.Code) {
	t.Helper()
	s.put("evil.zip", raw)
	for _, lazy := range []bool{false, true} {
		_, err := s.Open(t.Context(), s.at("evil.zip"), OpenOptions{Lazy: lazy})
		if got, message := Of(err); err == nil || code != "" && got != code {
			t.Errorf("lazy %v: %s, %s; want %s", lazy, got, message, code)
		}
	}
	for _, dir := range []string{workspacesDir, locksDir} {
		list, err := os.ReadDir(filepath.Join(s.Data, dir))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		for _, e := range list {
			if e.Name() != allLock {
				t.Errorf("%s is left", e.Name())
			}
		}
	}
}

func TestUnsafeNames(t *testing.T) {
	s := newScratch(t)
	for name, code := range map[string]fault.Code{
		"../evil": PathTraversal, "a/../../evil": PathTraversal, "/etc/evil": PathTraversal, `..\evil`: PathTraversal, "C:/evil": PathTraversal, "..": PathTraversal,
		`a\..\b`: ZipInvalid, "a\x00b": ZipInvalid, "a/..": ZipInvalid, strings.Repeat("x", 300): ZipInvalid, strings.Repeat("a/", 1200) + "f": ZipInvalid,
	} {
		t.Run(fmt.Sprintf("%.20q", name), func(t *testing.T) {
			refused(t, s, zipOf(t, "", file{name: "good", content: "good"}, file{name: name, content: "evil"}), code)
		})
	}
	if list := entriesOf(t, filepath.Dir(s.dir)); len(list) != 1 {
		t.Errorf("%v", list)
	}
}

func TestUnsafeArchives(t *testing.T) {
	good := zipOf(t, "", file{name: "one", content: strings.Repeat("one\n", 50)}, file{name: "two", content: strings.Repeat("two\n", 50)})
	change := func(f func(raw []byte, first, end int)) []byte {
		raw := bytes.Clone(good)
		f(raw, bytes.Index(raw, []byte("PK\x01\x02")), bytes.LastIndex(raw, []byte("PK\x05\x06")))
		return raw
	}
	link := func(h *zip.FileHeader) { h.SetMode(os.ModeSymlink | 0o777) }
	for name, c := range map[string]struct {
		raw  []byte
		code fault.Code
	}{
		"a file inside a file": {zipOf(t, "", file{name: "a", content: "a"}, file{name: "a/b", content: "b"}), ZipInvalid},
		"a file inside a link": {zipOf(t, "", file{"a", "/etc", link}, file{name: "a/b", content: "b"}), ZipInvalid},
		"a device":             {zipOf(t, "", file{"dev", "", func(h *zip.FileHeader) { h.SetMode(os.ModeDevice | 0o600) }}), ZipInvalid},
		"a FIFO":               {zipOf(t, "", file{"fifo", "", func(h *zip.FileHeader) { h.SetMode(os.ModeNamedPipe | 0o600) }}), ZipInvalid},
		"an encrypted entry":   {change(func(raw []byte, first, _ int) { raw[first+8] |= zipfile.FlagEncrypted }), Encrypted},
		"entries that overlap": {change(func(raw []byte, first, _ int) {
			second := first + 46 + 3 + 9
			copy(raw[second+42:second+46], raw[first+42:first+46])
		}), ZipInvalid},
		"an entry behind the end":    {change(func(raw []byte, first, _ int) { raw[first+45] = 0x7f }), ZipInvalid},
		"one of several disks":       {change(func(raw []byte, _, end int) { raw[end+4] = 1 }), ZipInvalid},
		"fewer entries than it says": {change(func(raw []byte, _, end int) { raw[end+8], raw[end+10] = 9, 9 }), ZipInvalid},
		"a bomb by its own account":  {zipOf(t, "", file{name: "zeros", content: strings.Repeat("\x00", 4<<20)}), ZipBomb},
		"nothing":                    {nil, ZipInvalid},
		"no zip":                     {[]byte("PK\x03\x04 is all it has"), ZipInvalid},
	} {
		t.Run(name, func(t *testing.T) { refused(t, newScratch(t), c.raw, c.code) })
	}
}

// What only the content tells is found when that is read.
func TestUnsafeContent(t *testing.T) {
	good := zipOf(t, "", file{name: "one", content: strings.Repeat("one\n", 50)}, file{name: "two", content: strings.Repeat("two\n", 50)})
	for name, c := range map[string]struct {
		change func(raw []byte, first int)
		code   fault.Code
	}{
		"larger than it says":  {func(raw []byte, first int) { raw[first+24] = 10 }, ZipBomb},
		"smaller than it says": {func(raw []byte, first int) { raw[first+24] = 250 }, ZipInvalid},
		"another checksum":     {func(raw []byte, first int) { raw[first+16] ^= 1 }, ZipInvalid},
		"another name inside":  {func(raw []byte, _ int) { raw[30] = 'x' }, ZipInvalid},
		"another method":       {func(raw []byte, first int) { raw[first+10] = 97 }, UnsupportedFormat},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScratch(t)
			raw := bytes.Clone(good)
			c.change(raw, bytes.Index(raw, []byte("PK\x01\x02")))
			s.put("a.zip", raw)
			_, err := s.Open(t.Context(), s.at("a.zip"), OpenOptions{})
			wantCode(t, err, c.code)
			if list := entriesOf(t, filepath.Join(s.Data, workspacesDir)); len(list) != 0 {
				t.Errorf("%v is left", list)
			}
			s.open("a.zip", OpenOptions{Lazy: true})
			_, err = s.Read(t.Context(), "", "one", 0, -1, io.Discard)
			wantCode(t, err, c.code)
			if have := s.read("two"); !strings.HasPrefix(have, "two") {
				t.Errorf("two is %q", have)
			}
			_, err = s.Path(t.Context(), "", nil)
			wantCode(t, err, c.code)
			// A sync copies what it does not read, as it is.
			s.write("new", "new")
			if _, err := s.Sync(t.Context(), "", SyncOptions{}); err != nil {
				t.Fatal(err)
			}
			if !bytes.HasPrefix(s.get("a.zip"), raw[:bytes.Index(raw, []byte("PK\x01\x02"))]) {
				t.Error("untouched bytes have changed")
			}
		})
	}
}

// No start of an archive, and none with a byte changed in its directory, does
// any harm.
func TestDamagedAnywhere(t *testing.T) {
	good := odd(t)
	s := newScratch(t)
	for n := range good {
		if d, err := readDirectory(bytes.NewReader(good[:n]), int64(n)); err == nil && len(d.Entries) > 0 {
			t.Errorf("%d bytes of %d are accepted", n, len(good))
		}
	}
	start := len(good) - len(parsed(t, good).Raw)
	for i := start; i < len(good); i++ {
		for _, b := range []byte{0, 1, 0x7f, 0xff} {
			raw := bytes.Clone(good)
			raw[i] = b
			d, err := readDirectory(bytes.NewReader(raw), int64(len(raw)))
			if err != nil {
				continue
			}
			if _, err := check(d, s.Settings, sizeSetting); err != nil {
				continue
			}
			for j := range d.Entries {
				if r, err := d.Entries[j].Open(bytes.NewReader(raw)); err == nil {
					io.Copy(io.Discard, r)
					r.Close()
				}
			}
		}
	}
}

func TestLinksOfArchives(t *testing.T) {
	link := func(h *zip.FileHeader) { h.SetMode(os.ModeSymlink | 0o777) }
	for name, c := range map[string]struct {
		files []file
		ok    bool
	}{
		"inside":                 {[]file{{name: "d/a", content: "a"}, {"d/l", "a", link}, {"l", "d/../d/a", link}}, true},
		"outside":                {[]file{{"l", "../../x", link}}, false},
		"absolute":               {[]file{{"l", "/etc/passwd", link}}, false},
		"outside by way of link": {[]file{{name: "d/e/f", content: "f"}, {"x", "d/e", link}, {"l", "x/../../..", link}}, false},
		"up behind a link":       {[]file{{name: "d/e/f", content: "f"}, {"x", "d/e", link}, {"l", "x/../f", link}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScratch(t)
			s.Links = true
			raw := zipOf(t, "", c.files...)
			s.put("a.zip", raw)
			_, err := s.Open(t.Context(), s.at("a.zip"), OpenOptions{})
			if !c.ok {
				wantCode(t, err, ZipInvalid, "symbolic link")
				return
			}
			s.must(err)
			if have := s.read("l"); have != "a" {
				t.Errorf("%q", have)
			}
			s.write("new", "new")
			if _, err := s.Sync(t.Context(), "", SyncOptions{}); err != nil {
				t.Fatal(err)
			}
			now := parsed(t, s.get("a.zip"))
			if e := now.Entries[now.Index()["l"]]; !e.IsLink() {
				t.Errorf("the link is %v", e.Mode)
			}
		})
	}
}

// Links that somebody makes in a workspace lead nowhere outside, and never into
// an archive.
func TestLinksInWorkspaces(t *testing.T) {
	s := newScratch(t)
	s.put("a.zip", odd(t))
	o := s.open("a.zip", OpenOptions{})
	secret := filepath.Join(filepath.Dir(s.dir), "secret")
	s.must(os.WriteFile(secret, []byte("what lies outside"), 0o600))
	s.must(os.Symlink(secret, filepath.Join(o.Path, "out")))
	s.must(os.Symlink(filepath.Dir(secret), filepath.Join(o.Path, "outdir")))
	s.must(os.Remove(filepath.Join(o.Path, "text.txt")))
	s.must(os.Symlink(secret, filepath.Join(o.Path, "text.txt")))
	for _, name := range []Name{"out", "outdir/secret", "text.txt"} {
		_, err := s.Read(t.Context(), "", name, 0, -1, io.Discard)
		wantCode(t, err, PathTraversal)
	}
	wantCode(t, s.Write(t.Context(), "", "outdir/new", []byte("x"), true), PathTraversal)
	wantCode(t, s.Delete(t.Context(), "", "outdir/secret", false), PathTraversal)
	s.must(s.Delete(t.Context(), "", "outdir", true)) // the link itself
	r, err := s.Sync(t.Context(), "", SyncOptions{})
	s.must(err)
	if have := listing(t, s.path("a.zip")); strings.Contains(have, "outside") || strings.Contains(have, "out ") || len(r.Warnings) == 0 {
		t.Errorf("%s\n%v", have, r.Warnings)
	}
	if have, err := os.ReadFile(secret); err != nil || string(have) != "what lies outside" {
		t.Errorf("%q, %v", have, err)
	}
}

func TestPathsOfCallers(t *testing.T) {
	for path, want := range map[Name]string{"": ".", "/": ".", ".": ".", "a": "a", "/a/b/": "a/b", "a/../b": "b", "./a//b": "a/b"} {
		if got, err := path.clean(); err != nil || got != want {
			t.Errorf("%q is %q, %v; want %q", path, got, err, want)
		}
	}
	for _, path := range []Name{"..", "../a", "a/../../b", "/../a", `a\..\..\b`, "a\x00b"} {
		_, err := path.clean()
		wantCode(t, err, PathTraversal)
	}
}

func TestOtherFormatsKeepToTheLimits(t *testing.T) {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for i := range 3 {
		s := strings.Repeat("x", 1000)
		err := w.WriteHeader(&tar.Header{Name: fmt.Sprint("f", i), Mode: 0o644, Size: int64(len(s))})
		if err == nil {
			_, err = io.WriteString(w, s)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	s := newScratch(t)
	s.put("a.tgz", out.Bytes())
	_, err := s.Open(t.Context(), s.at("a.tgz"), OpenOptions{MaxSize: 2000})
	wantCode(t, err, ZipBomb)
	s.MaxFiles = 2
	_, err = s.Open(t.Context(), s.at("a.tgz"), OpenOptions{})
	wantCode(t, err, ZipBomb)
	s.MaxFiles = 3
	if o := s.open("a.tgz", OpenOptions{}); o.Files != 3 || o.Bytes != 3000 || !o.ReadOnly {
		t.Errorf("%+v", o)
	}
	if c, err := s.Workspaces.Close(t.Context(), "", CloseOptions{}); err != nil || !c.Closed {
		t.Errorf("%+v, %v", c, err)
	}
	s.leftovers()
}

func TestLocked(t *testing.T) {
	s := newScratch(t)
	s.put("a.zip", odd(t))
	s.open("a.zip", OpenOptions{})
	other, err := s.use(t.Context(), "a", false)
	s.must(err)
	s.Workspaces.wait = 20 * time.Millisecond
	_, err = s.Sync(t.Context(), "", SyncOptions{})
	wantCode(t, err, Locked)
	_, err = s.Workspaces.Close(t.Context(), "", CloseOptions{})
	wantCode(t, err, Locked)
	wantCode(t, s.Delete(t.Context(), "", "text.txt", false), Locked)
	if have := s.read("twice"); have != "the second" {
		t.Errorf("%q", have)
	}
	if p, err := s.Prune(t.Context(), PruneOptions{All: true}); err != nil || len(p.Pruned) != 0 || len(p.Skipped) != 1 {
		t.Errorf("%+v, %v", p, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Sync(ctx, "", SyncOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	other.close()
	other, err = s.use(t.Context(), "a", true)
	s.must(err)
	_, err = s.Read(t.Context(), "", "twice", 0, -1, io.Discard)
	wantCode(t, err, Locked)
	other.close()
	if _, err := s.Sync(t.Context(), "", SyncOptions{}); err != nil {
		t.Error(err)
	}
}

// A deaf host allows no archive.
type deaf struct{}

func (deaf) Resolve(string) (place.Place, error) {
	return place.Place{}, fault.New(fault.FSAccessDenied, "no")
}
func (deaf) Allow(string) error { return nil }
func (deaf) Revoke(string)      {}

// Sessions of archives that a server may not use are not there for it; those
// that it may use are accessible while they are open.
func TestHosts(t *testing.T) {
	s := newScratch(t)
	s.put("a.zip", odd(t))
	o := s.open("a.zip", OpenOptions{})
	if !s.host.allowed[o.Path] || len(s.host.allowed) != 1 {
		t.Errorf("allowed are %v", s.host.allowed)
	}
	other := New(Options{Settings: s.Settings, Data: s.Data, Host: deaf{}, Log: s.Log, Now: time.Now})
	if list, err := other.Sessions(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
	_, err := other.Read(t.Context(), o.ID, "twice", 0, -1, io.Discard)
	wantCode(t, err, SessionNotFound)
	if p, err := other.Prune(t.Context(), PruneOptions{All: true}); err != nil || len(p.Pruned) != 0 {
		t.Errorf("%+v, %v", p, err)
	}
	again := scratchIn(t, filepath.Dir(s.dir)) // as after a restart
	if !again.host.allowed[o.Path] {
		t.Error("a session that is open already is not accessible")
	}
	if _, err := again.Workspaces.Close(t.Context(), o.ID[:8], CloseOptions{}); err != nil {
		t.Fatal(err)
	}
	if len(again.host.allowed) != 0 {
		t.Errorf("still allowed are %v", again.host.allowed)
	}
	if _, err := s.Sessions(t.Context()); err != nil || len(s.host.allowed) != 0 {
		t.Errorf("%v, still allowed are %v", err, s.host.allowed)
	}
}

func TestOpenedWhileItChanges(t *testing.T) {
	s := newScratch(t)
	s.put("a.zip", odd(t))
	var once sync.Once
	s.Workspaces.step = func(step string) {
		if step == "write stamps" {
			once.Do(func() { s.put("a.zip", odd(t)) })
		}
	}
	_, err := s.Open(t.Context(), s.at("a.zip"), OpenOptions{})
	wantCode(t, err, ConflictDetected)
	s.leftovers()
}

func TestNames(t *testing.T) {
	for name, good := range map[string]bool{"q4-report": true, "A_1": true, "x": true, "abc": true, "face": false, "12345678-1234": false, "": false, "a b": false, "a/b": false, "..": false, strings.Repeat("x", 65): false} {
		if (badSessionName(name) == "") != good {
			t.Errorf("%q: %s", name, badSessionName(name))
		}
	}
	taken := func(n string) bool { return n == "report" }
	for path, want := range map[string]string{"/a/report.zip": "report-2", "/a/My File (1).tar.gz": "My-File--1", "/a/cafe.zip": "cafe-zip", "/a/.zip": "zip", "/a/äö.zip": "zip"} {
		if got := nameFor(path, taken); got != want || badSessionName(got) != "" {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	if id := newID(); !idPrefix(id) || id[14] != '4' {
		t.Error(id)
	}
}

func TestAges(t *testing.T) {
	for text, want := range map[string]time.Duration{"24h": 24 * time.Hour, "7d": 168 * time.Hour, "1d12h": 36 * time.Hour, "0.5d": 12 * time.Hour} {
		if got, err := ParseAge(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "d", "soon", "-1h", "0s", "1000000d", "NaNd"} {
		if got, err := ParseAge(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

func TestPruneByAge(t *testing.T) {
	s := newScratch(t)
	s.put("a.zip", odd(t))
	s.open("a.zip", OpenOptions{Name: "old"})
	s.open("a.zip", OpenOptions{Name: "new"})
	long := time.Now().Add(-80 * time.Hour)
	s.must(os.Chtimes(filepath.Join(s.Data, locksDir, "old"), long, long))
	p, err := s.Prune(t.Context(), PruneOptions{Stale: 48 * time.Hour})
	if err != nil || len(p.Pruned) != 1 || p.Pruned[0].Name != "old" || p.Pruned[0].Reason != "stale (3d)" || p.Freed == 0 {
		t.Errorf("%+v, %v", p, err)
	}
	s.leftovers()
}

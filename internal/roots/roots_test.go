package roots_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/roots"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// A world is a scratch tree: the allowed directories ok and two, and out, ok-evil
// beside them, which are not.
type world struct {
	*testing.T
	base string
	*roots.Roots
}

func newWorld(t *testing.T, change func(w *world, c *roots.Config)) *world {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, base: base}
	for _, dir := range []string{"ok/dir/deep", "two", "out/dir", "ok-evil"} {
		w.must(os.MkdirAll(w.at(dir), 0o755))
	}
	for _, file := range []string{"ok/f", "ok/dir/f", "two/f", "out/f", "out/dir/f", "ok-evil/f", "ok/%2e%2e"} {
		w.must(os.WriteFile(w.at(file), []byte(file), 0o644))
	}
	c := roots.Config{Allowed: []string{w.at("ok"), w.at("two")}, Home: w.at("ok"), Project: w.at("ok")}
	if change != nil {
		change(w, &c)
	}
	var skipped []error
	if w.Roots, skipped, err = roots.New(c); err != nil || len(skipped) > 0 {
		t.Fatal(err, skipped)
	}
	return w
}

func (w *world) at(name string) string { return filepath.Join(w.base, filepath.FromSlash(name)) }

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) link(target, name string) { w.Helper(); w.must(os.Symlink(target, w.at(name))) }

func code(err error) fault.Code {
	if err == nil {
		return ""
	}
	c, _ := fault.Of(err)
	return c
}

func TestResolve(t *testing.T) {
	w := newWorld(t, nil)
	w.link("dir", "ok/in")
	w.link(w.at("ok/f"), "ok/in_abs")
	w.link("../two", "ok/across")
	w.link("../out/f", "ok/escape")
	w.link("../out/dir", "ok/escape_dir")
	w.link("../out/new", "ok/dangling_out")
	w.link("new", "ok/dangling_in")
	w.link("nope/../../../out/f", "ok/dangling_up")
	w.link("nope/../dir", "ok/through_nothing")
	w.link("f/../dir", "ok/through_a_file")
	w.link("in/../f", "ok/through_a_link")
	w.link("loop_b", "ok/loop_a")
	w.link("loop_a", "ok/loop_b")
	w.link("back", "out/loop")
	w.link("loop", "out/back")
	w.link("../out/loop", "ok/to_loop")
	w.link("../ok/f", "out/home")
	w.link("../out/home", "ok/round")
	w.link("dangling_out", "ok/chain")
	w.link("/proc/self/root", "ok/magic")

	for _, c := range []struct {
		name, path string
		want       string // resolved, below base
		code       fault.Code
	}{
		{"relative", "f", "ok/f", ""},
		{"absolute", w.at("ok/dir/f"), "ok/dir/f", ""},
		{"second directory", w.at("two/f"), "two/f", ""},
		{"root itself", w.at("ok"), "ok", ""},
		{"root with slash", w.at("ok") + "/", "ok", ""},
		{"missing", "dir/nope/more", "ok/dir/nope/more", ""},
		{"home", "~", "ok", ""},
		{"below home", "~/dir/f", "ok/dir/f", ""},
		{"double slash", w.at("ok") + "//dir//f", "ok/dir/f", ""},
		{"dot elements", "./dir/./f", "ok/dir/f", ""},
		{"dots within", "dir/../f", "ok/f", ""},
		{"percent is literal", "%2e%2e", "ok/%2e%2e", ""},
		{"percent does not climb", "%2e%2e/out/f", "", fault.FSPathResolution},
		{"percent slash", "%2e%2e%2fout%2ff", "ok/%2e%2e%2fout%2ff", ""},
		{"backslashes are literal", `..\out\f`, `ok/..\out\f`, ""},
		{"right-to-left mark", "a\u202egnp.exe", "ok/a\u202egnp.exe", ""},
		{"link in", "in/f", "ok/dir/f", ""},
		{"absolute link in", "in_abs", "ok/f", ""},
		{"link in with slash", "in/", "ok/dir", ""},
		{"link in with slash dot", "in/.", "ok/dir", ""},
		{"between allowed", "across/f", "two/f", ""},
		{"missing between allowed", "across/new/x", "two/new/x", ""},
		{"dangling in", "dangling_in", "ok/new", ""},
		{"round through outside", "round", "ok/f", ""},
		{"link from outside", w.at("out/home"), "ok/f", ""},
		{"4096 bytes of missing", strings.Repeat("a/", 2047) + "aa", "ok/" + strings.Repeat("a/", 2047) + "aa", ""},

		{"prefix twin", w.at("ok-evil/f"), "", fault.FSAccessDenied},
		{"prefix twin by dots", "../ok-evil/f", "", fault.FSAccessDenied},
		{"outside", w.at("out/f"), "", fault.FSAccessDenied},
		{"outside, missing", w.at("out/nope"), "", fault.FSAccessDenied},
		{"outside, below a file", w.at("out/f/x"), "", fault.FSAccessDenied},
		{"outside, a loop", w.at("out/loop"), "", fault.FSAccessDenied},
		{"parent", "..", "", fault.FSAccessDenied},
		{"above everything", "/", "", fault.FSAccessDenied},
		{"system file", "/etc/passwd", "", fault.FSAccessDenied},
		{"dots through missing", "nope/../../out/x", "", fault.FSAccessDenied},
		{"dots through a file", "f/../../out/f", "", fault.FSAccessDenied},
		{"other case", strings.ToUpper(w.at("ok")) + "/f", "", fault.FSAccessDenied},
		{"link out", "escape", "", fault.FSAccessDenied},
		{"link out with slash", "escape/", "", fault.FSAccessDenied},
		{"linked directory out", "escape_dir", "", fault.FSAccessDenied},
		{"linked directory out, slash", "escape_dir/", "", fault.FSAccessDenied},
		{"linked directory out, slash dot", "escape_dir/.", "", fault.FSAccessDenied},
		{"linked directory out, slashes", "escape_dir//", "", fault.FSAccessDenied},
		{"below linked directory out", "escape_dir/f", "", fault.FSAccessDenied},
		{"missing below linked directory out", "escape_dir/new/x", "", fault.FSAccessDenied},
		{"dangling out", "dangling_out", "", fault.FSAccessDenied},
		{"below dangling out", "dangling_out/x", "", fault.FSAccessDenied},
		{"dangling, up", "dangling_up", "", fault.FSAccessDenied},
		{"through what does not exist", "through_nothing", "", fault.FSNotFound},
		{"below what that leads to", "through_nothing/f", "", fault.FSNotFound},
		{"up from a file", "through_a_file/f", "", fault.FSPathResolution},
		{"up from a linked directory", "through_a_link", "ok/f", ""},
		{"chain to dangling out", "chain", "", fault.FSAccessDenied},
		{"link to a loop outside", "to_loop", "", fault.FSAccessDenied},
		{"magic link", "magic/etc/passwd", "", fault.FSAccessDenied},
		{"loop", "loop_a", "", fault.FSPathResolution},
		{"below loop", "loop_a/x", "", fault.FSPathResolution},
		{"below a file", "f/x", "", fault.FSPathResolution},
		{"another user's home", "~root/x", "", fault.FSPathResolution},
		{"tilde twice", "~~", "", fault.FSPathResolution},
		{"home by dots", "~/../out/f", "", fault.FSAccessDenied},
		{"empty", "", "", fault.FSBadPathInput},
		{"NUL", "f\x00.txt", "", fault.FSBadPathInput},
		{"replacement character", "f\uFFFD", "", fault.FSBadPathInput},
		{"invalid UTF-8", "f\xff", "", fault.FSBadPathInput},
		{"4097 bytes", strings.Repeat("a", 4097), "", fault.FSBadPathInput},
		{"name too long", strings.Repeat("a", 300), "", fault.FSBadPathInput},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := w.Resolve(c.path)
			if code(err) != c.code {
				t.Fatalf("Resolve(%.80q) = %.200s, %v; want %q", c.path, p.Abs, err, c.code)
			}
			if err != nil {
				if p.Asked = ""; p != (place.Place{}) {
					t.Errorf("a refused path has a place: %+v", p)
				}
				return
			}
			if p.Abs != w.at(c.want) {
				t.Errorf("Abs = %.200s, want %.200s", p.Abs, w.at(c.want))
			}
			root := p.Root.Name()
			if got := filepath.Join(root, p.Name); got != p.Abs {
				t.Errorf("Root and Name lead to %s, Abs is %s", got, p.Abs)
			}
			if !filepath.IsLocal(p.Name) {
				t.Errorf("Name = %q", p.Name)
			}
		})
	}
}

// An entry is the link itself, for the operations that remove or rename it.
func TestEntry(t *testing.T) {
	w := newWorld(t, func(w *world, c *roots.Config) { c.Denied = []string{"*.pem"} })
	w.link("dir", "ok/in")
	w.link("../two/f", "ok/across")
	w.link("../out/f", "ok/escape")
	w.link("../out/new", "ok/dangling_out")
	w.link("new", "ok/dangling_in")
	w.link("f", "ok/x.pem")
	for _, c := range []struct {
		path, want string
		code       fault.Code
	}{
		{"f", "ok/f", ""},
		{"dir/", "ok/dir", ""},
		{"in", "ok/in", ""},
		{"in/f", "ok/dir/f", ""},
		{"across", "ok/across", ""},
		{"dangling_in", "ok/dangling_in", ""},
		{"dir/../in", "ok/in", ""},
		{"in/", "", fault.FSBadPathInput},
		{"in//", "", fault.FSBadPathInput},
		{"in/.", "", fault.FSBadPathInput},
		{"in/./", "", fault.FSBadPathInput},
		{"escape", "", fault.FSAccessDenied},
		{"dangling_out", "", fault.FSAccessDenied},
		{"x.pem", "", fault.FSAccessDenied},
	} {
		var p registry.Path
		w.must(p.UnmarshalText([]byte(c.path)))
		p.Vet(w.Resolve)
		entry, err := p.Entry()
		if code(err) != c.code || err == nil && entry.Abs != w.at(c.want) {
			t.Errorf("%s: %s, %v", c.path, entry.Abs, err)
		}
	}
}

func TestOutsideTellsNothing(t *testing.T) {
	w := newWorld(t, nil)
	w.link("../out/f", "ok/l")
	w.link("../out/nope", "ok/d")
	shape := func(path string) string {
		_, err := w.Resolve(path)
		return strings.Replace(err.Error(), path+" ", "PATH ", 1)
	}
	want := "PATH is outside the allowed directories: " + w.at("ok") + ", " + w.at("two")
	for _, path := range []string{w.at("out/f"), w.at("out/nope"), w.at("out/f/below"), w.at("out/dir"), "l", "d"} {
		if got := shape(path); got != want {
			t.Errorf("%s: %s", path, got)
		}
	}
}

func TestHome(t *testing.T) {
	w := newWorld(t, func(_ *world, c *roots.Config) { c.Home = "" })
	if _, err := w.Resolve("~/x"); code(err) != fault.FSPathResolution {
		t.Errorf("~ without a home: %v", err)
	}
}

func TestDenied(t *testing.T) {
	denied := func(w *world, c *roots.Config) {
		for _, dir := range []string{"ok/.ssh", "ok/keys/a", "ok/x/secrets/deep", "ok/real", "ok/state", "ok/a/b/c", "ok/t1.d", "ok/.config/gh"} {
			w.must(os.MkdirAll(w.at(dir), 0o755))
		}
		w.link("real", "ok/alias")
		w.link(".ssh", "ok/innocent")
		w.link("x/secrets/k.key", "ok/plain.txt")
		w.must(os.WriteFile(w.at("ok/x/secrets/k.key"), nil, 0o644))
		c.Denied = []string{"~/.ssh", w.at("ok/keys/*"), "*.pem", "secrets/*.key", w.at("ok/alias"), "b/**/z", w.at("ok/t*.d") + "/", "{one,two}.env", "~/.config/gh/", "q/{r/s,t}"}
		c.State = []string{w.at("ok/state/log"), w.at("ok/state/later")}
	}
	w := newWorld(t, denied)
	for path, want := range map[string]bool{
		".ssh": true, ".ssh/id": true, ".sshx": false, "x/.ssh": false, "innocent": true, "innocent/id": true,
		"keys": false, "keys/a": true, "keys/a/deep/er": true,
		"c.pem": true, "x/y/c.pem": true, "c.pem/below": true, "c.pem2": false,
		"x/secrets": false, "x/secrets/k.key": true, "x/secrets/k.txt": false, "x/secrets/k.key/below": true, "plain.txt": true, "x/secrets/deep/k.key": false,
		"secrets/k.key": true, "xsecrets/k.key": false,
		"alias": true, "real": true, "real/f": true,
		"a/b/z": true, "a/b/c/z": true, "a/b/c/d/z/below": true, "a/z": false, "b/z": true,
		"t1.d": true, "t1.d/f": true, "u1.d": false,
		"one.env": true, "x/two.env": true, "three.env": false,
		".config/gh/hosts": true, ".config/gh": true, ".config": false,
		"q/r/s": true, "q/t": true, "q/r": false, "m/q/r/s/f": true,
		"state": false, "state/log": true, "state/later": true, "state/log2": false,
	} {
		_, err := w.Resolve(path)
		if got := code(err) == fault.FSAccessDenied; got != want {
			t.Errorf("%s: %v, want denied %t", path, err, want)
		} else if want && !strings.Contains(err.Error(), "CONDUIT_DENIED_PATHS") {
			t.Errorf("%s: the message does not name the variable: %v", path, err)
		}
	}
	if !w.DeniedBelow(w.at("ok/dir")) {
		t.Error("a floating rule may match below any directory")
	}
	if got := strings.Join(w.DeniedRules(), " "); !strings.HasPrefix(got, w.at("ok/.ssh")+" ") || strings.Contains(got, "state") {
		t.Errorf("DeniedRules = %s", got)
	}
}

// A rule is not got round by links that the system cannot follow, but that as
// text lead to what it denies.
func TestDeniedBehindDanglingLinks(t *testing.T) {
	w := newWorld(t, func(w *world, c *roots.Config) { c.Denied = []string{w.at("ok/dir")} })
	w.must(os.Mkdir(w.at("ok/repo"), 0o755))
	w.link("nope/../b", "ok/repo/a")
	w.link("..", "ok/repo/b")
	for _, path := range []string{"repo/a", "repo/a/dir", "repo/a/dir/f", "repo/a/dir/new"} {
		if p, err := w.Resolve(path); code(err) != fault.FSNotFound {
			t.Errorf("%s: %s, %v", path, p.Abs, err)
		}
	}
}

func TestDeniedBelow(t *testing.T) {
	w := newWorld(t, func(w *world, c *roots.Config) {
		c.Denied = []string{w.at("ok/dir/secret"), w.at("two/k*/x")}
	})
	for path, want := range map[string]bool{
		"ok": true, "ok/dir": true, "ok/dir/deep": false, "two": true, "two/kk": true, "two/other": true, "out": false,
	} {
		if got := w.DeniedBelow(w.at(path)); got != want {
			t.Errorf("DeniedBelow(%s) = %t", path, got)
		}
	}
}

func TestCheckRefusesWhatWasOpened(t *testing.T) {
	w := newWorld(t, func(w *world, c *roots.Config) { c.Denied = []string{w.at("ok/dir")} })
	p, err := w.Resolve("other")
	w.must(err)
	w.link("dir/f", "ok/other") // put in the way after the path was judged
	if f, _, err := p.Open(); code(err) != fault.FSAccessDenied {
		t.Errorf("opened %v, %v", f, err)
	}
}

func TestBadRules(t *testing.T) {
	dir := t.TempDir()
	for _, rule := range []string{"[", "~root/x", "a{b", "{a}{b}{c}{d}{e}"} {
		_, _, err := roots.New(roots.Config{Allowed: []string{dir}, Home: dir, Project: dir, Denied: []string{rule}})
		if code(err) != fault.ConfigInvalid || !strings.Contains(err.Error(), "CONDUIT_DENIED_PATHS") {
			t.Errorf("%s: %v", rule, err)
		}
	}
}

func TestNew(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"a", "home"} {
		if err := os.Mkdir(filepath.Join(base, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(base, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a", filepath.Join(base, "link")); err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(base, "home")
	r, skipped, err := roots.New(roots.Config{Home: home, Working: base, Allowed: []string{
		filepath.Join(base, "link"), filepath.Join(base, "a"), "~", "~other", "relative", filepath.Join(base, "nope"), filepath.Join(base, "file")}})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(r.Dirs(), " "); got != filepath.Join(base, "a")+" "+home {
		t.Errorf("Dirs = %s", got)
	}
	if len(skipped) != 4 {
		t.Errorf("skipped = %v", skipped)
	}
	for _, s := range skipped {
		if code(s) != fault.FSBadAllowedPath {
			t.Errorf("%v", s)
		}
	}
	for _, allowed := range [][]string{nil, {filepath.Join(base, "nope")}, {""}, {"~other"}} {
		if _, _, err := roots.New(roots.Config{Home: home, Working: base, Allowed: allowed}); code(err) != fault.FSBadAllowedPath {
			t.Errorf("%q: %v", allowed, err)
		}
	}
}

func TestProjectRoot(t *testing.T) {
	w := newWorld(t, nil)
	w.link("../out", "ok/away")
	w.link("dir", "ok/in")
	ok, two := w.at("ok"), w.at("two")
	for _, c := range []struct {
		project, working string
		want             string
		code             fault.Code
	}{
		{"", w.at("ok/dir"), w.at("ok/dir"), ""},
		{"", w.at("ok/in/"), w.at("ok/in"), ""},
		{"", w.at("ok"), ok, ""},
		{"", "", two, ""},
		{"", "/", two, ""},
		{"", w.base, two, ""},
		{"", w.at("out"), two, ""},
		{"", w.at("ok/away"), two, ""},
		{"", w.at("ok-evil"), two, ""},
		{w.at("ok/dir"), w.at("out"), w.at("ok/dir"), ""},
		{w.at("ok/later"), "/", w.at("ok/later"), ""},
		{w.at("out"), ok, "", fault.ConfigInvalid},
		{w.at("ok/away/dir"), ok, "", fault.ConfigInvalid},
		{w.base, ok, "", fault.ConfigInvalid},
	} {
		r, _, err := roots.New(roots.Config{Allowed: []string{two, ok}, Project: c.project, Working: c.working})
		if code(err) != c.code {
			t.Errorf("%+v: %v", c, err)
		}
		if err == nil && r.Project() != c.want {
			t.Errorf("%+v: %s", c, r.Project())
		}
	}
}

func TestRemovedAndMadeAgain(t *testing.T) {
	w := newWorld(t, nil)
	w.must(os.RemoveAll(w.at("two")))
	if _, err := w.Resolve(w.at("two/f")); code(err) != fault.FSNotFound {
		t.Fatalf("gone: %v", err)
	}
	w.must(os.Mkdir(w.at("two"), 0o755))
	w.must(os.WriteFile(w.at("two/f"), []byte("again"), 0o644))
	p, err := w.Resolve(w.at("two/f"))
	w.must(err)
	if b, err := p.Root.ReadFile(p.Name); err != nil || string(b) != "again" {
		t.Errorf("%q, %v", b, err)
	}
	// A link in its place is not the directory that was allowed.
	w.must(os.RemoveAll(w.at("two")))
	w.link("out", "two")
	if p, err := w.Resolve(w.at("two/f")); err == nil {
		t.Errorf("resolved through a link in place of the allowed directory: %+v", p)
	}
}

func TestHoldsRoot(t *testing.T) {
	w := newWorld(t, nil)
	for path, want := range map[string]bool{"ok": true, "": true, "two": true, "ok/dir": false, "o": false, "ok-evil": false} {
		if got := w.HoldsRoot(w.at(path)); got != want {
			t.Errorf("HoldsRoot(%q) = %t", path, got)
		}
	}
	if !w.HoldsRoot("/") {
		t.Error("the root of the file system holds every directory")
	}
}

func TestNestedRoots(t *testing.T) {
	w := newWorld(t, func(w *world, c *roots.Config) { c.Allowed = append(c.Allowed, w.at("ok/dir")) })
	p, err := w.Resolve("dir/f")
	w.must(err)
	if p.Name != "f" {
		t.Errorf("Name = %q; the innermost directory should hold it", p.Name)
	}
}

// The attacker exchanges a directory for a link to outside, over and over,
// while paths below it are placed, read and written.
func TestSwappedDirectoryNeverLeadsOutside(t *testing.T) {
	w := newWorld(t, nil)
	w.must(os.Mkdir(w.at("ok/t"), 0o755))
	w.must(os.WriteFile(w.at("ok/t/f"), []byte("mine"), 0o644))
	w.link("../out", "ok/l")
	stop := make(chan struct{})
	var swapper sync.WaitGroup
	swapper.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			for _, step := range [][2]string{{"ok/t", "ok/d"}, {"ok/l", "ok/t"}, {"ok/t", "ok/l"}, {"ok/d", "ok/t"}} {
				if err := os.Rename(w.at(step[0]), w.at(step[1])); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	var read, refused int
	for n := range 5000 {
		if p, err := w.Resolve("t/f"); err == nil {
			if f, _, err := p.OpenFileOnly(); err == nil {
				b := make([]byte, 16)
				k, _ := f.Read(b)
				f.Close()
				if string(b[:k]) != "mine" {
					t.Fatalf("try %d read %q", n, b[:k])
				}
				read++
			} else {
				refused++
			}
		} else {
			refused++
		}
		name := fmt.Sprintf("t/new%d", n%7)
		if p, err := w.Resolve(name); err == nil {
			if f, _, err := p.OpenFile(os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644); err == nil {
				f.Close()
			}
			_ = p.Root.Remove(p.Name)
		}
	}
	close(stop)
	swapper.Wait()
	if read == 0 || refused == 0 {
		t.Errorf("%d reads, %d refusals: the race was not run", read, refused)
	}
	list, err := os.ReadDir(w.at("out"))
	w.must(err)
	if len(list) != 2 {
		t.Errorf("something appeared outside: %v", list)
	}
}

// A path must not cost more than its length: what looks at all of it for every
// directory above it takes many minutes for this one.
func TestDeepPathsAreJudgedQuickly(t *testing.T) {
	w := newWorld(t, func(_ *world, c *roots.Config) {
		c.Denied = []string{"*.pem", "secrets/*.key", "a/**/z/*.q", "~/x/**/y"}
	})
	deep := w.at("ok/" + strings.Repeat("a/", 200_000) + "end")
	start := time.Now()
	if w.Denied(deep) {
		t.Error("denied")
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("it took %v", took)
	}
}

// Resolving a path and opening it is to cost at most three times what opening it
// does, where a deny rule could match too.
func BenchmarkResolve(b *testing.B) {
	base, err := filepath.EvalSymlinks(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	file := filepath.Join(base, "1/2/3/4/f")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		b.Fatal(err)
	}
	b.Run("os.Open", func(b *testing.B) {
		for b.Loop() {
			f, err := os.Open(file)
			if err != nil {
				b.Fatal(err)
			}
			f.Close()
		}
	})
	for _, c := range []struct {
		name   string
		denied []string
	}{{"plain", nil}, {"ruled", []string{filepath.Join(base, "secret")}}} {
		r, _, err := roots.New(roots.Config{Allowed: []string{base}, Project: base, Denied: c.denied})
		if err != nil {
			b.Fatal(err)
		}
		b.Run("Resolve/"+c.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := r.Resolve(file); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("Resolve+Open/"+c.name, func(b *testing.B) {
			for b.Loop() {
				p, err := r.Resolve(file)
				if err != nil {
					b.Fatal(err)
				}
				f, _, err := p.Open()
				if err != nil {
					b.Fatal(err)
				}
				f.Close()
			}
		})
		b.Run("Resolve new/"+c.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := r.Resolve(file + "2"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// What a rule matches by its end must be what DeniedName tells of, for walks ask
// nothing else of what it does not.
func TestDeniedNameLeavesNothingOut(t *testing.T) {
	rules := []string{"*.pem", "secrets/*.key", "b/**/z", "{one,two}.env", "q/{r/s,t}", "/lit/a", "/anch/k*/x", ".env", ".config/gh"}
	paths := []string{"/a/c.pem", "/a/secrets/k.key", "/a/b/c/d/z", "/a/two.env", "/a/q/r/s", "/a/q/t", "/lit/a", "/anch/kk/x", "/a/.env", "/a/.config/gh", "/state/log", "/x/kept/here"}
	w := newWorld(t, func(_ *world, c *roots.Config) { c.Denied, c.State = rules, []string{"/state/log", "kept/here"} })
	for _, p := range paths {
		if !w.Denied(p) || !w.DeniedName(filepath.Base(p)) {
			t.Errorf("%s: denied %v, by its end %v", p, w.Denied(p), w.DeniedName(filepath.Base(p)))
		}
	}
	for _, p := range []string{"/a/.environment", "/a/x.env.d", "/a/kept/hereafter", "/x/kepthere"} {
		if w.Denied(p) {
			t.Errorf("%s is denied", p)
		}
	}
}

package cli_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/cmd"
	_ "github.com/conduit-mcp/conduit-mcp/ops/zipfs"
)

// A shell runs commands over one state directory.
type shell struct {
	t   *testing.T
	dir string
	env map[string]string
}

func newShell(t *testing.T) *shell {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	sh := &shell{t, dir, map[string]string{"CONDUIT_ZIP_DATA_DIR": filepath.Join(dir, "state")}}
	sh.archive("a.zip")
	return sh
}

func (sh *shell) archive(name string) {
	sh.t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, f := range [][2]string{{"README.txt", "Hello,\nworld\n"}, {"data/list.csv", "a,b\n1,2\n"}} {
		w, err := z.Create(f[0])
		if err == nil {
			_, err = io.WriteString(w, f[1])
		}
		if err != nil {
			sh.t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		sh.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(sh.dir, name), b.Bytes(), 0o644); err != nil {
		sh.t.Fatal(err)
	}
}

// run runs a command line, $DIR standing for the directory.
func (sh *shell) run(line, stdin string) (code int, stdout, stderr string) {
	sh.t.Helper()
	var out, errs bytes.Buffer
	args := strings.Fields(strings.ReplaceAll(line, "$DIR", sh.dir))
	code = cmd.Run(append([]string{"zip"}, args...), sh.env, strings.NewReader(stdin), &out, &errs)
	hide := func(b bytes.Buffer) string { return strings.ReplaceAll(b.String(), sh.dir, "$DIR") }
	if found := toolWords.FindString(errs.String() + out.String()); found != "" && code != 0 {
		sh.t.Errorf("%s speaks of %q as tools do: %s%s", line, found, out.String(), errs.String())
	}
	return code, hide(out), hide(errs)
}

// toolWords are those that messages have for models.
var toolWords = regexp.MustCompile(`zipfs_|\bdiscard\b|create_dirs|write\.unarchive\b[^"]* to change|\bwith (sync|force|recursive|lazy|session|all)\b|: all, or stale\b|\d; (lazy|offset)`)

// What to do next is told in words that the command line takes.
func TestWordsOfTheCommandLine(t *testing.T) {
	sh := newShell(t)
	for _, step := range []struct{ line, want string }{
		{"ls", "open an archive with zip open first"},
		{"open $DIR/a.zip", ""},
		{"read none", "zip ls tells what is there"},
		{"delete data", "delete it with --recursive"},
		{"write x --content y", ""},
		{"close", "close it with --sync to write them, or with --no-sync to lose them"},
		{"close --sync --no-sync", "--sync and --no-sync exclude each other"},
		{"prune", "--all, or --stale with a duration"},
		{"open $DIR/a.zip", ""},
		{"status", "say which with SESSION"},
		{"open $DIR/a.zip --max-size 20", "more than --max-size (20 bytes)"},
	} {
		if _, _, stderr := sh.run(step.line, ""); !strings.Contains(stderr, step.want) || step.want == "" && stderr != "" {
			t.Errorf("%s: %q, want %q", step.line, stderr, step.want)
		}
	}
	if err := os.WriteFile(filepath.Join(sh.dir, "a.zip"), []byte("other"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, stderr := sh.run("sync a", ""); !strings.Contains(stderr, "with --force it is overwritten") {
		t.Error(stderr)
	}
}

// A lone word is a path where there is one, else a session.
func TestLoneWord(t *testing.T) {
	sh := newShell(t)
	sh.archive("report.zip")
	sh.archive("data.zip")
	for _, step := range []struct {
		line string
		code int
		want string // the start of stdout
	}{
		{"open $DIR/report.zip", 0, "report:"},
		{"ls report", 0, "README.txt\n"}, {"tree report", 0, ".\n"}, {"grep world report", 0, "README.txt:"}, {"diff report", 0, ""}, {"ls report -r", 0, "README.txt\n"},
		{"ls reports", 1, ""}, {"read report", 1, ""},
		{"write report --content x", 0, "1 bytes"}, {"ls report", 0, "report\n"}, {"ls report:", 0, "README.txt\n"},
		{"close --no-sync", 0, "closed"},
		{"open $DIR/data.zip", 0, "data:"}, {"ls data", 0, "list.csv\n"},
		{"open $DIR/report.zip", 0, "report:"}, {"ls data", 0, "README.txt\n"}, {"ls none", 4, ""},
	} {
		if code, stdout, stderr := sh.run(step.line, ""); code != step.code || !strings.HasPrefix(stdout, step.want) {
			t.Errorf("%s: %d, %q, %q; want %d, %q", step.line, code, stdout, stderr, step.code, step.want)
		}
	}
}

// A size on the command line counts rather than the variable, for more as for
// less, and for what is written later too.
func TestSizeOfASession(t *testing.T) {
	sh := newShell(t)
	sh.env["CONDUIT_ZIP_MAX_EXTRACTED_SIZE"] = "20"
	for _, step := range []struct {
		line string
		code int
	}{
		{"open $DIR/a.zip", 5}, {"open $DIR/a.zip --max-size 30", 0}, {"write x --content 123456789", 0}, {"write y --content 1", 1}, {"close --no-sync", 0},
		{"open $DIR/a.zip --max-size 10", 5},
	} {
		if code, stdout, stderr := sh.run(step.line, ""); code != step.code {
			t.Errorf("%s: %d, %s%s", step.line, code, stdout, stderr)
		}
	}
}

// An entry that leads outside ends with the code for what is not safe.
func TestUnsafeArchiveHasItsOwnCode(t *testing.T) {
	sh := newShell(t)
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	if _, err := z.Create("../../evil"); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(sh.dir, "slip.zip"), b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := sh.run("open $DIR/slip.zip", ""); code != 5 || !strings.Contains(stderr, "PATH_TRAVERSAL") {
		t.Errorf("%d, %s", code, stderr)
	}
}

func TestCommands(t *testing.T) {
	sh := newShell(t)
	for _, step := range []struct {
		line, stdin string
		code        int
		stdout      string // all of it, or with … at an end the rest
		stderr      string // a part of it
	}{
		{"", "", 0, "Work in archives as files…", ""},
		{"nonsense", "", 2, "", "unknown command"},
		{"ls --nonsense", "", 2, "", "nonsense"},
		{"ls --help", "", 0, "List files\n\nUsage:\n  conduit-mcp zip ls [SESSION] [PATH] [flags]\n…", ""},
		{"ls", "", 4, "", "NO_SESSIONS"},
		{"sessions", "", 0, "", ""},
		{"open", "", 2, "", "accepts 1 arg"},
		{"open $DIR/none.zip", "", 1, "", "ZIP_NOT_FOUND"},
		{"open $DIR", "", 1, "", "ZIP_INVALID"},
		{"open $DIR/a.zip --max-size 5", "", 5, "", "ZIP_BOMB_DETECTED"},
		{"open $DIR/a.zip --max-size many", "", 2, "", "no size"},
		{"open $DIR/a.zip --name one", "", 0, "one: 2 files, 21 bytes: $DIR/state/workspaces/one/contents\n", ""},
		{"sessions --quiet", "", 0, "one\n", ""},
		{"sessions", "", 0, "one  …", ""},
		{"path --json one:", "", 0, `{"path":"$DIR/state/workspaces/one/contents"}` + "\n", ""},
		{"-q ls -l README.txt", "", 0, "          13  …", ""},
		{"tree --json", "", 0, `{"tree":".\n├── README.txt…`, ""},
		{"grep --json world", "", 0, `{"matches":[{"file":"README.txt","line_number":2,"line_content":"world"}],"total_matches":1,"truncated":false}` + "\n", ""},
		{"read -- README.txt", "", 0, "Hello,\nworld\n", ""},
		{"read README.txt --offset -1", "", 2, "", "counts from 0"},
		{"diff --context -1", "", 2, "", "number of lines"},
		{"read a b c", "", 2, "", "usage: conduit-mcp zip "},
		{"--help", "", 0, "Work in archives as files…", ""},
		{"ls", "", 0, "README.txt\ndata/\n", ""},
		{"ls -r one:data", "", 0, "list.csv\n", ""},
		{"ls --json one data", "", 0, `{"entries":[{"name":"list.csv","type":"file","size_bytes":8,…`, ""},
		{"ls ../..", "", 5, "", "PATH_TRAVERSAL"},
		{"tree", "", 0, ".\n├── README.txt\n└── data/\n    └── list.csv\n\n1 directories, 2 files\n", ""},
		{"tree --quiet --max-depth 1", "", 0, ".\n├── README.txt\n└── data/\n", ""},
		{"read README.txt --offset 7 --limit 3", "", 0, "wor", ""},
		{"--json read README.txt", "", 0, `{"content":"Hello,\nworld\n","size_bytes":13,"encoding":"utf-8"}` + "\n", ""},
		{"read nope", "", 1, "", "PATH_NOT_FOUND"},
		{"read", "", 2, "", "accepts between 1 and 2"},
		{"write notes/new.txt", "from stdin", 0, "10 bytes written\n", ""},
		{"write one:README.txt --content changed --quiet", "", 0, "", ""},
		{"write x --content y --stdin", "", 2, "", "none of the others can be"},
		{"write empty --content= --json", "not this", 0, `{"written":true,"size_bytes":0}` + "\n", ""},
		{"delete data", "", 1, "", "NOT_EMPTY"},
		{"delete -r data --json", "", 0, `{"deleted":true,"path":"data"}` + "\n", ""},
		{"grep -n -i STDIN", "", 0, "notes/new.txt:1:from stdin\n", ""},
		{"grep --max-results 1 . one:/", "", 0, "README.txt:changed\n", "more matches"},
		{"grep (", "", 2, "", "INVALID_PARAMS"},
		{"path", "", 0, "$DIR/state/workspaces/one/contents", ""},
		{"status one", "", 0, "M README.txt\nA empty\nA notes/new.txt\nD data/list.csv\n0 unchanged\n", ""},
		{"status --json", "", 0, `{"modified":["README.txt"],"added":["empty","notes/new.txt"],"deleted":["data/list.csv"],"unchanged_count":0}` + "\n", ""},
		{"write bin --content= -q", "", 0, "", ""},
		{"delete bin -q", "", 0, "", ""},
		{"diff --json README.txt --context 0", "", 0, `{"changes":[{"path":"README.txt","status":"modified",…`, ""},
		{"diff README.txt --context 0", "", 0, "--- a/README.txt\n+++ b/README.txt\n…", ""},
		{"sync --dry-run", "", 0, "would sync: 1 modified, 2 added, 1 deleted; the archive would have …", ""},
		{"close", "", 1, "", "UNSAVED_CHANGES"},
		{"close --sync --no-sync", "", 2, "", "exclude each other"},
		{"sync", "", 0, "synced: 1 modified, 2 added, 1 deleted; the archive as it was is $DIR/a.bak.zip\n", ""},
		{"sync", "", 0, "nothing to sync\n", ""},
		{"open $DIR/a.zip --lazy", "", 0, "a: 3 files, 17 bytes: nothing is unpacked yet\n", ""},
		{"status", "", 4, "", "AMBIGUOUS_SESSION"},
		{"status nope", "", 4, "", "SESSION_NOT_FOUND"},
		{"write a:x --content y", "", 0, "1 bytes written\n", ""},
		{"close a --no-sync", "", 0, "closed\n", ""},
		{"write x --content y", "", 0, "1 bytes written\n", ""},
		{"prune", "", 2, "", "say which"},
		{"prune --all --stale 7d", "", 2, "", "exclude each other"},
		{"prune --stale soon", "", 2, "", "no duration"},
		{"prune --all --dry-run", "", 0, "would remove one: all\n18 bytes\n", ""},
		{"close --sync", "", 0, "synced and closed\n", ""},
		{"open $DIR/a.zip --name old", "", 0, "old: …", ""},
		{"prune --stale 7d", "", 0, "0 bytes\n", ""},
		{"prune --all --json", "", 0, `{"pruned":[{"id":"…`, ""},
		{"open $DIR/a.zip --name old", "", 0, "old: …", ""},
		{"prune --all", "", 0, "removed old: all\n18 bytes\n", ""},
		{"ls --json", "", 4, `{"error":{"code":"NO_SESSIONS",…`, ""},
		{"sessions more", "", 2, "", "usage: conduit-mcp zip "},
	} {
		code, stdout, stderr := sh.run(step.line, step.stdin)
		start, cut := strings.CutSuffix(step.stdout, "…")
		if code != step.code || stdout != step.stdout && !(cut && strings.HasPrefix(stdout, start)) || !strings.Contains(stderr, step.stderr) || step.stderr == "" && stderr != "" {
			t.Errorf("%s: code %d, stdout %q, stderr %q; want %d, %q, %q", step.line, code, stdout, stderr, step.code, step.stdout, step.stderr)
		}
	}
}

func TestConflictHasItsOwnCode(t *testing.T) {
	sh := newShell(t)
	sh.run("open $DIR/a.zip", "")
	sh.run("write x --content y", "")
	if err := os.WriteFile(filepath.Join(sh.dir, "a.zip"), []byte("other"), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := sh.run("sync", ""); code != 3 || !strings.Contains(stderr, "CONFLICT_DETECTED") {
		t.Errorf("code %d, %s", code, stderr)
	}
	if code, stdout, stderr := sh.run("sync --force --json", ""); code != 0 || !json.Valid([]byte(stdout)) {
		t.Errorf("code %d, %s, %s", code, stdout, stderr)
	}
}

func TestSettingsAreChecked(t *testing.T) {
	sh := newShell(t)
	sh.env["ZIPFS_MAX_SESSIONS"] = "none"
	if code, _, stderr := sh.run("sessions", ""); code != 2 || !strings.Contains(stderr, "ZIPFS_MAX_SESSIONS") {
		t.Errorf("code %d, %s", code, stderr)
	}
	sh.env = map[string]string{"CONDUIT_ZIP_DATA_DIR": "NONE"}
	if code, _, stderr := sh.run("open $DIR/a.zip", ""); code != 1 || !strings.Contains(stderr, "CONDUIT_ZIP_DATA_DIR") {
		t.Errorf("without a data directory: code %d, %s", code, stderr)
	}
}

// A link to an archive is followed, and so are links on the way to it.
func TestArchiveBehindLinks(t *testing.T) {
	sh := newShell(t)
	if err := os.Mkdir(filepath.Join(sh.dir, "real"), 0o755); err != nil {
		t.Fatal(err)
	}
	sh.archive("real/b.zip")
	for link, to := range map[string]string{"dir": "real", "link.zip": "real/b.zip"} {
		if err := os.Symlink(to, filepath.Join(sh.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"dir/b.zip", "link.zip"} {
		sh.run("open $DIR/"+name, "")
		if _, stdout, stderr := sh.run("sessions --json", ""); !strings.Contains(stdout, `"source_path":"$DIR/real/b.zip"`) {
			t.Errorf("%s: %s%s", name, stdout, stderr)
		}
		sh.run("write x --content y", "")
		if code, _, stderr := sh.run("close --sync", ""); code != 0 {
			t.Errorf("%s: %s", name, stderr)
		}
	}
	if fi, err := os.Lstat(filepath.Join(sh.dir, "link.zip")); err != nil || fi.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", fi, err)
	}
}

package all_test

import (
	"archive/zip"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/conduit-mcp/conduit-mcp/internal/app"
)

// exchanges are calls that name what lies in the directory t. A tool is followed
// by its operation.
var exchanges = []string{
	`find {"base_path": "t/d", "match_criteria": [{"type": "name_pattern", "pattern": "*"}]}`,
	`find {"base_path": "t", "match_criteria": [{"type": "content_pattern", "pattern": "a"}]}`,
	`list entries {"path": "t/d", "recursive_depth": 2}`,
	`read metadata {"sources": ["t/f", "t/d"]}`,
	`read content {"sources": ["t/f"], "format": "text"}`,
	`read diff {"sources": ["t/f", "t/d/f"]}`,
	`write put {"entries": [{"path": "t/f", "content": "put"}, {"path": "t/n/o", "content": "put"}, {"path": "t/d/f", "content": "more", "write_mode": "append"}]}`,
	`write mkdir {"entries": [{"path": "t/made"}, {"path": "t/made/so/deep", "recursive": true}]}`,
	`write touch {"entries": [{"path": "t/f"}, {"path": "t/touched/new"}]}`,
	`write chmod {"entries": [{"path": "t/f", "mode": "0606"}, {"path": "t/d", "mode": "0707"}]}`,
	`write chown {"entries": [{"path": "t/f", "uid": 12345, "gid": 12345}]}`,
	`write copy {"entries": [{"source_path": "t/d", "destination_path": "copies/d"}, {"source_path": "t/f", "destination_path": "copies/f"}]}`,
	`write copy {"entries": [{"source_path": "other", "destination_path": "t/d"}, {"source_path": "other/o", "destination_path": "t/f"}]}`,
	`write move {"entries": [{"source_path": "t/f", "destination_path": "moved"}, {"source_path": "t/d", "destination_path": "moved_d"}]}`,
	`write move {"entries": [{"source_path": "other/o", "destination_path": "t/f"}]}`,
	`write delete {"entries": [{"path": "t/f"}, {"path": "t/d", "recursive": true}, {"path": "t/e"}]}`,
	`write delete {"entries": [{"path": "u", "recursive": true}]}`,
	`write archive {"source_paths": ["t/d", "t/f"], "archive_path": "a.tar"}`,
	`write archive {"source_paths": ["other"], "archive_path": "t/a.tar"}`,
	`write unarchive {"archive_path": "other.zip", "destination_path": "t/d"}`,
	`write unarchive {"archive_path": "other.zip", "destination_path": "t/unpacked"}`,
	`edit replace {"base_path": "t", "pattern": "alpha", "replacement": "omega"}`,
	`edit apply {"changes": [{"path": "t/f", "edits": [{"old_text": "alpha", "new_text": "omega"}]}]}`,
	`edit patch {"patch": "--- a/t/f\n+++ b/t/f\n@@ -1 +1 @@\n-alpha\n+omega\n"}`,
	`edit undo {}`,
	`list_files {"path": "t/d"}`,
	`search_files {"path": "t", "regex": "a"}`,
	`stat_items {"paths": ["t/f", "t/d"]}`,
	`read_content {"paths": ["t/f"]}`,
	`write_content {"items": [{"path": "t/f", "content": "put"}]}`,
	`create_directories {"paths": ["t/made/so"]}`,
	`chmod_items {"paths": ["t/f"], "mode": "606"}`,
	`copy_items {"operations": [{"source": "t/d", "destination": "copied"}]}`,
	`move_items {"operations": [{"source": "t/f", "destination": "moved"}]}`,
	`delete_items {"paths": ["t/f", "t/d"]}`,
	`replace_content {"paths": ["t/f"], "operations": [{"search": "alpha", "replace": "omega"}]}`,
	`zipfs_open {"zip_path": "t/other.zip"}`,
	`task_list {"cwd": "t/d"}`,
}

// While calls name what lies in t, another process exchanges t and a link to a
// denied directory that holds the same names. Nothing of that is told or changed.
// Each call is repeated for LONG_RACE, a second by default.
func TestExchangedForALink(t *testing.T) {
	long, err := time.ParseDuration(cmp.Or(os.Getenv("LONG_RACE"), "1s"))
	succeed(t, err)
	for i, call := range exchanges {
		name, args, _ := strings.Cut(call, "{")
		name = strings.TrimSpace(name)
		tool, op, _ := strings.Cut(name, " ")
		t.Run(fmt.Sprintf("%s%d", name, i), func(t *testing.T) {
			t.Parallel()
			raceExchange(t, tool, op, "{"+args, long)
		})
	}
}

const secretWord = "classified"

func raceExchange(t *testing.T, tool, op, args string, long time.Duration) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	succeed(t, err)
	repo, secret := filepath.Join(base, "repo"), filepath.Join(base, "keys")
	succeed(t, os.MkdirAll(filepath.Join(repo, "d"), 0o755))
	succeed(t, os.MkdirAll(filepath.Join(repo, "u"), 0o755))
	succeed(t, os.MkdirAll(filepath.Join(repo, "other"), 0o755))
	succeed(t, os.MkdirAll(filepath.Join(secret, "d"), 0o755))
	succeed(t, os.MkdirAll(filepath.Join(secret, "e"), 0o755))
	for _, name := range []string{"f", "d/f", "d/" + secretWord} {
		succeed(t, os.WriteFile(filepath.Join(secret, name), []byte("alpha\n"+secretWord+"\n"), 0o644))
	}
	var zipped bytes.Buffer
	z := zip.NewWriter(&zipped)
	w, err := z.Create("o")
	succeed(t, err)
	_, err = w.Write([]byte("alpha"))
	succeed(t, errors.Join(err, z.Close()))
	packed := zipped.Bytes()
	succeed(t, os.WriteFile(filepath.Join(repo, "other.zip"), packed, 0o644))
	succeed(t, os.WriteFile(filepath.Join(secret, "other.zip"), packed, 0o644))
	succeed(t, os.Mkdir(filepath.Join(repo, "t"), 0o755))
	succeed(t, os.Symlink("../keys", filepath.Join(repo, "l")))
	real, err := os.OpenRoot(filepath.Join(repo, "t"))
	succeed(t, err)
	defer real.Close()
	before := snapshot(t, secret)

	a, err := app.New(app.Options{Quiet: true, Environ: app.Environ{
		"CONDUIT_ALLOWED_PATHS": base, "CONDUIT_DENIED_PATHS": secret, "CONDUIT_PROJECT_ROOT": repo, "CONDUIT_TOOLSETS": "all",
		"XDG_STATE_HOME": filepath.Join(base, "state"), "HOME": base, "CONDUIT_ZIP_DATA_DIR": filepath.Join(base, "zips")}})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if op != "" {
		declared, _ := a.Set.Tool(tool)
		args = fmt.Sprintf(`{"%s": "%s", %s`, declared.Discriminator, op, args[1:])
		args = strings.Replace(args, ", }", "}", 1)
	}

	stop := make(chan struct{})
	var swapper sync.WaitGroup
	swapper.Go(func() {
		at, link := filepath.Join(repo, "t"), filepath.Join(repo, "l")
		for {
			select {
			case <-stop:
				return
			default:
				if err := unix.Renameat2(unix.AT_FDCWD, at, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	end := sync.OnceFunc(func() { close(stop); swapper.Wait() })
	defer end()
	calls, done := 0, 0
	for until := time.Now().Add(long); !t.Failed() && (time.Now().Before(until) || calls == 0); calls++ {
		for _, dir := range []string{"d", "e"} {
			if err := real.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"f", "d/f"} {
			succeed(t, real.WriteFile(name, []byte("alpha\nbeta\n"), 0o644))
		}
		succeed(t, real.WriteFile("other.zip", packed, 0o644))
		succeed(t, os.WriteFile(filepath.Join(repo, "other/o"), []byte("alpha\n"), 0o644))
		_ = os.MkdirAll(filepath.Join(repo, "u/d"), 0o755)
		_ = os.Remove(filepath.Join(repo, "moved"))
		_ = os.RemoveAll(filepath.Join(repo, "moved_d"))
		for _, gone := range []string{"n", "made", "touched", "unpacked"} {
			_ = real.RemoveAll(gone)
		}
		if op == "undo" {
			_, err := a.Call(t.Context(), "write", json.RawMessage(`{"action": "put", "entries": [{"path": "t/f", "content": "put"}]}`))
			succeed(t, err)
		}
		res, err := a.Call(t.Context(), tool, json.RawMessage(args))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := json.Marshal(res)
		succeed(t, err)
		if bytes.Contains(answer, []byte(secretWord)) {
			t.Errorf("call %d told of what is denied: %s", calls, answer)
		}
		if calls == 0 && bytes.Contains(answer, []byte("ERR_INVALID_PARAMETER")) {
			t.Fatalf("a wrong call: %s", answer)
		}
		if !res.IsError {
			done++
		}
	}
	end()
	if after := snapshot(t, secret); after != before {
		t.Errorf("what is denied has changed: %s\nwas %s", after, before)
	}
	// What was copied or packed in the meantime holds nothing of it either.
	_ = filepath.WalkDir(repo, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			if b, _ := os.ReadFile(path); bytes.Contains(b, []byte(secretWord)) {
				t.Errorf("%s holds what is denied", path)
			}
		}
		return nil
	})
	t.Logf("%d calls, %d not refused", calls, done)
}

// snapshot tells all that dir holds.
func snapshot(t *testing.T, dir string) string {
	var b strings.Builder
	succeed(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := e.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(&b, path, fi.Mode(), fi.Sys().(*syscall.Stat_t).Uid, fi.ModTime().UnixNano())
		return nil
	}))
	return b.String()
}

func succeed(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

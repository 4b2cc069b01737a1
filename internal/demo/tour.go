package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A step is one call. Its answer must hold the text want, and be an error just
// where fails says so. $ETAG in the arguments is the last etag seen, $SITE the
// web site of the tour.
type step struct {
	title, tool, args string
	fails             bool
	want              string
}

var steps = []step{
	{"Read a file", "read", `{"operation":"content","sources":["README.md"],"max_chars":200}`, false, `"truncated":true`},
	{"Read the first lines of two files, numbered, in the lean view", "read",
		`{"operation":"content","sources":["registry/op.go","registry/set.go"],"end_line":3,"line_numbers":true,"view":"lean"}`, false, "==> registry/set.go <=="},
	{"Compute a checksum", "read", `{"operation":"content","sources":["README.md"],"format":"checksum"}`, false, `"checksum_algorithm_used":"sha256"`},
	{"Tell a file's metadata", "read", `{"operation":"metadata","sources":["README.md"]}`, false, `"entry_type":"file"`},

	{"Write a file; parents are made", "write", `{"action":"put","entries":[{"path":"notes/today.md","content":"# Today\n"}]}`, false, "File created."},
	{"Replace it if it is still the same", "write", `{"action":"put","entries":[{"path":"notes/today.md","content":"# Today\n\n- one\n","if_match":"$ETAG"}]}`, false, "File overwritten."},
	{"Append to it", "write", `{"action":"put","entries":[{"path":"notes/today.md","content":"- two\n","write_mode":"append"}]}`, false, "Content appended."},
	{"Replace it with an etag that no longer holds", "write", `{"action":"put","entries":[{"path":"notes/today.md","content":"","if_match":"$ETAG"}]}`, true, "ERR_PRECONDITION_FAILED"},
	{"It is as it was", "read", `{"operation":"content","sources":["notes/today.md"],"view":"lean"}`, false, "- two"},
	{"Make a directory", "write", `{"action":"mkdir","entries":[{"path":"backup/2026","recursive":true}]}`, false, `"status":"success"`},
	{"Copy a tree into it", "write", `{"action":"copy","entries":[{"source_path":"notes","destination_path":"backup/2026"}]}`, false, `"status":"success"`},
	{"Rename a file", "write", `{"action":"move","entries":[{"source_path":"notes/today.md","destination_path":"notes/done.md"}]}`, false, `"status":"success"`},
	{"Touch a file that is missing", "write", `{"action":"touch","entries":[{"path":"notes/.keep"}]}`, false, `"status":"success"`},
	{"Delete a tree", "write", `{"action":"delete","entries":[{"path":"notes","recursive":true}]}`, false, `"status":"success"`},
	{"Several in one call; one fails, the other is done", "read", `{"operation":"metadata","sources":["notes/done.md","backup/2026/notes/today.md"]}`, false, "ERR_FS_NOT_FOUND"},

	{"List a directory with the sizes of the directories in it", "list", `{"operation":"entries","path":".","calculate_recursive_size":true}`, false, `"type":"directory"`},
	{"Show a tree in the lean view", "list", `{"operation":"entries","path":".","recursive_depth":3,"view":"lean"}`, false, "today.md"},
	{"Find files by name", "find", `{"base_path":".","match_criteria":[{"type":"name_pattern","pattern":"set*.go"}],"view":"lean"}`, false, "registry/settings.go"},
	{"Find where a text stands", "find", `{"base_path":"registry","match_criteria":[{"type":"content_pattern","pattern":"func Register["}],"include_matches":true,"view":"lean"}`, false, "set.go:"},
	{"Find files by size and type", "find",
		`{"base_path":".","entry_type_filter":"file","match_criteria":[{"type":"metadata_filter","attribute":"size_bytes","operator":"gt","value":4000},{"type":"metadata_filter","attribute":"name","operator":"equals","value":"readme.md"}]}`, false, `"name":"README.md"`},

	{"Write a file to edit", "write", `{"action":"put","entries":[{"path":"src/tide.go","content":"package tide\n\nfunc Hours() int {\n\tif true {\n\t\treturn 12\n\t}\n\treturn 0\n}\n"}]}`, false, "File created."},
	{"Change a line of it", "edit", `{"operation":"apply","changes":[{"path":"src/tide.go","edits":[{"old_text":"return 12","new_text":"return 6"}]}],"view":"lean"}`, false, "+\t\treturn 6"},
	{"A text that is not there; the nearest places are shown", "edit", `{"operation":"apply","changes":[{"path":"src/tide.go","edits":[{"old_text":"return 7","new_text":"return 8"}]}],"view":"lean"}`, true, "{+6+}"},
	{"Replace in several files", "edit", `{"operation":"replace","base_path":"src","glob":"*.go","pattern":"\\bHours\\b","is_regex":true,"replacement":"High$&","view":"lean"}`, false, "+func HighHours() int {"},
	{"Apply a patch that also makes a file", "edit", `{"operation":"patch","base_path":"src","patch":"--- a/tide.go\n+++ b/tide.go\n@@ -1,3 +1,4 @@\n package tide\n \n+// HighHours is half a day's half.\n func HighHours() int {\n--- /dev/null\n+++ b/doc.go\n@@ -0,0 +1 @@\n+package tide\n"}`, false, `"action":"created"`},
	{"Undo that", "edit", `{"operation":"undo"}`, false, `"action":"removed"`},
	{"What was changed lately", "list", `{"operation":"system_info","info_type":"recent_changes"}`, false, `"operation":"edit.undo"`},

	{"Pack a tree", "write", `{"action":"archive","source_paths":["src","README.md"],"archive_path":"backup.tar.gz","format":"tar.gz"}`, false, `"status":"success"`},
	{"List what is in the archive", "list", `{"operation":"entries","path":"backup.tar.gz!/","recursive_depth":2,"view":"lean"}`, false, "tide.go"},
	{"Compare a file with the one in it", "edit", `{"operation":"apply","changes":[{"path":"src/tide.go","edits":[{"start_line":1,"end_line":1,"new_text":"package tides"}]}],"view":"lean"}`, false, "+package tides"},
	{"… as a diff", "read", `{"operation":"diff","sources":["backup.tar.gz!/src/tide.go","src/tide.go"],"view":"lean"}`, false, "+package tides"},
	{"Unpack it elsewhere", "write", `{"action":"unarchive","archive_path":"backup.tar.gz","destination_path":"restored"}`, false, `"extracted_files_count":`},

	{"Read a web page as Markdown", "read", `{"operation":"content","sources":["$SITE/tides"],"format":"markdown","view":"lean"}`, false, "[shore]($SITE/shore)"},
	{"Go on in it; no second request is made", "read", `{"operation":"content","sources":["$SITE/tides"],"format":"markdown","offset":200,"length":80}`, false, `"range_request_status":"simulated"`},
	{"Ask what a URL leads to", "read", `{"operation":"metadata","sources":["$SITE/tides"]}`, false, `"http_status_code":200`},
	{"Read a large photo; it is made smaller", "read", `{"operation":"content","sources":["$SITE/photo.jpg"]}`, false, `"compression_applied":true`},
	{"Read it as an image block that a model can see", "read", `{"operation":"content","sources":["$SITE/photo.jpg"],"format":"media","max_side":800}`, false, `"width":800`},
	{"A page that does not exist", "read", `{"operation":"content","sources":["$SITE/nowhere"]}`, true, "ERR_HTTP_STATUS_ERROR"},

	{"Pack a zip", "write", `{"action":"archive","source_paths":["src"],"archive_path":"report.zip","format":"zip"}`, false, `"status":"success"`},
	{"Open it as a workspace", "zipfs_open", `{"path":"report.zip"}`, false, `"workspace_path":`},
	{"Write a file in it", "zipfs_write", `{"path":"src/notes.txt","content":"high at 06:12\n"}`, false, `"written":true`},
	{"What a sync would write", "zipfs_diff", `{}`, false, "+high at 06:12"},
	{"Close it; the zip gets what changed", "zipfs_close", `{"sync":true}`, false, `"synced":true`},
	{"Read the file in the zip", "read", `{"operation":"content","sources":["report.zip!/src/notes.txt"],"view":"lean"}`, false, "high at 06:12"},

	{"Which agents can be used", "providers_health", `{"providers":["fake"]}`, false, `"ok":true`},
	{"Give one a task; what it changed comes back as a diff", "run_task", `{"provider":"fake","instructions":"Write a note."}`, false, "+hi"},

	{"A path outside of the allowed directories", "read", `{"operation":"content","sources":["/etc/passwd"]}`, true, "ERR_FS_ACCESS_DENIED"},
	{"An argument of the wrong type", "read", `{"operation":"content","sources":"README.md"}`, true, "ERR_INVALID_PARAMETER"},
	{"An operation that does not exist", "read", `{"operation":"summarize","sources":["README.md"]}`, true, "ERR_UNKNOWN_OPERATION_ACTION"},
}

// tour runs the steps against binary on a copy of repository's README.md and
// registry, which it removes at the end. Verbose shows calls and answers.
func tour(binary, repository string, verbose bool, out io.Writer) error {
	tree, err := os.MkdirTemp("", "conduit-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tree)
	if err := os.CopyFS(filepath.Join(tree, "registry"), os.DirFS(filepath.Join(repository, "registry"))); err != nil {
		return err
	}
	readme, err := os.ReadFile(filepath.Join(repository, "README.md"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(tree, "README.md"), readme, 0o644); err != nil {
		return err
	}

	state, err := os.MkdirTemp("", "conduit-demo-state-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(state)

	// A program that plays an agent.
	fake := filepath.Join(state, "fakecli.exe") // a name that every system takes
	build := exec.Command("go", "build", "-o", fake, "./internal/agentcli/testdata/fakecli")
	build.Dir = repository
	if said, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building an agent: %w\n%s", err, said)
	}
	config, err := json.Marshal(map[string]any{"providers": map[string]any{"fake": map[string]any{
		"binary": fake, "inputMode": "stdin", "args": []string{"stdin", "out Wrote a note.", "write note.txt hi"}}}})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(tree, "mcp-conduit.config.json"), config, 0o600); err != nil {
		return err
	}

	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	server := exec.Command(binary)
	server.Dir = tree
	for _, v := range os.Environ() { // the settings of whoever runs the demo are not the demo's
		if !strings.HasPrefix(v, "CONDUIT_") {
			server.Env = append(server.Env, v)
		}
	}
	server.Env = append(server.Env, "CONDUIT_ALLOWED_PATHS="+tree, "CONDUIT_LOG_FILE_PATH=NONE", "CONDUIT_TOOLSETS=core,zipfs,agent",
		"HOME="+state, "USERPROFILE="+state, "LOCALAPPDATA="+state, "XDG_STATE_HOME="+state, "XDG_DATA_HOME="+state)
	session, err := mcp.NewClient(&mcp.Implementation{Name: "demo", Version: "1"}, nil).Connect(ctx, &mcp.CommandTransport{Command: server}, nil)
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", binary, err)
	}
	defer session.Close()

	tools, err := session.ListTools(ctx, nil)
	if err != nil {
		return err
	}
	var names []string
	for _, t := range tools.Tools {
		names = append(names, t.Name)
	}
	fmt.Fprintf(out, "%s serves a copy of README.md and registry/ in %s\nIts tools: %s\n\n", filepath.Base(binary), tree, strings.Join(names, ", "))
	web, err := openSite()
	if err != nil {
		return err
	}
	defer web.Close()
	etag := ""
	var all cost
	slowest, began := cost{}, time.Now()
	for i, s := range steps {
		s.args = strings.NewReplacer("$ETAG", etag, "$SITE", web.URL).Replace(s.args)
		s.want = strings.ReplaceAll(s.want, "$SITE", web.URL)
		start := time.Now()
		res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: s.tool, Arguments: json.RawMessage(s.args)})
		if err != nil {
			return fmt.Errorf("step %d, %q: %w", i+1, s.title, err)
		}
		c := cost{title: s.title, took: time.Since(start), asked: len(s.args)}
		text := ""
		for n, block := range res.Content {
			switch b := block.(type) {
			case *mcp.TextContent:
				c.answered += len(b.Text)
				if n == 0 {
					text = b.Text
				}
			case *mcp.ImageContent:
				c.images += len(b.Data)
			}
		}
		fmt.Fprintf(out, "%3d. %-62s %s\n", i+1, s.title, c)
		if verbose {
			fmt.Fprintf(out, "→ %s %s\n← %s\n\n", s.tool, s.args, readable(text))
		}
		if m := etagField.FindStringSubmatch(text); m != nil {
			etag = m[1]
		}
		if res.IsError != s.fails || !strings.Contains(text, s.want) {
			return fmt.Errorf("step %d, %q: the error flag is %t and must be %t, the answer must hold %q and is\n%s", i+1, s.title, res.IsError, s.fails, s.want, readable(text))
		}
		all.asked, all.answered, all.images = all.asked+c.asked, all.answered+c.answered, all.images+c.images
		if c.took > slowest.took {
			slowest = c
		}
	}
	all.took = time.Since(began)
	fmt.Fprintf(out, "\nAll %d steps ended as they should:\n     %-62s %s\n     %-62s %s\n", len(steps), "in all", all, "the longest: "+slowest.title, slowest)
	if !verbose {
		fmt.Fprintln(out, "With -verbose (make demo verbose=1) each call is shown with its answer.")
	}
	fmt.Fprintln(out)
	return nil
}

// A cost is what a call took and what a model has of it.
type cost struct {
	title                   string
	took                    time.Duration
	asked, answered, images int // bytes
}

func (c cost) String() string {
	text := fmt.Sprintf("%8.1f ms %7d B asked %8d B answered, about %6d tokens", float64(c.took.Microseconds())/1000, c.asked, c.answered, (c.asked+c.answered)/4)
	if c.images > 0 {
		text += fmt.Sprintf(", and %d B of images", c.images)
	}
	return text
}

var etagField = regexp.MustCompile(`"etag":"([^"]+)"`)

const (
	lines   = 16  // shown of an answer
	columns = 140 // shown of a line
)

// readable indents JSON, leaves other text as it is, and clips both.
func readable(text string) string {
	var b bytes.Buffer
	if json.Indent(&b, []byte(text), "", "  ") == nil {
		text = b.String()
	}
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	shown := all[:min(len(all), lines)]
	for i, l := range shown {
		if r := []rune(l); len(r) > columns {
			shown[i] = string(r[:columns]) + " …"
		}
	}
	if more := len(all) - len(shown); more > 0 {
		shown = append(shown, fmt.Sprintf("… (%d more)", more))
	}
	return strings.Join(shown, "\n  ")
}

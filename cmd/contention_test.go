//go:build unix

package cmd_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// beside starts two servers of one user in one project.
func beside(t *testing.T) (dir string, servers [2]*process) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	project := filepath.Join(dir, "project")
	for _, d := range []string{project, filepath.Join(dir, "home")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	env := map[string]string{"HOME": filepath.Join(dir, "home"), "CONDUIT_ALLOWED_PATHS": project, "CONDUIT_PROJECT_ROOT": project}
	for i := range servers {
		servers[i] = start(t, maps.Clone(env))
		servers[i].handshake()
	}
	return project, servers
}

// calls sends both of a pair of calls at once, the n-th to the server of that
// number or both to one, and returns their answers.
func calls(to [2]*process, tool [2]string, args [2]string) (answers [2]reply) {
	if to[0] == to[1] {
		to[0].send(toolCall(0, tool[0], args[0]), toolCall(1, tool[1], args[1]))
		for range answers {
			r := to[0].reply()
			answers[int(r.ID.(float64))] = r
		}
		return answers
	}
	var g sync.WaitGroup
	for i, p := range to {
		g.Go(func() {
			p.send(toolCall(i, tool[i], args[i]))
			answers[i] = p.reply()
		})
	}
	g.Wait()
	return answers
}

// first is the first result of an answer.
func (r reply) first(t *testing.T) (v struct {
	Status, Message, ETag string
	ChangeID              string `json:"change_id"`
	Code                  string `json:"error_code"`
	Error                 string `json:"error_message"`
}) {
	t.Helper()
	text := r.Result.Content[0].Text
	text = strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

func content(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestOneOfTwoHasTheEtag lets two servers write with one etag.
func TestOneOfTwoHasTheEtag(t *testing.T) {
	dir, servers := beside(t)
	name := filepath.Join(dir, "f")
	servers[0].send(toolCall(0, "write", `{"action":"put","entries":[{"path":"f","content":"start"}]}`))
	tag := servers[0].reply().first(t).ETag
	for round := range 60 {
		put := func(who string) string {
			return fmt.Sprintf(`{"action":"put","entries":[{"path":"f","content":"%s %d","if_match":%q}]}`, who, round, tag)
		}
		answers := calls(servers, [2]string{"write", "write"}, [2]string{put("a"), put("b")})
		var won []int
		for i, a := range answers {
			switch r := a.first(t); {
			case r.Status == "success":
				won = append(won, i)
				tag = r.ETag
			case r.Code != "ERR_PRECONDITION_FAILED":
				t.Fatalf("%+v", r)
			}
		}
		if len(won) != 1 {
			t.Fatalf("round %d: %d succeeded with one etag", round, len(won))
		}
		if want := fmt.Sprintf("%c %d", "ab"[won[0]], round); content(t, name) != want {
			t.Fatalf("round %d: the file has %q, told as written was %q", round, content(t, name), want)
		}
	}
}

// TestEditsWaitForEachOther lets two servers, and one by itself, change one file
// at the same time: all succeed and all of them are in it.
func TestEditsWaitForEachOther(t *testing.T) {
	const rounds = 50
	tools := map[string]func(who string, n int) (string, string){
		"apply": func(who string, n int) (string, string) {
			return "edit", fmt.Sprintf(`{"operation":"apply","changes":[{"path":"f","edits":[{"old_text":"%s %d todo","new_text":"%[1]s %d done"}]}]}`, who, n, n)
		},
		"replace": func(who string, n int) (string, string) {
			return "edit", fmt.Sprintf(`{"operation":"replace","paths":["f"],"pattern":"%s %d todo","replacement":"%[1]s %d done"}`, who, n, n)
		},
		"all or nothing": func(who string, n int) (string, string) {
			return "edit", fmt.Sprintf(`{"operation":"apply","all_or_nothing":true,"changes":[{"path":"f","edits":[{"old_text":"%s %d todo","new_text":"%[1]s %d done"}]}]}`, who, n, n)
		},
		"patch": func(who string, n int) (string, string) {
			return "edit", fmt.Sprintf(`{"operation":"patch","patch":"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-%s %d todo\n+%[1]s %d done\n"}`, who, n, n)
		},
		"append": func(who string, n int) (string, string) {
			return "write", fmt.Sprintf(`{"action":"put","entries":[{"path":"f","content":"%s %d done\n","write_mode":"append"}]}`, who, n)
		},
	}
	dir, servers := beside(t)
	name := filepath.Join(dir, "f")
	for how, to := range map[string][2]*process{"two servers": servers, "one server": {servers[0], servers[0]}} {
		for _, pair := range [][2]string{{"apply", "apply"}, {"apply", "replace"}, {"patch", "apply"}, {"patch", "patch"}, {"all or nothing", "replace"}, {"append", "apply"}} {
			t.Run(how+", "+pair[0]+" and "+pair[1], func(t *testing.T) {
				var text strings.Builder
				for n := range rounds {
					fmt.Fprintf(&text, "a %d todo\n--\nb %d todo\n--\n", n, n)
				}
				if err := os.WriteFile(name, []byte(text.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				for n := range rounds {
					var tool, args [2]string
					for i, who := range []string{"a", "b"} {
						tool[i], args[i] = tools[pair[i]](who, n)
					}
					for i, answer := range calls(to, tool, args) {
						if r := answer.first(t); r.Status != "success" {
							t.Errorf("round %d: %s: %+v", n, pair[i], r)
						}
					}
				}
				got := content(t, name)
				for n := range rounds {
					for _, who := range []string{"a", "b"} {
						if line := fmt.Sprintf("%s %d done\n", who, n); !strings.Contains(got, line) {
							t.Errorf("told as done and absent: %s", line)
						}
					}
				}
			})
		}
	}
}

// TestUndoAgainstChangesInFlight undoes a change while the file is changed again:
// the undo is refused or done, and what was told as written stays.
func TestUndoAgainstChangesInFlight(t *testing.T) {
	const rounds = 80
	dir, servers := beside(t)
	name := filepath.Join(dir, "f")
	for how, to := range map[string][2]*process{"two servers": servers, "one server": {servers[0], servers[0]}} {
		for what, c := range map[string]struct {
			tool, args string
			want       func(undone bool) []string
		}{
			"edit": {"edit", `{"operation":"apply","changes":[{"path":"f","edits":[{"old_text":"second","new_text":"SECOND"}]}]}`, func(undone bool) []string {
				if undone {
					return []string{"first\nSECOND\n"}
				}
				return []string{"FIRST\nSECOND\n"}
			}},
			"put":    {"write", `{"action":"put","entries":[{"path":"f","content":"put"}]}`, func(bool) []string { return []string{"put"} }},
			"delete": {"write", `{"action":"delete","entries":[{"path":"f"}]}`, func(undone bool) []string { return []string{"absent"} }},
		} {
			t.Run(how+", "+what, func(t *testing.T) {
				lost := 0
				for n := range rounds {
					if err := os.WriteFile(name, []byte("first\nsecond\n"), 0o644); err != nil {
						t.Fatal(err)
					}
					to[0].send(toolCall(0, "edit", `{"operation":"apply","changes":[{"path":"f","edits":[{"old_text":"first","new_text":"FIRST"}]}]}`))
					id := to[0].reply().first(t).ChangeID
					answers := calls(to, [2]string{"edit", c.tool}, [2]string{fmt.Sprintf(`{"operation":"undo","change_id":%q}`, id), c.args})
					undo, change := answers[0].first(t), answers[1].first(t)
					if undo.Status != "success" && undo.Code != "ERR_PRECONDITION_FAILED" || change.Status != "success" {
						t.Fatalf("round %d: %+v\n%+v", n, undo, change)
					}
					got := "absent"
					if b, err := os.ReadFile(name); err == nil {
						got = string(b)
					}
					if !slices.Contains(c.want(undo.Status == "success"), got) {
						lost++
						t.Logf("round %d: undo %s %s, and the file has %q", n, undo.Status, undo.Error, got)
					}
				}
				if lost > 0 {
					t.Errorf("%d of %d were lost", lost, rounds)
				}
			})
		}
	}
}

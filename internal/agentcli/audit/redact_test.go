package audit_test

import (
	"bytes"
	"encoding/json"
	"math/rand"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/audit"
)

// TestWhatIsASecret: by name or by shape, never by length alone.
func TestWhatIsASecret(t *testing.T) {
	dir := t.TempDir()
	for entry, secret := range map[string]bool{
		"API_BASE_URL=https://api.example.org/v1/models": false, "PYTHONPATH=/srv/lib/python3/site-packages": false, "TASK=task-2026-11-21T07-08-09-123Z-abc123": false,
		"MODEL=claude-opus-4-20260101-with-thinking": false, "AUTHOR=somebody-with-a-long-name": false, "KEYBOARD_LAYOUT=german-without-dead-keys": false, "PWD=/home/me/project/of/mine": false,
		"USE_AUTH=true": false, "TOKEN_URL=https://login.example.org/token": false, "GOOGLE_APPLICATION_CREDENTIALS=" + dir: false, "COMMIT=0123456789abcdef0123456789abcdef01234567": false,
		"NODE_OPTIONS=--max-old-space-size=4096 --no-warnings": false, "LANG=en_US.UTF-8": false, "PIN_TOKEN=123": false,
		"API_KEY=hunter2": true, "api_key=hunter2": true, "GITHUBTOKEN=abcd1234": true, "DB_PASS=abcd": true, "MY_PASSWORD=open sesame": true, "SESSION_COOKIE=a=b; c=d": true, "APIKEY=x1y2": true, "SENTRY_DSN=https://abc@sentry.example.org/1": true,
		"AWS_SECRET_ACCESS_KEY=/wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY": true,
		"HTTP_PROXY=http://me:pa55@proxy.example.org:3128":                true, "WHATEVER=sk-proj-" + strings.Repeat("d", 24): true, "VALUE=ghp_" + strings.Repeat("a1", 18): true,
		"BLOB=aZ3kQ9xW2mN8vB5cR7tY1uP4": true, "PEM=-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----": true,
	} {
		_, value, _ := strings.Cut(entry, "=")
		text := "it is " + value + " here"
		if got := audit.NewRedactor([]string{entry}).Text(text); (got != text) != secret || secret && strings.Contains(got, value) {
			t.Errorf("%s: %q", entry, got)
		}
	}
	r := audit.NewRedactor([]string{"HTTP_PROXY=http://me:pa55@proxy.example.org:3128"})
	if got := r.Text("password pa55"); got != "password [hidden]" {
		t.Error(got)
	}
}

// TestHowASecretIsWritten: whatever a program makes of it on the way.
func TestHowASecretIsWritten(t *testing.T) {
	for _, value := range []string{"hunter2hunter2", "open  sesame\tnow", "line one\nline two\nline three", `a"b\c/d<e>`, "pässwörd 𝄞 ✓", `\\server\share`, "  padded value ", "x\\ny"} {
		r := audit.NewRedactor([]string{"A_SECRET=" + value, "B_SECRET=another"})
		plain, _ := json.Marshal(value)
		var loose bytes.Buffer
		enc := json.NewEncoder(&loose)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(value); err != nil {
			t.Fatal(err)
		}
		ascii := strings.NewReplacer("ä", `\u00e4`, "ö", `\u00F6`, "𝄞", `\ud834\udd1e`, "✓", `\u2713`, "/", `\/`).Replace(strings.Trim(strings.TrimSpace(loose.String()), `"`))
		twice, _ := json.Marshal(string(plain))
		thrice, _ := json.Marshal(string(twice))
		for how, written := range map[string]string{
			"as it is": value, "in JSON": string(plain), "in JSON for people": loose.String(), "in ASCII": ascii, "in JSON in JSON": string(twice), "in that in JSON": string(thrice),
			"in one line": strings.Join(strings.Fields(value), " "), "indented": strings.ReplaceAll(value, "\n", "\n      "),
		} {
			whole := "before " + written + " after"
			if got := r.Text(whole); strings.Contains(got, strings.Fields(value)[0]) || !strings.Contains(got, "before ") || !strings.HasSuffix(got, " after") || !strings.Contains(got, "[hidden]") {
				t.Errorf("%q %s: %q of %q", value, how, got, whole)
			}
			for size := 1; size < len(whole); size++ {
				var out bytes.Buffer
				w := r.Writer(&out)
				for i := 0; i < len(whole); i += size {
					if _, err := w.Write([]byte(whole[i:min(i+size, len(whole))])); err != nil {
						t.Fatal(err)
					}
				}
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				if got, want := out.String(), r.Text(whole); got != want {
					t.Errorf("%q %s, in pieces of %d: %q, not %q", value, how, size, got, want)
				}
			}
		}
	}
}

// TestLinesStayObjects: what an agent prints is still read after secrets were
// taken out of it.
func TestLinesStayObjects(t *testing.T) {
	r := audit.NewRedactor([]string{"PASS=123456", `ODD_KEY=x":"y`, "NAME_TOKEN=someword"})
	for in, want := range map[string]string{
		`{"text":"it is 123456"}`:            `{"text":"it is [hidden]"}`,
		`{"n":123456,"text":"123456"}`:       `{"n":123456,"text":"[hidden]"}`,
		`{"x":"y","z":["someword",{"a":1}]}`: `{"x":"y","z":["[hidden]",{"a":1}]}`,
		`plain 123456`:                       `plain [hidden]`,
		`{broken 123456`:                     `{broken [hidden]`,
		`{"none":true}`:                      `{"none":true}`,
	} {
		if got := string(r.Line([]byte(in))); got != want {
			t.Errorf("%s became %s, not %s", in, got, want)
		}
	}
}

// TestStreams: pieces of any size give what the whole gives.
func TestStreams(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	r := audit.NewRedactor([]string{"A_KEY=abab", "B_KEY=ab\\ab", "C_KEY=ab ab\nba", `D_KEY=b"a"`})
	alphabet := []string{"a", "b", " ", "\\", "n", "\"", "ab", "abab", "\n", "\\n", `\"`, "u00", "\\u0061"}
	for range 3000 {
		var in strings.Builder
		for range random.Intn(20) {
			in.WriteString(alphabet[random.Intn(len(alphabet))])
		}
		var out bytes.Buffer
		w := r.Writer(&out)
		for rest := in.String(); rest != ""; {
			n := min(1+random.Intn(5), len(rest))
			if _, err := w.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got, want := out.String(), r.Text(in.String()); got != want {
			t.Fatalf("%q: in pieces %q, at once %q", in.String(), got, want)
		}
	}
}

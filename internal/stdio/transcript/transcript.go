// Package transcript replays recorded stdio sessions against a server, in tests.
//
// A transcript is a txtar archive: a comment that says what it shows, an
// optional file "env" with settings (NAME=value a line), and files "in" and
// "out" by turns. The server gets what an "in" holds and must then answer with
// the messages of the following "out", in any order. After the last "in" the
// input ends, and after the last "out" the server must leave without another
// word.
//
// In an "in", these stand for what a text file cannot show well:
//
//	<BOM> <NUL> <CR> <SP> <TAB>  the character
//	<FF>                         a byte that is not UTF-8
//	<c*N>                        the character c, N times
//	<END>                        nothing, and the line has no end
//
// A line of an "out" is JSON. "*" in it matches any value; a member named "*"
// allows members that are not listed. All else must be equal.
package transcript

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/tools/txtar"
)

// patience is how long a server may take for its next message before it is taken
// for one that hangs.
const patience = 5 * time.Minute

// Run replays every transcript in dir, each in a subtest. Dial starts a server
// with the given settings; closing in ends its input, and out ends when it
// leaves.
func Run(t *testing.T, dir string, dial func(t *testing.T, env map[string]string) (in io.WriteCloser, out io.Reader)) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no transcripts in %s (%v)", dir, err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			replay(t, archive.Files, func(env map[string]string) (io.WriteCloser, io.Reader) { return dial(t, env) })
		})
	}
}

func replay(t testing.TB, files []txtar.File, dial func(env map[string]string) (io.WriteCloser, io.Reader)) {
	env := map[string]string{}
	if files[0].Name == "env" {
		for line := range strings.Lines(string(files[0].Data)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			env[name] = value
		}
		files = files[1:]
	}
	in, out := dial(env)
	messages := receive(out)
	feed := make(chan []byte, len(files))
	go func() { // on its own, since a server that does not read must not hang the test
		defer in.Close()
		for b := range feed {
			in.Write(b)
		}
	}()
	end := sync.OnceFunc(func() { close(feed) })
	defer func() { // where it fails under way
		end()
		go func() {
			for range messages {
			}
		}()
	}()
	last := 0
	for i, f := range files {
		if f.Name == "in" {
			last = i
		}
	}
	for i, f := range files {
		switch f.Name {
		case "in":
			feed <- unfold(f.Data)
			if i == last {
				end()
			}
		case "out":
			expect(t, messages, f.Data)
		default:
			t.Fatalf("a transcript has no file %q", f.Name)
		}
	}
	if m, ok := take(t, messages); ok {
		t.Errorf("unexpected: %s", m)
	}
}

// receive sends each message that out brings, without its framing.
func receive(out io.Reader) <-chan []byte {
	messages := make(chan []byte)
	go func() {
		defer close(messages)
		r := bufio.NewReader(out)
		for {
			line, err := r.ReadBytes('\n')
			if length, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
				n, _ := strconv.Atoi(strings.TrimSpace(string(length)))
				line = make([]byte, n+len("\r\n"))
				_, err = io.ReadFull(r, line)
			}
			if len(line) > 0 {
				messages <- line
			}
			if err != nil {
				return
			}
		}
	}()
	return messages
}

func take(t testing.TB, messages <-chan []byte) (m []byte, ok bool) {
	t.Helper()
	select {
	case m, ok = <-messages:
		return m, ok
	case <-time.After(patience):
		t.Fatal("the server is silent")
		return nil, false
	}
}

// expect takes as many messages as data has lines and matches them up.
func expect(t testing.TB, messages <-chan []byte, data []byte) {
	t.Helper()
	var wants []string
	for line := range strings.Lines(string(data)) {
		wants = append(wants, strings.TrimSpace(line))
	}
	for n := len(wants); n > 0; n-- {
		got, ok := take(t, messages)
		if !ok {
			t.Fatalf("the server left; still expected:\n%s", strings.Join(wants, "\n"))
		}
		i := match(t, wants, got)
		if i < 0 {
			t.Fatalf("unexpected: %s\nexpected one of:\n%s", got, strings.Join(wants, "\n"))
		}
		wants = append(wants[:i], wants[i+1:]...)
	}
}

// match returns the index of the first pattern that message fits, or -1.
func match(t testing.TB, patterns []string, message []byte) int {
	t.Helper()
	got, err := decode(string(message))
	if err != nil {
		t.Fatalf("not JSON: %q", message)
	}
	for i, p := range patterns {
		want, err := decode(p)
		if err != nil {
			t.Fatalf("the transcript is not JSON: %s", p)
		}
		if fits(want, got) {
			return i
		}
	}
	return -1
}

func decode(s string) (v any, err error) {
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

func fits(want, got any) bool {
	if want == "*" {
		return true
	}
	switch want := want.(type) {
	case map[string]any:
		got, ok := got.(map[string]any)
		if !ok {
			return false
		}
		for k := range want {
			if g, ok := got[k]; k != "*" && (!ok || !fits(want[k], g)) {
				return false
			}
		}
		_, more := want["*"]
		return more || len(want) == len(got)
	case []any:
		got, ok := got.([]any)
		if !ok || len(want) != len(got) {
			return false
		}
		for i := range want {
			if !fits(want[i], got[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(want, got)
}

var (
	special = regexp.MustCompile(`<END>\n|<(BOM|NUL|CR|SP|TAB|FF)>|<(.)\*(\d+)>`)
	named   = map[string]string{"BOM": "\uFEFF", "NUL": "\x00", "CR": "\r", "SP": " ", "TAB": "\t", "FF": "\xff"}
)

// unfold replaces the marks of an "in".
func unfold(data []byte) []byte {
	return special.ReplaceAllFunc(data, func(mark []byte) []byte {
		parts := special.FindSubmatch(mark)
		if name := string(parts[1]); name != "" {
			return []byte(named[name])
		}
		n, err := strconv.Atoi(string(parts[3]))
		if err != nil {
			return nil // <END>
		}
		return bytes.Repeat(parts[2], n)
	})
}

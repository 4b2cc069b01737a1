package transcript

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"golang.org/x/tools/txtar"
)

// A recorder takes down how a replay fails.
type recorder struct {
	testing.TB
	failures []string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Fatal(args ...any) { r.Fatalf("%s", fmt.Sprint(args...)) }

// played replays a transcript to a server that answers each line with what reply
// makes of it, and says last when the input ends.
func played(t *testing.T, transcript string, reply func(line string) string, last string) (failures []string, env map[string]string) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{TB: t}
		done := make(chan struct{})
		in, feed := io.Pipe()
		out, sink := io.Pipe()
		go func() {
			defer close(done)
			replay(r, txtar.Parse([]byte(transcript)).Files, func(given map[string]string) (io.WriteCloser, io.Reader) {
				env = maps.Clone(given)
				go func() {
					for lines := bufio.NewScanner(in); lines.Scan(); {
						io.WriteString(sink, reply(lines.Text()))
					}
					io.WriteString(sink, last)
					sink.Close()
				}()
				return feed, out
			})
		}()
		<-done
		feed.Close() // a replay that failed may leave it open
		failures = r.failures
	})
	return failures, env
}

func echo(line string) string { return line + "\n" }

func TestReplay(t *testing.T) {
	const two = "-- in --\n{\"a\":1}\n{\"a\":2}\n"
	for name, c := range map[string]struct {
		transcript string
		reply      func(string) string
		last       string
		failure    string // a part of it; empty: there is none
	}{
		"in order":           {two + "-- out --\n{\"a\":1}\n{\"a\":2}\n", echo, "", ""},
		"in any order":       {two + "-- out --\n{\"a\":2}\n{\"a\":1}\n", echo, "", ""},
		"by turns":           {"-- in --\n1\n-- out --\n1\n-- in --\n2\n-- out --\n2\n", echo, "", ""},
		"at the end":         {"-- in --\n1\n-- out --\n1\n\"bye\"\n", echo, "\"bye\"\n", ""},
		"framed":             {"-- in --\n1\n-- out --\n{\"b\":[1]}\n", func(string) string { return "Content-Length: 9\r\n\r\n{\"b\":[1]}" }, "", ""},
		"values":             {two + "-- out --\n{\"a\":\"*\"}\n{\"*\":\"*\"}\n", echo, "", ""},
		"another value":      {two + "-- out --\n{\"a\":1}\n{\"a\":3}\n", echo, "", "unexpected: {\"a\":2}"},
		"one twice":          {two + "-- out --\n{\"a\":1}\n{\"a\":1}\n", echo, "", "unexpected: {\"a\":2}"},
		"one too many":       {two + "-- out --\n{\"a\":1}\n", echo, "", "unexpected: {\"a\":2}"},
		"a last word":        {two + "-- out --\n{\"a\":1}\n{\"a\":2}\n", echo, "{}\n", "unexpected: {}"},
		"one too few":        {two + "-- out --\n{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n", echo, "", "the server left; still expected:\n{\"a\":3}"},
		"silence":            {"-- in --\n1\n-- out --\n1\n-- in --\n2\n", func(string) string { return "" }, "", "the server is silent"},
		"no JSON":            {"-- in --\n{bad\n-- out --\n{}\n", echo, "", "not JSON"},
		"no JSON in ours":    {"-- in --\n{}\n-- out --\n{bad\n", echo, "", "the transcript is not JSON: {bad"},
		"a file of no sense": {"-- in --\n1\n-- out --\n1\n-- middle --\n", echo, "", `no file "middle"`},
	} {
		t.Run(name, func(t *testing.T) {
			failures, _ := played(t, c.transcript, c.reply, c.last)
			switch got := strings.Join(failures, "; "); {
			case c.failure == "" && got != "":
				t.Errorf("it failed: %s", got)
			case !strings.Contains(got, c.failure):
				t.Errorf("it failed with %q, want %q", got, c.failure)
			}
		})
	}
}

func TestEnv(t *testing.T) {
	_, env := played(t, "-- env --\nA=1\n B=x=y \n-- in --\n1\n-- out --\n1\n", echo, "")
	if want := map[string]string{"A": "1", "B": "x=y"}; !maps.Equal(env, want) {
		t.Errorf("got %v", env)
	}
}

func TestFits(t *testing.T) {
	for _, c := range []struct {
		want, got string
		fits      bool
	}{
		{`"*"`, `{"a":[1]}`, true}, {`1`, `1`, true}, {`1`, `1.0`, false}, {`9007199254740993`, `9007199254740992`, false}, {`"1"`, `1`, false}, {`null`, `false`, false},
		{`{"a":1}`, `{"a":1}`, true}, {`{"a":1}`, `{"a":1,"b":2}`, false}, {`{"a":1,"*":"*"}`, `{"a":1,"b":2}`, true}, {`{"a":1,"*":"*"}`, `{"b":2}`, false}, {`{"a":"*"}`, `{}`, false}, {`{}`, `[]`, false},
		{`{"a":{"b":"*"}}`, `{"a":{"b":{}}}`, true}, {`[1,"*"]`, `[1,2]`, true}, {`[1]`, `[1,2]`, false}, {`[1]`, `{}`, false}, {`[[2]]`, `[[1]]`, false},
	} {
		want, err := decode(c.want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decode(c.got)
		if err != nil {
			t.Fatal(err)
		}
		if fits(want, got) != c.fits {
			t.Errorf("%s fits %s: want %t", c.got, c.want, c.fits)
		}
	}
}

func TestUnfold(t *testing.T) {
	for in, want := range map[string]string{
		"plain\n": "plain\n", "<BOM>{<NUL>}<CR>\n": "\uFEFF{\x00}\r\n", "<SP><TAB><FF>": " \t\xff", "a<x*3>b": "axxxb", "<[*2>": "[[", "<x*0>": "",
		"last<END>\n": "last", "<END>": "<END>", "<b>": "<b>", "<xy*2>": "<xy*2>",
	} {
		if got := string(unfold([]byte(in))); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

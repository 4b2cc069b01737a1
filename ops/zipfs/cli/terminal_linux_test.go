package cli_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/conduit-mcp/conduit-mcp/cmd"
)

// newTerminal returns both ends of a terminal: what a person has, and what a
// program has.
func newTerminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { person.Close() })
	if err := unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetUint32(int(person.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	return person, program
}

// At a terminal, a person is asked what becomes of changes.
func TestAskedAtATerminal(t *testing.T) {
	for answer, want := range map[string]struct {
		code int
		said string
	}{"y": {0, "synced and closed\n"}, "no": {0, "closed\n"}, "": {1, ""}} {
		sh := newShell(t)
		sh.run("open $DIR/a.zip", "")
		sh.run("write new.txt --content new", "")
		person, program := newTerminal(t)
		if _, err := io.WriteString(person, answer+"\n"); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		code := cmd.Run([]string{"zip", "close"}, sh.env, program, &out, program)
		if code != want.code || out.String() != want.said {
			t.Errorf("%q: code %d, %q", answer, code, out.String())
		}
		program.Close()
		shown, _ := io.ReadAll(person) // ends with an error, as nobody has the other end
		if !strings.Contains(string(shown), "added new.txt") {
			t.Errorf("%q: %q", answer, shown)
		}
		_, left, _ := sh.run("sessions --quiet", "")
		if (left == "a\n") != (want.code == 1) {
			t.Errorf("%q: open are %q", answer, left)
		}
	}
	_, program := newTerminal(t)
	sh := newShell(t)
	sh.run("open $DIR/a.zip", "")
	if code := cmd.Run([]string{"zip", "path"}, sh.env, program, program, program); code != 0 {
		t.Errorf("path: code %d", code)
	}
}

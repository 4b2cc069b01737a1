package cmd

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// At a terminal a long call tells how far it has come, and nothing that files
// hold reaches the terminal as a command.
func TestAtATerminal(t *testing.T) {
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer person.Close()
	if err := unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetUint32(int(person.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	shown := make(chan string)
	go func() {
		b, _ := io.ReadAll(person) // ends with an error, as nobody has the other end
		shown <- string(b)
	}()
	v := atTerminal(program).(*visible)
	if n, err := io.WriteString(v, "a\x1b]0;title\x07b\u009bc\x7f\r\n\td\re\xc2"); n != 23 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	io.WriteString(v, "\x9b é\n")
	if code := Run([]string{"version", "-q"}, nil, program, program, program); code != 0 {
		t.Errorf("version: %d", code)
	}
	v.progress(1, 0, "begun")
	v.progress(5, 10, "half \x1b[2J")
	v.clear()
	v.clear()
	program.Close()
	got := <-shown
	if want := "a^[]0;title^GbM-^[c^?\r\n\td^Me\xc2M-^[ é\r\n" + thisBuild().Version + "\r\n"; !strings.HasPrefix(got, want) {
		t.Errorf("%q does not begin %q", got, want)
	}
	if want := "1 begun\r\x1b[K50 %, 5 half ^[[2J\r\x1b[K"; !strings.HasSuffix(got, want) {
		t.Errorf("progress is %q, want %q", got, want)
	}
	for rest := got; ; {
		_, after, found := strings.Cut(rest, "\x1b")
		if !found {
			break
		}
		if rest = after; !strings.HasPrefix(rest, "[K") {
			t.Errorf("an escape reached the terminal: %q", got)
		}
	}
}

package cmd

import (
	"fmt"
	"io"
	"io/fs"
	"os"
)

// atTerminal is w, or where that is a person's terminal a writer that shows
// control characters there in place of sending them: names in archives, text of
// files and of other programs may have some.
func atTerminal(w io.Writer) io.Writer {
	if f, ok := w.(*os.File); ok && isTerminal(f) {
		return &visible{file: f}
	}
	return w
}

// visible writes control characters as cat -v does, but for tab and line break.
type visible struct {
	file *os.File // not embedded: it has further ways to write
	busy bool     // a line tells how far a call has come
	lead bool     // the last byte was 0xc2, which begins the control characters above 0x7f
}

// Stat tells commands that this is a terminal.
func (v *visible) Stat() (fs.FileInfo, error) { return v.file.Stat() }

func (v *visible) Write(b []byte) (int, error) {
	shown := make([]byte, 0, len(b))
	for i, c := range b {
		switch {
		case v.lead && c >= 0x80 && c < 0xa0:
			shown = append(shown[:max(0, len(shown)-1)], 'M', '-', '^', c-0x40)
		case c == '\r' && i+1 < len(b) && b[i+1] == '\n':
		case c < ' ' && c != '\n' && c != '\t', c == 0x7f:
			shown = append(shown, '^', c^0x40)
		default:
			shown = append(shown, c)
		}
		v.lead = c == 0xc2
	}
	_, err := v.file.Write(shown)
	return len(b), err
}

// progress tells in one line how far a call has come.
func (v *visible) progress(done, total int64, message string) {
	v.clear()
	v.busy = true
	if total > 0 {
		fmt.Fprintf(v, "%d %%, ", int(100*float64(done)/float64(total)))
	}
	fmt.Fprintf(v, "%d %s", done, message)
}

// clear takes that line away.
func (v *visible) clear() {
	if v.busy {
		io.WriteString(v.file, "\r\x1b[K")
	}
	v.busy = false
}

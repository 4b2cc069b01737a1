package stdio

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A pipe grows with the first long write, and not before.
func TestPipeIsWidened(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	size := func() int {
		n, err := unix.FcntlInt(r.Fd(), unix.F_GETPIPE_SZ, 0)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := size()
	p := &patient{w: w, watch: watch(time.Minute, func() { t.Error("stalled") })}
	if _, err := p.Write(make([]byte, 100)); err != nil || size() != before {
		t.Errorf("a short write: %v, the pipe holds %d, before %d", err, size(), before)
	}
	// Without a reader, only a wider pipe takes all of this.
	w.SetWriteDeadline(time.Now().Add(10 * time.Second))
	if n, err := p.Write(make([]byte, 500_000)); err != nil || n != 500_000 || size() != 1<<20 {
		t.Errorf("a long write: %d bytes, %v, the pipe holds %d", n, err, size())
	}
	widen(p) // which is no file
}

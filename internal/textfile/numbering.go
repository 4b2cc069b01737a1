package textfile

import (
	"bytes"
	"io"
	"strconv"
)

// A numbering writes text with the number of its line and a tab in front of
// each line.
type numbering struct {
	w     io.Writer
	next  int64
	start bool // the next byte begins a line
	out   []byte
}

func (n *numbering) Write(text []byte) (int, error) {
	n.out = n.out[:0]
	for line := range bytes.Lines(text) {
		if n.start {
			n.out = strconv.AppendInt(n.out, n.next, 10)
			n.out = append(n.out, '\t')
			n.next++
		}
		n.out = append(n.out, line...)
		n.start = line[len(line)-1] == '\n'
	}
	if _, err := n.w.Write(n.out); err != nil {
		return 0, err
	}
	return len(text), nil
}

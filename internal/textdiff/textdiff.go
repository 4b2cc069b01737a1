// Package textdiff writes unified diffs that git apply and patch accept.
//
// Lines end with LF and are compared byte for byte, so a CR before it counts.
// The last line of a text may lack its LF, which the diff then says.
package textdiff

import (
	"bytes"
	"context"
	"time"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// DevNull is the name that stands for no file: nameA of a file that is made,
// nameB of one that is deleted.
const DevNull = "/dev/null"

// Options say what a diff looks like.
type Options struct {
	// Context is how many unchanged lines are shown around a change, 0 or more.
	// A diff without any is accepted by patch, and by git apply --unidiff-zero.
	Context int

	// IgnoreWhitespace takes lines for unchanged that differ in white space
	// alone (a missing line end at the end included). They are shown as the first
	// text has them, so such a diff need not turn it into the second.
	IgnoreWhitespace bool

	// Timeout is how long a smallest diff is looked for before a larger, just
	// as valid one is settled for; 0 means 5 seconds.
	Timeout time.Duration
}

const (
	defaultTimeout = 5 * time.Second

	// limit keeps offsets, and sums of two line numbers, within 32 bits.
	limit = 1 << 30
)

// A Diff is the difference between two texts.
type Diff struct {
	Text    string // a unified diff; "" where the texts are equal
	Added   int    // lines that begin with +
	Removed int    // lines that begin with -
}

// Unified returns the text of [Compare].
func Unified(ctx context.Context, a, b []byte, nameA, nameB string, o Options) (string, error) {
	d, err := Compare(ctx, a, b, nameA, nameB, o)
	return d.Text, err
}

// Compare returns the diff that turns a into b. The names stand in its header
// as they are, so tools that strip a directory want them as "a/NAME" and
// "b/NAME"; those with unusual characters are quoted as git quotes them.
//
// It fails with the error of ctx, and with ERR_RESOURCE_LIMIT_EXCEEDED for a
// text of 1 GiB or more.
func Compare(ctx context.Context, a, b []byte, nameA, nameB string, o Options) (Diff, error) {
	if max(len(a), len(b)) >= limit {
		return Diff{}, fault.New(fault.LimitExceeded, "a diff compares texts of less than 1 GiB")
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if bytes.Equal(a, b) {
		return Diff{}, ctx.Err()
	}
	from, tail := commonEnds(a, b)
	changes, err := compare(ctx, a[from:len(a)-tail], b[from:len(b)-tail], o)
	if err != nil || len(changes) == 0 {
		return Diff{}, err
	}
	before := bytes.Count(a[:from], newline)
	for i := range changes {
		changes[i].shift(before)
	}
	w := writer{
		context: o.Context,
		a:       cursor{text: a, at: from, line: before},
		b:       cursor{text: b, at: from, line: before},
	}
	return w.write(changes, nameA, nameB), nil
}

var newline = []byte{'\n'}

// horizon is how many lines of a common end are compared all the same, so that
// the last change can be moved down.
const horizon = 32

// commonEnds returns the lengths of the whole lines that a and b have in common
// at the beginning and at the end.
func commonEnds(a, b []byte) (head, tail int) {
	head = commonPrefix(a, b)
	head = bytes.LastIndexByte(a[:head], '\n') + 1
	a, b = a[head:], b[head:]
	tail = commonSuffix(a, b)
	for range horizon + 1 { // the first line may have begun before the common end
		i := bytes.IndexByte(a[len(a)-tail:], '\n')
		if i < 0 {
			return head, 0
		}
		tail -= i + 1
	}
	return head, tail
}

// block is how much is compared at once where texts are long and alike.
const block = 4096

func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for i+block <= n && bytes.Equal(a[i:i+block], b[i:i+block]) {
		i += block
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

func commonSuffix(a, b []byte) int {
	n := min(len(a), len(b))
	a, b = a[len(a)-n:], b[len(b)-n:]
	i := n
	for i >= block && bytes.Equal(a[i-block:i], b[i-block:i]) {
		i -= block
	}
	for i > 0 && a[i-1] == b[i-1] {
		i--
	}
	return n - i
}

// A change replaces the lines a0 to a1 of the first text by b0 to b1 of the
// second, counted from 0 and without the last.
type change struct{ a0, a1, b0, b1 int }

func (c *change) shift(n int) {
	c.a0, c.a1, c.b0, c.b1 = c.a0+n, c.a1+n, c.b0+n, c.b1+n
}

// compare returns the changes between two texts, in order.
func compare(ctx context.Context, a, b []byte, o Options) ([]change, error) {
	if o.IgnoreWhitespace {
		a, b = squeeze(a), squeeze(b)
	}
	linesA, linesB, common := number(a, b)
	s := search{
		a: shared(linesA, common), b: shared(linesB, common),
		keptA: make([]bool, len(linesA)), keptB: make([]bool, len(linesB)),
		cost: maxCost, deadline: time.Now().Add(o.Timeout), ctx: ctx,
	}
	if err := s.run(); err != nil {
		return nil, err
	}
	return settle(gather(s.keptA, s.keptB), linesA, linesB), nil
}

// gather returns what lies between the lines that are kept.
func gather(keptA, keptB []bool) []change {
	var changes []change
	i, j := 0, 0
	for i < len(keptA) || j < len(keptB) {
		if i < len(keptA) && j < len(keptB) && keptA[i] && keptB[j] {
			i, j = i+1, j+1
			continue
		}
		c := change{a0: i, b0: j}
		for i < len(keptA) && !keptA[i] {
			i++
		}
		for j < len(keptB) && !keptB[j] {
			j++
		}
		c.a1, c.b1 = i, j
		changes = append(changes, c)
	}
	return changes
}

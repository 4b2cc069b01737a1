package patch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// large is a text of n lines of 49 bytes with a newline, a third of them alike.
func large(n int) string {
	var b strings.Builder
	b.Grow(n * 50)
	for i := range n {
		if i%3 == 0 {
			fmt.Fprintf(&b, "%-49s\n", "\t\treturn nil")
		} else {
			fmt.Fprintf(&b, "%-49s\n", fmt.Sprintf("\tline(%d)", i))
		}
	}
	return b.String()
}

// patchFor is a patch of n hunks for large, each off by so many lines.
func patchFor(lines, n, off int) string {
	text := strings.SplitAfter(large(lines), "\n")
	var b strings.Builder
	b.WriteString("--- a/f\n+++ b/f\n")
	for i := range n {
		at := (i + 1) * (lines / (n + 2))
		fmt.Fprintf(&b, "@@ -%d,7 +%d,8 @@\n", at+1+off, at+1+off+i)
		for k, line := range text[at : at+7] {
			if k == 3 {
				b.WriteString("-" + line + "+new line\n+and another\n")
			} else {
				b.WriteString(" " + line)
			}
		}
	}
	return b.String()
}

// 10,000 hunks in a file of 50 MB: at their lines, and all of them elsewhere.
func BenchmarkApply(b *testing.B) {
	const lines, hunks = 1 << 20, 10_000
	text := large(lines)
	for _, off := range []int{0, 25} {
		b.Run(fmt.Sprintf("off %d", off), func(b *testing.B) {
			diff := patchFor(lines, hunks, off)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				files, err := Parse(diff, StripAuto)
				if err != nil {
					b.Fatal(err)
				}
				a, err := Apply(b.Context(), text, files[0])
				if err != nil {
					b.Fatal(err)
				}
				if len(a.Hunks) != hunks || a.Hunks[0].Offset != -off || len(a.Text()) == len(text) {
					b.Fatalf("%d hunks, the first %+v", len(a.Hunks), a.Hunks[0])
				}
			}
		})
	}
}

// One hunk in a file of 50 MB, which is what most patches are.
func BenchmarkApplyOne(b *testing.B) {
	const lines = 1 << 20
	text, diff := large(lines), patchFor(lines, 1, 0)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		files, err := Parse(diff, StripAuto)
		if err != nil {
			b.Fatal(err)
		}
		a, err := Apply(b.Context(), text, files[0])
		if err != nil || len(a.Text()) == len(text) || a.Diff() == "" {
			b.Fatal(err)
		}
	}
}

// A patch made to match almost everywhere, but nowhere, is given up, and so is
// any where the call ends.
func TestSearchIsBounded(t *testing.T) {
	diff := "--- a/f\n+++ b/f\n@@ -7001,2001 +7001,2001 @@\n" + strings.Repeat(" a\n b\n", 1000) + "-b\n+new\n"
	files, err := Parse(diff, StripAuto)
	if err != nil {
		t.Fatal(err)
	}
	m := newImage(strings.Repeat("a\nb\n", 1<<13))
	m.most = 1 << 20
	if _, err := m.find(t.Context(), files[0].Hunks[0].side('+'), 7000, loose, anywhere, -1); code(err) != fault.LimitExceeded || m.spent > m.most+2001 {
		t.Errorf("%v after %d comparisons, want %s", err, m.spent, fault.LimitExceeded)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Apply(ctx, m.text, files[0]); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func code(err error) fault.Code {
	c, _ := fault.Of(err)
	return c
}

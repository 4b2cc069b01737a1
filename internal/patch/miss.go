package patch

import (
	"context"
	"fmt"
	"hash/maphash"
	"strings"
	"unicode"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

const (
	mostShown  = 5    // lines that an error compares
	mostPolled = 200  // lines of a hunk that say where it may belong
	mostCommon = 1000 // a line that occurs more often says nothing
)

// miss says why h, the n-th hunk from 0, has no place.
func (a *applying) miss(ctx context.Context, n int, h *Hunk, old []Line, want int) error {
	m := a.image
	refuse := func(format string, args ...any) error {
		return fault.New(fault.PreconditionFailed, "%s: hunk %d (%s) does not apply, so the file is left as it is: %s",
			fault.ClipTo(a.file.Name(), repeated), n+1, fault.ClipTo(h.Header, repeated), fmt.Sprintf(format, args...))
	}
	if len(old) == 0 {
		if a.anew(h) {
			return refuse("it is that of a new file, but the file exists and has %s. To add lines in front of them, give the first of them as context", lines(m.len()))
		}
		if want > m.len() {
			return refuse("it adds lines after line %d, but the file has %s", want, lines(m.len()))
		}
		return refuse("its place lies inside the lines of a hunk before it")
	}
	if at, err := a.done(ctx, h); err != nil {
		return err
	} else if at >= 0 {
		return refuse("its result is in the file already, at line %d. The patch, or this part of it, seems to have been applied before; leave it out", at+1)
	}
	if at, err := m.find(ctx, old, want, loose, anywhere, -1); err != nil {
		return err
	} else if at >= 0 {
		return refuse("its old lines are at line %d alone, which a hunk before it takes too. Hunks of one file must not overlap; join the two", at+1)
	}
	at, err := m.nearest(ctx, old, want)
	if err != nil {
		return err
	}
	if at < 0 {
		at = max(min(want, m.len()-len(old)), 0)
	}
	agree := 0
	var differ []int
	for i, l := range old {
		if at+i < m.len() && m.same(at+i, l, loose) {
			agree++
		} else {
			differ = append(differ, i)
		}
	}
	var b strings.Builder
	switch {
	case m.len() == 0:
		b.WriteString("the file is empty")
	case agree == 0:
		b.WriteString("the lines that it removes or keeps are not in the file. Read it again and take them from there")
	default:
		fmt.Fprintf(&b, "the nearest place is line %d, where %d of its %d old lines agree", at+1, agree, len(old))
	}
	for _, i := range differ[:min(len(differ), mostShown)] {
		patched, found := fault.ClipTo(strings.TrimSuffix(old[i].Text, "\r"), repeated), "(past the end of the file)"
		if at+i < m.len() {
			found = fault.ClipTo(m.bare(at+i), repeated)
			if patched != found && squeeze(patched) == squeeze(found) {
				patched, found = fault.ClipTo(fmt.Sprintf("%q", patched), repeated), fault.ClipTo(fmt.Sprintf("%q", found), repeated)+" (only white space differs)"
			}
		}
		fmt.Fprintf(&b, "\nline %d, patch: %s\nline %d, file:  %s", at+i+1, patched, at+i+1, found)
	}
	if more := len(differ) - mostShown; more > 0 {
		fmt.Fprintf(&b, "\nand %d more", more)
	}
	return refuse("%s", b.String())
}

// nearest returns where most of the old lines of a hunk are, white space
// ignored, -1 where none is; of equals the one nearest to want.
func (m *image) nearest(ctx context.Context, old []Line, want int) (int, error) {
	seed := maphash.MakeSeed()
	asked := map[uint64][]int32{} // lines of the text by what they have in common with those of the hunk
	polled := old[:min(len(old), mostPolled)]
	for _, l := range polled {
		if s := squeeze(l.loose()); s != "" {
			asked[maphash.String(seed, s)] = nil
		}
	}
	for i := range m.len() {
		if i%4096 == 0 {
			if err := ctx.Err(); err != nil {
				return -1, err
			}
		}
		key := maphash.String(seed, squeeze(m.bare(i)))
		if places, ok := asked[key]; ok && len(places) <= mostCommon {
			asked[key] = append(places, int32(i))
		}
	}
	votes := map[int]int{}
	best := -1
	for n, l := range polled {
		places := asked[maphash.String(seed, squeeze(l.loose()))]
		if len(places) > mostCommon {
			continue
		}
		for _, p := range places {
			at := int(p) - n
			if at < 0 {
				continue
			}
			votes[at]++
			if best < 0 || votes[at] > votes[best] || votes[at] == votes[best] && abs(at-want) < abs(best-want) {
				best = at
			}
		}
	}
	return best, nil
}

// squeeze is a line without white space.
func squeeze(s string) string {
	if !strings.ContainsFunc(s, unicode.IsSpace) {
		return s
	}
	return strings.Join(strings.Fields(s), "")
}

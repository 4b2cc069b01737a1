package zipws

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"io"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/conduit-mcp/conduit-mcp/internal/codec"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// GrepOptions say what is searched for.
type GrepOptions struct {
	Pattern    string // a regular expression of package regexp
	Path       Name
	Glob       string // of files; with a slash on the path below Path, else on the last element
	IgnoreCase bool
	Max        int // lines; 0 for 100
}

const (
	defaultMatches = 100
	longestLine    = 1 << 20 // bytes of a line that are searched
	shownLine      = 500     // bytes of a line that are shown
	peeked         = 8 << 10 // bytes in which a NUL tells that a file is no text
)

// Grep searches the text files of a session, in path order. It takes time in
// proportion to their size, whatever the pattern.
func (m *Workspaces) Grep(ctx context.Context, ref string, o GrepOptions) (g Grep, err error) {
	pattern := o.Pattern
	if o.IgnoreCase {
		pattern = "(?i)" + pattern
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return g, fault.New(InvalidParams, "the pattern is no valid regular expression (RE2 syntax, without look-around and back-references): %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	if rest, ok := strings.CutPrefix(o.Glob, "./"); ok { // as paths may begin
		o.Glob = rest
	}
	o.Glob = strings.TrimLeft(o.Glob, "/")
	if o.Glob != "" && (!doublestar.ValidatePattern(o.Glob) || strings.Count(o.Glob, "{") > 4) {
		return g, fault.New(InvalidParams, "the glob %q is not valid; write it like *.txt or docs/**/*.md", clip(o.Glob))
	}
	if e := impossible(o.Glob); e != "" {
		return g, fault.New(InvalidParams, "the glob %q can match nothing, since no path has the element %q; write it like *.txt or docs/**/*.md", clip(o.Glob), clip(e))
	}
	if o.Max <= 0 {
		o.Max = defaultMatches
	}
	g.Matches = []Match{}
	err = m.viewed(ctx, ref, o.Path, func(v *view, top node) error {
		list := []node{top}
		if top.isDir() {
			if list, err = v.below(ctx, top.name, maxDepth); err != nil {
				return err
			}
		}
		in := bufio.NewReaderSize(nil, 64<<10)
		chosen, unread := 0, []string(nil)
		for _, n := range list {
			if err := ctx.Err(); err != nil {
				return err
			}
			if !n.mode.IsRegular() || !taken(o.Glob, relative(top.name, n.name)) {
				continue
			}
			chosen++
			r, err := v.open(n)
			if err == nil {
				in.Reset(codec.WithContext(ctx, r))
				err = g.search(in, n.name, re, o.Max)
				r.Close()
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if code, _ := Of(err); err != nil && code != PathNotFound { // else it is gone by now
				unread = append(unread, n.name)
			}
			if g.Truncated {
				break
			}
		}
		switch {
		case len(unread) > 0:
			g.Warnings = []string{plural(len(unread), "file", "files") + " could not be read: " + first(unread)}
		case chosen == 0 && o.Glob != "":
			g.Warnings = []string{"No file matches the glob " + clip(o.Glob) + "."}
		}
		return nil
	})
	g.Total = len(g.Matches)
	return g, err
}

// impossible returns the element of a glob that no path has, "" where there is
// none.
func impossible(glob string) string {
	for e := range strings.SplitSeq(glob, "/") {
		if glob != "" && (e == "" || e == "." || e == "..") {
			return cmp.Or(e, "/")
		}
	}
	return ""
}

// taken reports whether glob chooses the file called name.
func taken(glob, name string) bool {
	if glob == "" {
		return true
	}
	if !strings.Contains(glob, "/") {
		name = path.Base(name)
	}
	ok, _ := doublestar.Match(glob, name)
	return ok
}

// search adds the lines of one file.
func (g *Grep) search(in *bufio.Reader, name string, re *regexp.Regexp, most int) error {
	head, err := in.Peek(peeked)
	if err != nil && err != io.EOF {
		return err
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return nil
	}
	var long []byte
	for number := 1; ; number++ {
		line, err := in.ReadSlice('\n')
		if err == bufio.ErrBufferFull {
			long = append(long[:0], line...)
			for err == bufio.ErrBufferFull {
				line, err = in.ReadSlice('\n')
				long = append(long, line[:min(len(line), longestLine-min(len(long), longestLine))]...)
			}
			line = long
		}
		if err != nil && err != io.EOF {
			return err
		}
		if len(line) == 0 && err == io.EOF {
			return nil
		}
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		if at := re.FindIndex(line); at != nil {
			if g.Truncated = len(g.Matches) == most; g.Truncated {
				return nil
			}
			g.Matches = append(g.Matches, Match{name, number, around(line, at[0])})
		}
		if err == io.EOF {
			return nil
		}
	}
}

// around is the part of a line that is shown, with what begins at there. Where
// something is left out, there is an ellipsis.
func around(line []byte, there int) string {
	const cut = "…"
	before, after := "", ""
	if len(line) > shownLine {
		const shown = shownLine - 2*len(cut)
		from := min(max(there-shown/2, 0), len(line)-shown)
		for from > 0 && from < len(line) && !utf8.RuneStart(line[from]) {
			from--
		}
		to := min(from+shown, len(line))
		if from > 0 {
			before = cut
		}
		if to < len(line) {
			after = cut
		}
		line = line[from:to]
	}
	return before + strings.ToValidUTF8(string(line), "\uFFFD") + after
}

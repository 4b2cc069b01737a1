package patch

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// StripAuto has Parse remove the first element of names where it only tells the
// side: a/ and b/, or two directories that were compared.
const StripAuto = -1

// Parse reads a unified diff of one or more files. Text before, between and
// after them is passed over. strip is 0, 1 or [StripAuto]. Line counts of hunks
// that do not fit their bodies are recomputed where it is plain where the body
// ends and that nothing of it is missing, which the file's Notes tell. The error
// is ERR_INVALID_PARAMETER and names the line of the patch.
func Parse(text string, strip int) ([]*File, error) {
	p := parser{lines: strings.Split(text, "\n"), strip: strip}
	if n := len(p.lines) - 1; p.lines[n] == "" {
		p.lines = p.lines[:n]
	}
	var files []*File
	var last *File // a hunk here would belong to it
	for p.next < len(p.lines) {
		switch line := p.line(0); {
		case strings.HasPrefix(line, "diff --git "):
			f, err := p.git()
			if err != nil {
				return nil, err
			}
			if f != nil {
				files, last = append(files, f), f
			}
		case p.headerAt(p.next):
			f, err := p.traditional()
			if err != nil {
				return nil, err
			}
			files, last = append(files, f), f
		case hunkHeader().MatchString(line):
			if last == nil {
				return nil, p.wrong("a hunk without the lines --- and +++ before it that name its file")
			}
			if err := p.hunks(last); err != nil {
				return nil, err
			}
		case strings.HasPrefix(line, "diff --cc "), strings.HasPrefix(line, "diff --combined "), strings.HasPrefix(line, "@@@ -"):
			return nil, p.wrong("a combined diff of a merge, which cannot be applied; give a diff against one of its parents")
		default:
			if strings.TrimSpace(line) != "" {
				last = nil
			}
			p.next++
		}
	}
	if len(files) == 0 {
		return nil, p.none()
	}
	return files, nil
}

type parser struct {
	lines []string
	next  int
	strip int
}

// line returns the n-th line from here without a carriage return at its end,
// "" past the last.
func (p *parser) line(n int) string {
	if p.next+n >= len(p.lines) {
		return ""
	}
	return strings.TrimSuffix(p.lines[p.next+n], "\r")
}

func (p *parser) wrong(format string, args ...any) error { return p.wrongAt(p.next, format, args...) }

func (p *parser) wrongAt(n int, format string, args ...any) error {
	return fault.New(fault.InvalidParameter, "patch line %d: %s", n+1, fmt.Sprintf(format, args...))
}

// none says why nothing was found.
func (p *parser) none() error {
	const right = "start each file with the lines \"--- a/NAME\" and \"+++ b/NAME\", followed by hunks \"@@ -LINE,COUNT +LINE,COUNT @@\""
	for i, line := range p.lines {
		switch {
		case strings.HasPrefix(line, "*** Begin Patch"), strings.HasPrefix(line, "*** Update File"), strings.HasPrefix(line, "***************"):
			return p.wrongAt(i, "not the form of a unified diff; %s", right)
		case strings.HasPrefix(line, "--- ") && i+1 < len(p.lines) && strings.HasPrefix(p.lines[i+1], "+++ "):
			return p.wrongAt(i, "names a file, but no hunk \"@@ -LINE,COUNT +LINE,COUNT @@\" follows")
		}
	}
	return fault.New(fault.InvalidParameter, "patch holds no unified diff; %s", right)
}

// headerAt reports whether the lines from n on name a file and go on with a
// hunk.
func (p *parser) headerAt(n int) bool {
	return n+2 < len(p.lines) && strings.HasPrefix(p.lines[n], "--- ") && strings.HasPrefix(p.lines[n+1], "+++ ") &&
		strings.HasPrefix(p.lines[n+2], "@@")
}

// traditional reads a file that has no header but --- and +++.
func (p *parser) traditional() (*File, error) {
	f := &File{Line: p.next + 1}
	before, never := headerName(p.line(0)[4:])
	after, gone := headerName(p.line(1)[4:])
	if never || before == devNull {
		before = ""
	}
	if gone || after == devNull {
		after = ""
	}
	n := p.strip
	if n == StripAuto {
		n = prefixed(before, after)
	}
	before, after = clean(cut(before, n)), clean(cut(after, n))
	switch {
	case before == "" && after == "":
		return nil, p.wrong("both sides are %s, so no file is named", devNull)
	case before == "":
		f.Action, f.New = Create, after
	case after == "":
		f.Action, f.Old = Delete, before
	default:
		// Without git's header nothing is renamed: one of the two names may be
		// that of a backup, which is the longer one.
		if strings.HasPrefix(after, before) {
			after = before
		}
		f.Action, f.Old, f.New = Modify, after, after
	}
	p.next += 2
	return f, p.hunks(f)
}

// git reads a file that begins with "diff --git". It returns nil where nothing
// about the file changes.
func (p *parser) git() (*File, error) {
	f := &File{Line: p.next + 1, git: true, Action: Modify}
	start := p.next
	first, second, named := twoNames(p.line(0)[len("diff --git "):])
	var from, to string // of a rename or copy, never with a prefix
	var before, after string
	p.next++
header:
	for ; p.next < len(p.lines); p.next++ {
		line := p.line(0)
		key, value := extended(line)
		switch key {
		case "old mode", "deleted file mode", "new mode", "new file mode":
			mode, err := strconv.ParseUint(strings.TrimSpace(value), 8, 32)
			if err != nil {
				return nil, p.wrong("%q is no file mode; write one such as 100644", value)
			}
			if strings.HasPrefix(key, "new") {
				f.NewMode = uint32(mode)
			} else {
				f.OldMode = uint32(mode)
			}
			switch key {
			case "new file mode":
				f.Action = Create
			case "deleted file mode":
				f.Action = Delete
			}
		case "rename from", "rename old":
			f.Action, from = Rename, whole(value)
		case "rename to", "rename new":
			f.Action, to = Rename, whole(value)
		case "copy from":
			f.Action, from = Copy, whole(value)
		case "copy to":
			f.Action, to = Copy, whole(value)
		case "index":
			if i := strings.LastIndexByte(value, ' '); i >= 0 && f.OldMode == 0 && f.NewMode == 0 {
				if mode, err := strconv.ParseUint(value[i+1:], 8, 32); err == nil {
					f.OldMode, f.NewMode = uint32(mode), uint32(mode)
				}
			}
		case "similarity index", "dissimilarity index":
		case "GIT binary patch", "Binary files":
			f.Binary = true
			p.next++
			break header
		case "---":
			if !strings.HasPrefix(p.line(1), "+++ ") {
				break header
			}
			before, _ = headerName(value)
			after, _ = headerName(p.line(1)[4:])
			p.next += 2
			break header
		default:
			break header
		}
	}
	if err := p.gitNames(f, start, [6]string{first, second, from, to, before, after}, named); err != nil {
		return nil, err
	}
	if f.Binary {
		return f, nil
	}
	if before != "" {
		if err := p.hunks(f); err != nil {
			return nil, err
		}
		if len(f.Hunks) == 0 {
			return nil, p.wrong("names the file %s, but no hunk \"@@ -LINE,COUNT +LINE,COUNT @@\" follows", f.Name())
		}
	}
	if f.Action == Modify && len(f.Hunks) == 0 && f.OldMode == f.NewMode {
		return nil, nil
	}
	return f, nil
}

// gitNames settles the names of f by all that its header tells: the two of its
// first line, those of a rename, and those of --- and +++.
func (p *parser) gitNames(f *File, start int, names [6]string, named bool) error {
	first, second, from, to, before, after := names[0], names[1], names[2], names[3], names[4], names[5]
	if before == devNull {
		if f.Action == Modify {
			f.Action = Create
		}
		before = ""
	}
	if after == devNull {
		if f.Action == Modify {
			f.Action = Delete
		}
		after = ""
	}
	n := p.strip
	switch {
	case n != StripAuto:
	case from != "" && to != "":
		n = 0
		if before != "" && before != from || named && first != from {
			n = 1
		}
	case named:
		n = prefixed(first, second)
	default:
		n = prefixed(before, after)
	}
	if from != "" || to != "" {
		if from == "" || to == "" {
			return p.wrongAt(start, "a rename or copy needs both names, from and to")
		}
		f.Old, f.New = clean(cut(from, max(n-1, 0))), clean(cut(to, max(n-1, 0)))
	} else {
		pick := func(own, other string) string {
			if own != "" {
				return clean(cut(own, n))
			}
			return clean(cut(other, n))
		}
		if f.Action != Create {
			f.Old = pick(before, first)
		}
		if f.Action != Delete {
			f.New = pick(after, second)
		}
	}
	if f.Action != Create && f.Old == "" || f.Action != Delete && f.New == "" {
		return p.wrongAt(start, "the header does not tell the file's name; write it as diff --git a/NAME b/NAME")
	}
	if f.Action == Modify && f.Old != f.New {
		return p.wrongAt(start, "the header names two files, %s and %s, but no rename; add the lines rename from and rename to", f.Old, f.New)
	}
	for _, side := range []struct{ told, name string }{{before, f.Old}, {after, f.New}, {first, f.Old}, {second, f.New}} {
		if side.told != "" && side.name != "" && clean(cut(side.told, n)) != side.name {
			return p.wrongAt(start, "the header of one file names two, %s and %s", side.name, side.told)
		}
	}
	return nil
}

// extendedKeys begin the lines of git's header.
var extendedKeys = []string{
	"old mode", "new mode", "deleted file mode", "new file mode", "copy from", "copy to", "rename from", "rename to",
	"rename old", "rename new", "similarity index", "dissimilarity index", "index", "Binary files", "---",
}

// extended splits a line of git's header.
func extended(line string) (key, value string) {
	if line == "GIT binary patch" {
		return line, ""
	}
	for _, key := range extendedKeys {
		if value, ok := strings.CutPrefix(line, key+" "); ok {
			return key, value
		}
	}
	return "", ""
}

// whole reads a name that fills its line.
func whole(s string) string {
	if name, _, ok := unquote(s); ok {
		return name
	}
	return s
}

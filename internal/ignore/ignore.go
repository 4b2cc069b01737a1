// Package ignore decides which files of a tree its .gitignore files leave out.
package ignore

import (
	"bufio"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// A Stack holds the rules in force in one directory: those of its .gitignore
// and of the directories above. It does not change once made. The nil Stack
// ignores nothing but .git.
type Stack struct {
	above *Stack
	rules []rule
	dir   string // where the rules stand, relative to the top of the walk
	down  string // path from there to the top of the walk, for directories above it
}

type rule struct {
	pattern string // of doublestar
	keep    bool   // a pattern with "!"
	dirs    bool   // only directories
	base    bool   // matches the last element alone
	plain   bool   // pattern has no wildcards
}

// maxFile is how much of a .gitignore is read, in bytes.
const maxFile = 1 << 20

// A Directory opens the regular files in it by name.
type Directory interface {
	OpenFile(name string) (*os.File, fs.FileInfo, error)
}

// Enter returns the rules in force in the directory d, whose slash-separated
// path below the top of the walk is rel, "" for the top itself. s holds those of
// its parent.
func (s *Stack) Enter(d Directory, rel string) *Stack {
	f, _, err := d.OpenFile(".gitignore")
	if err != nil {
		return s
	}
	defer f.Close()
	return s.with(parse(f), rel, "")
}

// Above returns the rules that the directories over top contribute: those from
// the root of the Git repository down to, and without, top. Outside of a
// repository, or where its root is out of reach, there are none.
func Above(top place.Place) *Stack {
	var chain []place.Place
	for at := top; ; at = at.Parent() {
		if _, err := at.Child(".git").Stat(); err == nil {
			break
		}
		if at.Name == "." {
			return nil
		}
		chain = append(chain, at.Parent())
	}
	var s *Stack
	for i := len(chain) - 1; i >= 0; i-- {
		f, _, err := chain[i].Child(".gitignore").OpenFileOnly()
		if err != nil {
			continue
		}
		down := strings.TrimPrefix(top.Abs[len(chain[i].Abs):], string(os.PathSeparator))
		s = s.with(parse(f), "", strings.ReplaceAll(down, string(os.PathSeparator), "/"))
		f.Close()
	}
	return s
}

func (s *Stack) with(rules []rule, dir, down string) *Stack {
	if len(rules) == 0 {
		return s
	}
	return &Stack{above: s, rules: rules, dir: dir, down: down}
}

// Ignored reports whether the file or directory with the path rel below the top
// of the walk is left out. What an ignored directory contains is not asked
// about: it is not entered.
func (s *Stack) Ignored(rel string, isDir bool) bool {
	base := path.Base(rel)
	if base == ".git" {
		return true
	}
	for ; s != nil; s = s.above {
		name := rel
		switch {
		case s.down != "":
			name = s.down + "/" + rel
		case s.dir != "":
			name = rel[len(s.dir)+1:]
		}
		for i := len(s.rules) - 1; i >= 0; i-- {
			if r := s.rules[i]; r.matches(name, base, isDir) {
				return !r.keep
			}
		}
	}
	return false
}

func (r rule) matches(name, base string, isDir bool) bool {
	if r.dirs && !isDir {
		return false
	}
	if r.base {
		name = base
	}
	if r.plain {
		return r.pattern == name
	}
	return doublestar.MatchUnvalidated(r.pattern, name)
}

func parse(f io.Reader) []rule {
	var rules []rule
	lines := bufio.NewScanner(io.LimitReader(f, maxFile))
	for first := true; lines.Scan(); first = false {
		line := lines.Text()
		if first {
			line = strings.TrimPrefix(line, "\ufeff")
		}
		if r, ok := parseLine(line); ok {
			rules = append(rules, r)
		}
	}
	return rules
}

func parseLine(line string) (r rule, ok bool) {
	line = trimSpaces(strings.TrimSuffix(line, "\r"))
	if strings.HasPrefix(line, "#") {
		return r, false
	}
	if line, r.keep = strings.CutPrefix(line, "!"); line == "" {
		return r, false
	}
	line, r.dirs = strings.CutSuffix(line, "/")
	r.base = !strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if line == "" {
		return r, false
	}
	if strings.HasSuffix(line, "/**") {
		line += "/*" // what is inside, not the directory itself
	}
	r.plain = !strings.ContainsAny(line, `*?[\`)
	r.pattern = line
	if !r.plain {
		// Braces are ordinary characters here.
		r.pattern = strings.NewReplacer(`\{`, `\{`, `\}`, `\}`, `{`, `\{`, `}`, `\}`).Replace(line)
	}
	return r, doublestar.ValidatePattern(r.pattern)
}

// trimSpaces removes the spaces at the end that no backslash protects.
func trimSpaces(s string) string {
	t := strings.TrimRight(s, " ")
	backslashes := len(t) - len(strings.TrimRight(t, `\`))
	if len(t) < len(s) && backslashes%2 == 1 {
		return t + " "
	}
	return t
}

//go:build interop && linux

package all_test

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A listed is an entry of list, as far as it is compared.
type listed struct {
	Name, Type string
	Size       *int64 `json:"size_bytes"`
	Modified   string `json:"modified_at_iso"`
	Octal      string `json:"permissions_octal"`
	IsLink     bool   `json:"is_symlink"`
	Target     string `json:"symlink_target_path"`
	Children   []listed
}

// An entry is one line of a listing.
type entry struct {
	path, kind            string
	size                  int64 // -1 for none
	modified, permissions string
	target                string
}

// flat makes a list of a tree below dir.
func flat(dir string, list []listed) []entry {
	var all []entry
	for _, l := range list {
		e := entry{path.Join(dir, l.Name), l.Type, -1, l.Modified, strings.TrimPrefix(l.Octal, "0"), l.Target}
		if l.Size != nil {
			e.size = *l.Size
		}
		all = append(append(all, e), flat(e.path, l.Children)...)
	}
	return all
}

// list calls our list for a whole tree.
func (s *server) list(t *testing.T, args object) []entry {
	t.Helper()
	args["operation"] = "entries"
	var list []listed
	remarks := s.call(t, "list", args, &list)
	if strings.Contains(remarks, "MORE_RESULTS") {
		t.Error(remarks)
	}
	return flat("", list)
}

// described is the tree of dir as find(1) describes it.
func described(t *testing.T, dir string) []entry {
	t.Helper()
	parts := fields(output(t, dir, nil, "find", ".", "-mindepth", "1", "-printf", `%P\0%y\0%s\0%T@\0%m\0%l\0`))
	var all []entry
	for ; len(parts) >= 6; parts = parts[6:] {
		size, err := strconv.ParseInt(parts[2], 10, 64)
		must(t, err)
		all = append(all, entry{parts[0], parts[1], size, moment(t, parts[3]), octal(parts[4]), parts[5]})
	}
	return all
}

// octal has at least three digits.
func octal(digits string) string { return strings.Repeat("0", max(0, 3-len(digits))) + digits }

// moment is the time of find(1), in seconds, as results show it.
func moment(t *testing.T, seconds string) string {
	t.Helper()
	whole, fraction, _ := strings.Cut(seconds, ".")
	s, err := strconv.ParseInt(whole, 10, 64)
	must(t, err)
	n, err := strconv.ParseInt((fraction + "000000000")[:9], 10, 64)
	must(t, err)
	return time.Unix(s, n).UTC().Format("2006-01-02T15:04:05.000Z")
}

var kinds = map[string]string{"f": "file", "d": "directory"}

func named(e entry) entry {
	e.kind = kinds[e.kind]
	return e
}

// Trees: names, kinds, sizes, times, permissions and targets of links.
func TestListAgainstFind(t *testing.T) {
	dir, err := goSources()
	must(t, err)
	deep := serve(t, dir, map[string]string{"CONDUIT_MAX_RECURSIVE_DEPTH": "100"})
	theirs := described(t, deep.dir)
	for i := range theirs {
		theirs[i] = named(theirs[i])
	}
	same(t, "the sources of Go", deep.list(t, object{"path": ".", "recursive_depth": 100}), theirs)

	s := odd(t, nil)
	r := because(t, append(unseen, "lossy names", "links", "dead links", "specials")...)
	toFile, toDir, dead := linkKinds(t, s.dir)
	theirs = exchanged(r, "specials", described(t, s.dir), func(e entry) entry {
		e.kind = strings.Replace(e.kind, "p", "f", 1)
		return e
	})
	theirs = exchanged(r, "links", theirs, func(e entry) entry {
		for _, name := range append(toFile, toDir...) {
			if e.path == name {
				of := behind(t, s.dir, name)
				of.path, of.target = e.path, e.target
				return of
			}
		}
		return e
	})
	theirs = exchanged(r, "dead links", theirs, func(e entry) entry {
		for _, name := range dead {
			if e.path == name {
				e.kind, e.size, e.permissions = "f", -1, ""
			}
		}
		return e
	})
	theirs = visible(r, theirs, func(e entry) string { return e.path })
	for i := range theirs {
		theirs[i] = named(theirs[i])
	}
	theirs = exchanged(r, "lossy names", theirs, func(e entry) entry { e.path = shown(e.path); return e })
	same(t, "the tree of oddities", s.list(t, object{"path": ".", "recursive_depth": -1}), theirs)
}

// behind describes what a link leads to, by find(1).
func behind(t *testing.T, dir, name string) entry {
	t.Helper()
	parts := fields(output(t, dir, nil, "find", "-H", "./"+name, "-maxdepth", "0", "-printf", `%y\0%s\0%T@\0%m\0`))
	size, err := strconv.ParseInt(parts[1], 10, 64)
	must(t, err)
	return entry{"", strings.Replace(parts[0], "p", "f", 1), size, moment(t, parts[2]), octal(parts[3]), ""}
}

// Recursive sizes: what du(1) sums up, but for what is no file.
func TestSizesAgainstDu(t *testing.T) {
	dir, err := goSources()
	must(t, err)
	deep := serve(t, dir, map[string]string{"CONDUIT_MAX_RECURSIVE_DEPTH": "100"})
	r := because(t, "no files")
	var theirs []entry
	for _, part := range fields(output(t, deep.dir, nil, "du", "--bytes", "--apparent-size", "--null", "--all", ".")) {
		size, name, _ := strings.Cut(part, "\t")
		n, err := strconv.ParseInt(size, 10, 64)
		must(t, err)
		if name != "." {
			theirs = append(theirs, entry{path: strings.TrimPrefix(name, "./"), size: n})
		}
	}
	others := map[string]int64{} // what du adds for directories and the like
	for _, e := range described(t, deep.dir) {
		if e.kind == "f" {
			continue
		}
		for at := e.path; at != "."; at = path.Dir(at) {
			others[at] += e.size
		}
	}
	theirs = exchanged(r, "no files", theirs, func(e entry) entry { e.size -= others[e.path]; return e })
	var ours []entry
	for _, e := range deep.list(t, object{"path": ".", "recursive_depth": 100, "calculate_recursive_size": true}) {
		ours = append(ours, entry{path: e.path, size: e.size})
	}
	same(t, "the sources of Go", ours, theirs)

	// Each by itself, since hard links count once for each.
	s := odd(t, map[string]string{"CONDUIT_MAX_RECURSIVE_DEPTH": "100"})
	r = because(t, "no files", "denied", "temporary")
	ours, theirs = nil, nil
	for _, e := range s.list(t, object{"path": ".", "calculate_recursive_size": true}) {
		if e.kind != "directory" {
			continue
		}
		ours = append(ours, entry{path: e.path, size: e.size})
	}
	for _, name := range paths(t, s.dir, nil, "find", ".", "-mindepth", "1", "-maxdepth", "1", "-type", "d", "-print0") {
		var n int64
		_, err := fmt.Sscan(string(output(t, s.dir, []int{1}, "du", "--bytes", "--apparent-size", "--summarize", "./"+name)), &n)
		must(t, err)
		rest := s.sum(t, "./"+name, "!", "-type", "f")
		temporary := s.sum(t, "./"+name, "-name", temporaryName)
		if rest > 0 {
			r.note("no files", 1)
		}
		if temporary > 0 {
			r.note("temporary", 1)
		}
		theirs = append(theirs, entry{path: name, size: n - rest - temporary})
	}
	theirs = without(r, "denied", theirs, func(e entry) bool { return e.path == "secret" })
	same(t, "the tree of oddities", ours, theirs)
}

// sum adds up the sizes of what find(1) finds.
func (s *server) sum(t *testing.T, args ...string) (total int64) {
	t.Helper()
	for _, size := range fields(output(t, s.dir, nil, "find", append(args, "-printf", `%s\0`)...)) {
		n, err := strconv.ParseInt(size, 10, 64)
		must(t, err)
		total += n
	}
	return total
}

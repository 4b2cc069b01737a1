package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/internal/parallel"
)

// A view is a git directory of our own, over the objects and the working tree of
// a repository: a copy of the rules and of the harmless settings that held when
// it was made, and an index. Filters, and whatever else git may start, are those
// of the user's own configuration. What is changed in the repository's
// afterwards, such as a file that is to be ignored from now on, has no effect.
type view struct {
	g       *Git
	dir     string
	index   string
	linked  bool     // the references are the repository's
	first   string   // tree of the first snapshot
	ignored []string // what the rules left out at that time
	links   []string // entries of the last snapshot that are repositories
}

// settings are those of a repository that say how its files are read.
var settings = []string{
	"core.autocrlf", "core.eol", "core.symlinks", "core.filemode", "core.ignorecase", "core.precomposeunicode", "core.excludesfile", "core.attributesfile",
	"core.bigfilethreshold", "core.checkroundtripencoding", "core.protecthfs", "core.protectntfs", "status.showuntrackedfiles", "status.renames", "diff.renames", "diff.renamelimit",
}

func (g *Git) newView(list string) (_ *view, err error) {
	v := &view{g: g}
	if v.dir, err = os.MkdirTemp("", "conduit-index-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(v.dir)
		}
	}()
	v.index = filepath.Join(v.dir, "index")
	config, format := "", "[core]\n\trepositoryformatversion = 0\n"
	for entry := range strings.SplitSeq(list, "\x00") {
		key, value, ok := strings.Cut(entry, "\n")
		if !ok {
			value = "true"
		}
		section, name, _ := strings.Cut(key, ".")
		switch {
		case slices.Contains(settings, key):
			config += fmt.Sprintf("[%s]\n\t%s = \"%s\"\n", section, name, strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(value))
		case key == "extensions.objectformat" && value == "sha256":
			format = "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = sha256\n"
		}
	}
	const head = "ref: refs/heads/none\n"
	for name, content := range map[string]string{"HEAD": head, "config": format + config, "objects/x": "", "info/x": "",
		"plain/HEAD": head, "plain/config": format + "[core]\n\tattributesFile = " + os.DevNull + "\n", "plain/refs/x": "", "plain/objects/x": ""} {
		full := filepath.Join(v.dir, name)
		if err = os.MkdirAll(filepath.Dir(full), 0o700); err == nil {
			err = os.WriteFile(full, []byte(content), 0o600)
		}
		if err != nil {
			return nil, err
		}
	}
	// Where links can be made, and references are files, git finds the commit of
	// HEAD by itself.
	v.linked = !strings.Contains(list, "\x00extensions.refstorage\n")
	for _, name := range []string{"refs", "packed-refs"} {
		v.linked = v.linked && os.Symlink(filepath.Join(g.commonDir, name), filepath.Join(v.dir, name)) == nil
	}
	if err = os.Mkdir(filepath.Join(v.dir, "refs"), 0o700); errors.Is(err, fs.ErrExist) {
		err = nil
	}
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"exclude", "attributes"} {
		if err = copyFile(filepath.Join(g.commonDir, "info", name), filepath.Join(v.dir, "info", name)); err != nil {
			return nil, err
		}
	}
	shared, _ := filepath.Glob(filepath.Join(g.gitDir, "sharedindex.*"))
	for _, name := range shared {
		if err = copyFile(name, filepath.Join(v.dir, filepath.Base(name))); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// objects runs git where it knows nothing but the objects: no attribute of a
// file has a say in how it is compared.
func (v *view) objects(ctx context.Context, stdin []byte, out io.Writer, limit int64, args ...string) error {
	plain := filepath.Join(v.dir, "plain")
	env := []string{"GIT_DIR=" + plain, "GIT_OBJECT_DIRECTORY=" + filepath.Join(v.g.commonDir, "objects"), "GIT_ATTR_NOSYSTEM=1"}
	return v.g.run(ctx, plain, env, stdin, out, limit, args...)
}

// env is the environment in which git works on the working tree top.
func (v *view) env(top string) []string {
	return []string{"GIT_DIR=" + v.dir, "GIT_OBJECT_DIRECTORY=" + filepath.Join(v.g.commonDir, "objects"), "GIT_WORK_TREE=" + top, "GIT_INDEX_FILE=" + v.index}
}

func (v *view) git(ctx context.Context, stdin []byte, args ...string) (string, error) {
	return v.g.gitIn(ctx, v.g.top, v.env(v.g.top), stdin, args...)
}

// Status is the repository's, without what is left out. Of repositories in it
// only the commit counts.
func (g *Git) Status(ctx context.Context) (string, error) {
	// Other commands may be reading the view's.
	fresh := filepath.Join(g.view.dir, "HEAD.new")
	_ = os.Remove(fresh)
	var err error
	if g.view.linked {
		err = copyFile(filepath.Join(g.gitDir, "HEAD"), fresh)
	} else {
		head := "ref: refs/heads/none"
		if commit, err := g.at(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"); err == nil {
			head = strings.TrimSpace(commit)
		}
		err = os.WriteFile(fresh, []byte(head+"\n"), 0o600)
	}
	if err != nil {
		return "", err
	}
	if err := os.Rename(fresh, filepath.Join(g.view.dir, "HEAD")); err != nil {
		return "", err
	}
	env := append(g.view.env(g.top), "GIT_INDEX_FILE="+filepath.Join(g.gitDir, "index"))
	args := []string{"status", "--porcelain=v1", "--ignore-submodules=dirty", "--", g.scope}
	return g.gitIn(ctx, g.top, env, nil, append(args, g.exclusions()...)...)
}

// Take makes a tree of the working tree as it is: what git add --all would
// commit with the rules of the first time. What those ignore is not in it.
func (g *Git) Take(ctx context.Context) (Snapshot, error) {
	v := g.view
	first := v.first == ""
	if first {
		if err := copyFile(filepath.Join(g.gitDir, "index"), v.index); err != nil {
			return Snapshot{}, err
		}
	}
	links := v.links
	if first {
		var err error
		if links, err = v.entries(ctx, true); err != nil {
			return Snapshot{}, err
		}
	}
	// Git would look into other repositories by what those say themselves.
	args := []string{"add", "--all", "--", g.scope}
	for _, name := range links {
		if _, err := os.Lstat(filepath.Join(g.top, filepath.FromSlash(name), ".git")); err == nil {
			args = append(args, ":(exclude,top,literal)"+name)
		}
	}
	var ignored, tree string
	both := parallel.New()
	both.Go(func() (err error) { ignored, err = v.ignoredNow(ctx); return err })
	both.Go(func() error { _, err := v.git(ctx, nil, args...); return err })
	if err := both.Wait(); err != nil {
		return Snapshot{}, err
	}
	list := strings.Split(strings.TrimSuffix(ignored, "\x00"), "\x00")
	if first {
		v.ignored = list
	} else if err := v.addHidden(ctx, list); err != nil {
		return Snapshot{}, err
	}
	both = parallel.New()
	both.Go(func() (err error) { tree, err = v.git(ctx, nil, "write-tree", "--missing-ok"); return err })
	both.Go(func() (err error) { v.links, err = v.entries(ctx, false); return err })
	if err := both.Wait(); err != nil {
		return Snapshot{}, err
	}
	s := Snapshot{Tree: strings.TrimSpace(tree)}
	if first {
		v.first = s.Tree
	}
	return s, g.takeNested(ctx, &s)
}

// entries returns the entries of the index that are repositories. With reset it
// has git look at files that it was told not to look at.
func (v *view) entries(ctx context.Context, reset bool) (links []string, err error) {
	out, err := v.git(ctx, nil, "ls-files", "-v", "--stage", "-z", "--", v.g.scope)
	if err != nil {
		return nil, err
	}
	var skipped, assumed strings.Builder
	for entry := range strings.SplitSeq(out, "\x00") {
		info, name, ok := strings.Cut(entry, "\t")
		if !ok {
			continue
		}
		if strings.HasPrefix(info[2:], "160000 ") {
			links = append(links, name)
		}
		if info[0] == 'S' || info[0] == 's' {
			// Of a sparse checkout most are not there, and have not been deleted.
			if _, err := os.Lstat(filepath.Join(v.g.top, filepath.FromSlash(name))); err == nil {
				skipped.WriteString(name + "\x00")
			}
		}
		if info[0] >= 'a' && info[0] <= 'z' {
			assumed.WriteString(name + "\x00")
		}
	}
	for flag, names := range map[string]*strings.Builder{"--no-skip-worktree": &skipped, "--no-assume-unchanged": &assumed} {
		if reset && names.Len() > 0 && err == nil {
			_, err = v.git(ctx, []byte(names.String()), "update-index", "-z", flag, "--stdin")
		}
	}
	return links, err
}

// ignoredNow lists what the present rules leave out, a directory of which that
// is all by its name alone.
func (v *view) ignoredNow(ctx context.Context) (string, error) {
	args := []string{"ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory", "--", v.g.scope}
	return v.git(ctx, nil, append(args, v.g.exclusions()...)...)
}

// addHidden adds what of list, which is ignored now, was not by the rules of the
// first time.
func (v *view) addHidden(ctx context.Context, list []string) error {
	list = slices.DeleteFunc(list, func(name string) bool { return name == "" || slices.Contains(v.ignored, name) })
	if len(list) == 0 {
		return nil
	}
	rules, err := v.rules(ctx)
	if err != nil {
		return err
	}
	defer os.RemoveAll(rules)
	// It prints what is ignored, and fails where nothing is.
	out, err := v.g.gitIn(ctx, rules, v.env(rules), []byte(strings.Join(list, "\x00")+"\x00"), "check-ignore", "-z", "--no-index", "--stdin")
	if failed := new(gitError); err != nil && !(errors.As(err, &failed) && failed.code == 1) {
		return err
	}
	ignored := strings.Split(out, "\x00")
	args := []string{"add", "--force", "--"}
	for _, name := range list {
		if !slices.Contains(ignored, name) {
			args = append(args, ":(top,literal)"+strings.TrimSuffix(name, "/"))
		}
	}
	if len(args) > 3 {
		_, err = v.git(ctx, nil, args...)
		return err
	}
	return nil
}

// rules returns a new directory that holds the .gitignore files of the first
// snapshot, where they stood.
func (v *view) rules(ctx context.Context) (string, error) {
	dir, err := os.MkdirTemp("", "conduit-rules-")
	if err != nil {
		return "", err
	}
	out, err := v.git(ctx, nil, "ls-tree", "-r", "-z", v.first)
	for entry := range strings.SplitSeq(out, "\x00") {
		info, name, ok := strings.Cut(entry, "\t")
		if !ok || path.Base(name) != ".gitignore" || err != nil {
			continue
		}
		var content string
		fields := strings.Fields(info)
		if content, err = v.git(ctx, nil, "cat-file", "blob", fields[2]); err == nil {
			full := filepath.Join(dir, filepath.FromSlash(name))
			if err = os.MkdirAll(filepath.Dir(full), 0o700); err == nil {
				err = os.WriteFile(full, []byte(content), 0o600)
			}
		}
	}
	if err != nil {
		os.RemoveAll(dir)
	}
	return dir, err
}

// takeNested takes the repositories in the working tree, such as submodules.
func (g *Git) takeNested(ctx context.Context, outer *Snapshot) error {
	for _, name := range g.view.links {
		dir := filepath.Join(g.top, filepath.FromSlash(name))
		g.mu.Lock()
		n := g.nested[name]
		g.mu.Unlock()
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err != nil {
			continue // not checked out, or not any more
		}
		if n == nil {
			if n = openGit(ctx, dir, Options{}); n == nil {
				continue
			}
			if n.top != dir || !below(g.top, n.gitDir) && !below(g.commonDir, n.gitDir) {
				n.Close() // it says that it is another one, elsewhere
				continue
			}
			n.inside = g.inside + name + "/"
			g.mu.Lock()
			g.nested[name] = n
			g.mu.Unlock()
		}
		s, err := n.Take(ctx)
		if err != nil {
			return err
		}
		if outer.Nested == nil {
			outer.Nested = map[string]Snapshot{}
		}
		outer.Nested[name] = s
	}
	return nil
}

// copyFile copies a file with its time, by which git tells entries of an index
// that may have changed after it was written. One that is not there is none.
func copyFile(from, to string) error {
	fi, err := os.Stat(from)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil && !fi.Mode().IsRegular() { // opening a FIFO would not end
		err = fmt.Errorf("%s is no regular file", from)
	}
	if err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	return os.Chtimes(to, fi.ModTime(), fi.ModTime())
}

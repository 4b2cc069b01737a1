package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/config"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/process"
	"github.com/conduit-mcp/conduit-mcp/internal/parallel"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

const (
	gitTimeout = 60 * time.Second // of one git command
	maxOutput  = 16 << 20         // of one git command, in bytes; a diff is cut there
)

// A Git is the space of a working directory in a git repository.
//
// What the repository itself says is not trusted: an agent, or whoever made the
// checkout, can have its configuration name programs. Whatever reads or writes
// files of the working tree therefore runs on a view (see view.go), which has
// none of it. The few commands that the repository itself is needed for are
// those that start nothing but hooks, which are off.
type Git struct {
	dir       string // working directory
	top       string // of the working tree
	gitDir    string
	commonDir string // holds the objects; differs from gitDir in linked working trees
	prefix    string // of dir below top, slash-separated, ending in a slash; "" at the top
	born      bool   // there is a commit
	scope     string // pathspec of what counts: the repository, or the working directory in it
	hidden    []string
	view      *view
	mu        sync.Mutex
	nested    map[string]*Git // repositories in the working tree, by path
	inside    string          // path of the working tree in that of the repository around it, ending in a slash
}

// openGit returns nil where dir belongs to no repository that git will read.
func openGit(ctx context.Context, dir string, o Options) *Git {
	g := &Git{dir: dir, nested: map[string]*Git{}}
	// Before the first commit the last of the arguments is an error, after the
	// others were answered.
	var settings string
	reading := parallel.New()
	reading.Go(func() (err error) { settings, err = g.gitIn(ctx, dir, nil, nil, "config", "-z", "--list"); return err })
	out, err := g.gitIn(ctx, dir, nil, nil, "rev-parse", "--show-toplevel", "--absolute-git-dir", "--git-common-dir", "--show-prefix", "HEAD^{tree}")
	lines := strings.Split(out, "\n")
	if reading.Wait() != nil || len(lines) < 5 || lines[0] == "" {
		return nil
	}
	g.top, g.gitDir, g.commonDir, g.prefix = filepath.FromSlash(lines[0]), filepath.FromSlash(lines[1]), config.Abs(filepath.FromSlash(lines[2]), dir), lines[3]
	if !below(g.top, dir) {
		return nil // its configuration names another working tree
	}
	g.born = err == nil
	g.scope = "."
	if below := strings.TrimSuffix(g.prefix, "/"); below != "" && o.Within != nil && !o.Within(g.top) {
		g.scope = ":(top,literal)" + below
	}
	for _, dir := range o.Exclude {
		if rel, err := filepath.Rel(g.top, dir); err == nil && filepath.IsLocal(rel) && rel != "." {
			g.hidden = append(g.hidden, filepath.ToSlash(rel))
		}
	}
	if g.view, err = g.newView(settings); err != nil {
		return nil
	}
	return g
}

// below reports whether path is dir or lies in it, links followed.
func below(dir, path string) bool {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	return place.Within(path, dir)
}

// Top is the directory of the repository.
func (g *Git) Top() string { return g.top }

// Repository is true.
func (g *Git) Repository() bool { return true }

// Close removes the view.
func (g *Git) Close() error {
	err := os.RemoveAll(g.view.dir)
	for _, n := range g.nested {
		err = errors.Join(err, n.Close())
	}
	return err
}

// Committed is the tree of HEAD.
func (g *Git) Committed(ctx context.Context) (Snapshot, error) {
	if head, err := g.at(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{tree}"); err == nil {
		return Snapshot{Tree: strings.TrimSpace(head), committed: true}, nil
	}
	s, err := g.empty(ctx)
	s.committed = true
	return s, err
}

// empty is a tree of nothing.
func (g *Git) empty(ctx context.Context) (Snapshot, error) {
	var tree bytes.Buffer
	err := g.view.objects(ctx, []byte{}, &tree, maxOutput, "mktree")
	return Snapshot{Tree: strings.TrimSpace(tree.String())}, err
}

func (g *Git) exclusions() []string {
	var specs []string
	for _, h := range g.hidden {
		specs = append(specs, ":(exclude,top,literal)"+h)
	}
	return specs
}

// Compare compares two trees, and those of the repositories in them. A diff of
// more than 16 MiB ends there.
func (g *Git) Compare(ctx context.Context, a, b Snapshot) (Difference, error) {
	d, err := g.compare(ctx, a, b)
	if err != nil {
		return Difference{}, err
	}
	g.mu.Lock()
	nested := maps.Clone(g.nested)
	g.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(nested)) {
		n := nested[name]
		from, ok := a.Nested[name]
		to, there := b.Nested[name]
		if !ok && !there {
			continue
		}
		if _, err := os.Lstat(n.commonDir); err != nil {
			continue // gone with all its objects, which the entry for it tells
		}
		if !ok {
			from, err = n.absent(ctx, a)
		} else if !there {
			to, err = n.absent(ctx, b)
		}
		if err != nil {
			return Difference{}, err
		}
		inner, err := n.Compare(ctx, from, to)
		if err != nil {
			return Difference{}, err
		}
		for _, c := range inner.Changes {
			c.Path = relative(g.prefix, name+"/"+c.Path)
			d.Changes = append(d.Changes, c)
		}
		d.Diff += inner.Diff
	}
	sortChanges(d.Changes)
	return d, nil
}

// absent is the state of a nested repository that s says nothing of.
func (g *Git) absent(ctx context.Context, s Snapshot) (Snapshot, error) {
	if s.committed {
		return g.Committed(ctx)
	}
	return g.empty(ctx)
}

func (g *Git) compare(ctx context.Context, a, b Snapshot) (Difference, error) {
	var d Difference
	if a.Tree == b.Tree {
		return d, nil
	}
	var names string
	both := parallel.New()
	run := func(to *string, flags ...string) {
		both.Go(func() (err error) {
			args := append([]string{"diff-tree", "-r", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames",
				"--src-prefix=a/" + g.inside, "--dst-prefix=b/" + g.inside}, flags...)
			args = append(args, a.Tree, b.Tree, "--", g.scope)
			var out bytes.Buffer
			err = g.view.objects(ctx, nil, &out, maxOutput, append(args, g.exclusions()...)...)
			if out.Len() == maxOutput { // no half of a line, which may be half of a secret
				out.Truncate(bytes.LastIndexByte(out.Bytes(), '\n') + 1)
			}
			*to = strings.ToValidUTF8(out.String(), "\uFFFD")
			return err
		})
	}
	run(&names, "--raw", "--numstat", "-z")
	run(&d.Diff, "--patch")
	if err := both.Wait(); err != nil {
		return Difference{}, err
	}
	binary := map[string]bool{}
	var order []Change
	fields := strings.Split(names, "\x00")
	for i := 0; i < len(fields); i++ {
		switch f := fields[i]; {
		case strings.HasPrefix(f, ":") && i+1 < len(fields):
			i++
			order = append(order, Change{Path: fields[i], Status: statuses[f[len(f)-1]]})
		case strings.HasPrefix(f, "-\t-\t"):
			binary[f[4:]] = true
		}
	}
	for _, c := range order {
		c.Binary = binary[c.Path]
		c.Path = relative(g.prefix, c.Path)
		d.Changes = append(d.Changes, c)
	}
	sortChanges(d.Changes)
	d.Diff = withoutBinaries(d.Diff)
	return d, nil
}

var statuses = map[byte]string{'A': "added", 'M': "modified", 'D': "deleted", 'T': "modified"}

// withoutBinaries leaves out the parts of a diff that only say that binary
// files differ.
func withoutBinaries(diff string) string {
	if !strings.Contains(diff, "\nBinary files ") {
		return diff
	}
	var out strings.Builder
	for part := range splitDiff(diff) {
		if !strings.Contains(part, "\nBinary files ") || strings.Contains(part, "\n@@ ") {
			out.WriteString(part)
		}
	}
	return out.String()
}

// splitDiff yields the part of each file.
func splitDiff(diff string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for diff != "" {
			end := strings.Index(diff[1:], "\ndiff --git ")
			if end < 0 {
				yield(diff)
				return
			}
			if !yield(diff[:end+2]) {
				return
			}
			diff = diff[end+2:]
		}
	}
}

// Prefix is the working directory relative to Top, slash-separated, ending in a
// slash; "" at the top.
func (g *Git) Prefix() string { return g.prefix }

// A Worktree is a working tree of its own, in the state of a snapshot.
type Worktree struct {
	Dir string // its top
	g   *Git
}

// Worktree makes a working tree of from in dir, which must not exist.
func (g *Git) Worktree(ctx context.Context, from Snapshot, dir string) (*Worktree, error) {
	base, err := g.commit(ctx, from, "conduit: state before the task")
	if err != nil {
		return nil, err
	}
	if _, err := g.at(ctx, "worktree", "add", "--detach", "--no-checkout", "--quiet", dir, base); err != nil {
		return nil, err
	}
	w := &Worktree{Dir: dir, g: g}
	out, err := g.gitIn(ctx, dir, nil, nil, "rev-parse", "--absolute-git-dir")
	if err == nil {
		env := append(g.view.env(dir), "GIT_INDEX_FILE="+filepath.Join(strings.TrimSpace(out), "index"))
		_, err = g.gitIn(ctx, dir, env, nil, "read-tree", "--reset", "-u", from.Tree)
	}
	if err != nil {
		return nil, errors.Join(err, w.Remove(context.WithoutCancel(ctx)))
	}
	return w, nil
}

// Remove removes the working tree.
func (w *Worktree) Remove(ctx context.Context) error {
	if real, err := filepath.EvalSymlinks(w.Dir); err != nil || real != w.Dir {
		return fmt.Errorf("%s is not where the working tree was made any more", w.Dir)
	}
	_, err := w.g.at(ctx, "worktree", "remove", "--force", "--force", w.Dir)
	return err
}

// RemoveWorktree removes the working tree in dir, which a process that died has
// left.
func (g *Git) RemoveWorktree(ctx context.Context, dir string) error {
	return (&Worktree{Dir: dir, g: g}).Remove(ctx)
}

// SetRef gives the snapshot to a reference, so that git does not collect it, and
// people can look at it.
func (g *Git) SetRef(ctx context.Context, s Snapshot, ref string) error {
	commit, err := g.commit(ctx, s, "conduit: state after the task")
	if err != nil {
		return err
	}
	_, err = g.at(ctx, "update-ref", ref, commit)
	return err
}

// RefTree is the tree that a reference made by SetRef keeps.
func (g *Git) RefTree(ctx context.Context, ref string) (string, error) {
	tree, err := g.at(ctx, "rev-parse", "--verify", "--quiet", ref+"^{tree}")
	return strings.TrimSpace(tree), err
}

// Of reports whether g is a working tree of main, or of the same repository.
func (g *Git) Of(main *Git) bool { return g.commonDir == main.commonDir && g.top != main.top }

// DeleteRef removes a reference made by SetRef.
func (g *Git) DeleteRef(ctx context.Context, ref string) error {
	_, err := g.at(ctx, "update-ref", "-d", ref)
	return err
}

func (g *Git) commit(ctx context.Context, s Snapshot, message string) (string, error) {
	args := []string{"commit-tree", "--no-gpg-sign", s.Tree, "-m", message}
	if g.born {
		args = append(args, "-p", "HEAD")
	}
	out, err := g.gitIn(ctx, g.top, append(g.real(), "GIT_AUTHOR_NAME=conduit-mcp", "GIT_AUTHOR_EMAIL=conduit-mcp@localhost",
		"GIT_COMMITTER_NAME=conduit-mcp", "GIT_COMMITTER_EMAIL=conduit-mcp@localhost"), nil, args...)
	return strings.TrimSpace(out), err
}

// Apply makes in the working tree the changes that lead from a to b, all or
// none: ERR_PRECONDITION_FAILED where they no longer fit.
func (g *Git) Apply(ctx context.Context, a, b Snapshot) error {
	var patch bytes.Buffer
	if err := g.view.objects(ctx, nil, &patch, 1<<30, "diff-tree", "-r", "--binary", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv", a.Tree, b.Tree); err != nil {
		return err
	}
	if patch.Len() == 0 {
		return nil
	}
	if _, err := g.gitIn(ctx, g.top, g.view.env(g.top), patch.Bytes(), "apply", "--whitespace=nowarn"); err != nil {
		var failed *gitError
		if errors.As(err, &failed) && failed.stderr != "" {
			return fault.New(fault.PreconditionFailed, "the changes no longer fit the working tree, and none were made: %s", failed.stderr)
		}
		return err
	}
	return nil
}

// real is the environment in which git works on the repository itself: the one
// that was opened, whatever stands in its place now.
func (g *Git) real() []string {
	return []string{"GIT_DIR=" + g.gitDir, "GIT_COMMON_DIR=" + g.commonDir, "GIT_WORK_TREE=" + g.top}
}

func (g *Git) at(ctx context.Context, args ...string) (string, error) {
	return g.gitIn(ctx, g.top, g.real(), nil, args...)
}

func (g *Git) gitIn(ctx context.Context, dir string, env []string, stdin []byte, args ...string) (string, error) {
	var out bytes.Buffer
	err := g.run(ctx, dir, env, stdin, &out, maxOutput, args...)
	return strings.ToValidUTF8(out.String(), "\uFFFD"), err
}

// A gitError is a git command that failed.
type gitError struct {
	command string
	code    int
	stderr  string
}

func (e *gitError) Error() string {
	return fmt.Sprintf("git %s failed with exit code %d: %s", e.command, e.code, e.stderr)
}

// run runs git without hooks, without reaching other hosts, and without touching
// locks that others may want.
func (g *Git) run(ctx context.Context, dir string, env []string, stdin []byte, out io.Writer, limit int64, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, gitTimeout)
	defer cancel()
	full := append([]string{"-c", "core.fsmonitor=false", "-c", "core.hooksPath=" + os.DevNull, "-c", "core.quotePath=false",
		"-c", "core.safecrlf=false", "-c", "advice.addEmbeddedRepo=false", "-c", "core.trustctime=true", "-c", "core.checkStat=default"}, args...)
	cmd := exec.CommandContext(ctx, "git", full...)
	cmd.Dir = dir
	// Variables of git itself would lead it to another repository.
	inherited := slices.DeleteFunc(cmd.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "GIT_") })
	cmd.Env = append(append(inherited, "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_ALLOW_PROTOCOL=none", "GIT_NO_LAZY_FETCH=1", "LC_ALL=C"), env...)
	if stdin != nil {
		cmd.Stdin = bytes.NewReader(stdin)
	}
	stderr := &process.HeadTail{Max: 2048}
	limited := &limitedWriter{w: out, left: limit}
	cmd.Stdout, cmd.Stderr = limited, stderr
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return &gitError{args[0], exit.ExitCode(), strings.TrimSpace(stderr.String())}
	}
	return err
}

// A limitedWriter drops what goes beyond its limit.
type limitedWriter struct {
	w    io.Writer
	left int64
}

func (l *limitedWriter) Write(b []byte) (int, error) {
	n := len(b)
	if int64(len(b)) > l.left {
		b = b[:l.left]
	}
	l.left -= int64(len(b))
	if _, err := l.w.Write(b); err != nil {
		return 0, err
	}
	return n, nil
}

// Ref is the reference under which what a task changed is kept.
func Ref(task string) string { return path.Join("refs/conduit", task) }

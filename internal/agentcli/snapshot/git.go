package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/process"
	"github.com/conduit-mcp/conduit-mcp/internal/parallel"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

const (
	gitTimeout = 60 * time.Second // of one git command
	maxOutput  = 16 << 20         // of one git command, in bytes; a diff is cut there
)

// A Git is the space of a working directory in a git repository.
type Git struct {
	dir    string // working directory
	top    string // of the repository
	gitDir string
	prefix string // of dir below top, slash-separated, ending in a slash; "" at the top
	born   bool   // there is a commit
	scope  string // pathspec of what counts: the repository, or the working directory in it
	hidden []string
	index  string // temporary index, made by the first Take
}

// openGit returns nil where dir belongs to no repository that git will read.
func openGit(ctx context.Context, dir string, o Options) *Git {
	g := &Git{dir: dir}
	// Before the first commit the last of the arguments is an error, after the
	// others were answered.
	out, err := g.git(ctx, nil, "rev-parse", "--show-toplevel", "--absolute-git-dir", "--show-prefix", "HEAD^{tree}")
	lines := strings.Split(out, "\n")
	if len(lines) < 4 || lines[0] == "" {
		return nil
	}
	g.top, g.gitDir, g.prefix = filepath.FromSlash(lines[0]), filepath.FromSlash(lines[1]), lines[2]
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
	return g
}

// Top is the directory of the repository.
func (g *Git) Top() string { return g.top }

// Repository is true.
func (g *Git) Repository() bool { return true }

// Close removes the temporary index.
func (g *Git) Close() error {
	if g.index == "" {
		return nil
	}
	return os.RemoveAll(filepath.Dir(g.index))
}

// Take makes a tree of the working tree as it is: what git add --all would
// commit. Ignored files are not in it.
func (g *Git) Take(ctx context.Context) (Snapshot, error) {
	if g.index == "" {
		dir, err := os.MkdirTemp("", "conduit-index-")
		if err != nil {
			return Snapshot{}, err
		}
		g.index = filepath.Join(dir, "index")
		if err := copyIndex(filepath.Join(g.gitDir, "index"), g.index); err != nil {
			return Snapshot{}, err
		}
	}
	env := []string{"GIT_INDEX_FILE=" + g.index}
	if _, err := g.at(ctx, g.top, env, "add", "--all", "--", g.scope); err != nil {
		return Snapshot{}, err
	}
	tree, err := g.at(ctx, g.top, env, "write-tree")
	return Snapshot{Tree: strings.TrimSpace(tree)}, err
}

// copyIndex copies the repository's index with its time, by which git tells
// entries that may have changed after it was written.
func copyIndex(from, to string) error {
	in, err := os.Open(from)
	if errors.Is(err, os.ErrNotExist) {
		return nil // nothing was ever added
	}
	if err != nil {
		return err
	}
	defer in.Close()
	fi, err := in.Stat()
	if err != nil {
		return err
	}
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

// Committed is the tree of HEAD.
func (g *Git) Committed(ctx context.Context) (Snapshot, error) {
	if head, err := g.at(ctx, g.top, nil, "rev-parse", "--verify", "--quiet", "HEAD^{tree}"); err == nil {
		return Snapshot{Tree: strings.TrimSpace(head)}, nil
	}
	empty, err := g.gitIn(ctx, g.top, nil, []byte{}, "mktree")
	return Snapshot{Tree: strings.TrimSpace(empty)}, err
}

// Status is the repository's, without what is left out.
func (g *Git) Status(ctx context.Context) (string, error) {
	return g.at(ctx, g.top, nil, append([]string{"status", "--porcelain=v1", "--", g.scope}, g.exclusions()...)...)
}

func (g *Git) exclusions() []string {
	var specs []string
	for _, h := range g.hidden {
		specs = append(specs, ":(exclude,top,literal)"+h)
	}
	return specs
}

// Compare compares two trees. A diff of more than 16 MiB ends there.
func (g *Git) Compare(ctx context.Context, a, b Snapshot) (Difference, error) {
	var d Difference
	if a.Tree == b.Tree {
		return d, nil
	}
	var names string
	both := parallel.New()
	run := func(to *string, flags ...string) {
		both.Go(func() (err error) {
			args := append([]string{"diff-tree", "-r", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames"}, flags...)
			args = append(args, a.Tree, b.Tree, "--", g.scope)
			*to, err = g.at(ctx, g.top, nil, append(args, g.exclusions()...)...)
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
	Dir  string // its top
	base string // commit that it stands on
	g    *Git
}

// Worktree makes a working tree of from in dir, which must not exist.
func (g *Git) Worktree(ctx context.Context, from Snapshot, dir string) (*Worktree, error) {
	base, err := g.commit(ctx, from, "conduit: state before the task")
	if err != nil {
		return nil, err
	}
	if _, err := g.at(ctx, g.top, nil, "worktree", "add", "--detach", "--quiet", dir, base); err != nil {
		return nil, err
	}
	return &Worktree{Dir: dir, base: base, g: g}, nil
}

// Remove removes the working tree.
func (w *Worktree) Remove(ctx context.Context) error {
	_, err := w.g.at(ctx, w.g.top, nil, "worktree", "remove", "--force", "--force", w.Dir)
	return err
}

// RemoveWorktree removes the working tree in dir, which a process that died has
// left.
func (g *Git) RemoveWorktree(ctx context.Context, dir string) error {
	return (&Worktree{Dir: dir, g: g}).Remove(ctx)
}

// Keep gives the snapshot to a reference, so that git does not collect it, and
// people can look at it.
func (g *Git) Keep(ctx context.Context, s Snapshot, ref string) error {
	commit, err := g.commit(ctx, s, "conduit: state after the task")
	if err != nil {
		return err
	}
	_, err = g.at(ctx, g.top, nil, "update-ref", ref, commit)
	return err
}

// Drop removes a reference made by Keep.
func (g *Git) Drop(ctx context.Context, ref string) error {
	_, err := g.at(ctx, g.top, nil, "update-ref", "-d", ref)
	return err
}

func (g *Git) commit(ctx context.Context, s Snapshot, message string) (string, error) {
	args := []string{"commit-tree", s.Tree, "-m", message}
	if g.born {
		args = append(args, "-p", "HEAD")
	}
	out, err := g.at(ctx, g.top, []string{"GIT_AUTHOR_NAME=conduit-mcp", "GIT_AUTHOR_EMAIL=conduit-mcp@localhost",
		"GIT_COMMITTER_NAME=conduit-mcp", "GIT_COMMITTER_EMAIL=conduit-mcp@localhost"}, args...)
	return strings.TrimSpace(out), err
}

// Apply makes in the working tree the changes that lead from a to b, all or
// none: ERR_PRECONDITION_FAILED where they no longer fit.
func (g *Git) Apply(ctx context.Context, a, b Snapshot) error {
	var patch bytes.Buffer
	if err := g.run(ctx, g.top, nil, nil, &patch, 1<<30, "diff-tree", "-r", "--binary", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv", a.Tree, b.Tree); err != nil {
		return err
	}
	if patch.Len() == 0 {
		return nil
	}
	if _, err := g.gitIn(ctx, g.top, nil, patch.Bytes(), "apply", "--whitespace=nowarn"); err != nil {
		var failed *gitError
		if errors.As(err, &failed) && failed.stderr != "" {
			return fault.New(fault.PreconditionFailed, "the changes no longer fit the working tree, and none were made: %s", failed.stderr)
		}
		return err
	}
	return nil
}

func (g *Git) git(ctx context.Context, env []string, args ...string) (string, error) {
	return g.at(ctx, g.dir, env, args...)
}

func (g *Git) at(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	return g.gitIn(ctx, dir, env, nil, args...)
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

// run runs git without anything that a repository's configuration could have it
// start on the way, and without touching locks that others may want.
func (g *Git) run(ctx context.Context, dir string, env []string, stdin []byte, out io.Writer, limit int64, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, gitTimeout)
	defer cancel()
	full := append([]string{"-c", "core.fsmonitor=false", "-c", "core.hooksPath=" + os.DevNull, "-c", "core.quotePath=false",
		"-c", "core.safecrlf=false", "-c", "advice.addEmbeddedRepo=false"}, args...)
	cmd := exec.CommandContext(ctx, "git", full...)
	cmd.Dir = dir
	// Variables of git itself would lead it to another repository.
	inherited := slices.DeleteFunc(cmd.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "GIT_") })
	cmd.Env = append(append(inherited, "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C"), env...)
	if stdin != nil {
		cmd.Stdin = bytes.NewReader(stdin)
	}
	stderr := &process.Ends{Max: 2048}
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

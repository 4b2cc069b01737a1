package patch_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/patch"
	"github.com/conduit-mcp/conduit-mcp/internal/roots"
)

// A tree is files by name.
type tree map[string]file

type file struct {
	text string
	exec bool
}

func (f file) String() string { return fmt.Sprintf("%q (exec %t)", f.text, f.exec) }

func (tr tree) write(t testing.TB, dir string) {
	t.Helper()
	for name, f := range tr {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := fs.FileMode(0o644)
		if f.exec {
			mode = 0o755
		}
		if err := os.WriteFile(at, []byte(f.text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(at, mode); err != nil {
			t.Fatal(err)
		}
	}
}

func readTree(t testing.TB, dir string) tree {
	t.Helper()
	tr := tree{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		tr[filepath.ToSlash(name)] = file{string(b), fi.Mode()&0o100 != 0}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// same tells the first difference of two trees, "" for none.
func same(got, want tree) string {
	names := slices.Sorted(maps.Keys(got))
	for name := range want {
		if _, ok := got[name]; !ok {
			return fmt.Sprintf("%q is missing", name)
		}
	}
	for _, name := range names {
		if w, ok := want[name]; !ok {
			return fmt.Sprintf("%q is there", name)
		} else if got[name] != w {
			return fmt.Sprintf("%q is %v, want %v", name, got[name], w)
		}
	}
	return ""
}

// git runs git in dir, apart from any repository and configuration around it.
func git(t testing.TB, dir, stdin string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "core.autocrlf=false", "-c", "core.safecrlf=false"}, args...)...)
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir), "LC_ALL=C")
	var out, bad bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &bad
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, bad.String())
	}
	return out.String(), nil
}

// plan makes a plan for the patch below dir.
func plan(t testing.TB, dir, text string, o patch.Options) (*patch.Plan, error) {
	t.Helper()
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	r, _, err := roots.New(roots.Config{Allowed: []string{real}, Project: real})
	if err != nil {
		t.Fatal(err)
	}
	if o.Base, err = r.Resolve(real); err != nil {
		t.Fatal(err)
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 50 << 20
	}
	files, err := patch.Parse(text, patch.StripAuto)
	if err != nil {
		return nil, err
	}
	return patch.NewPlan(t.Context(), files, o)
}

// apply carries the patch out below dir, whole or not at all, and returns its
// notes.
func apply(t testing.TB, dir, text string) ([]string, *patch.Plan, error) {
	t.Helper()
	p, err := plan(t, dir, text, patch.Options{Together: true})
	if err != nil {
		return nil, nil, err
	}
	if err := p.Land(context.WithoutCancel(t.Context()), atomicfile.New(), nil); err != nil {
		return nil, nil, err
	}
	var notes []string
	for _, s := range p.Steps {
		if s.Err != nil {
			return nil, p, s.Err
		}
		notes = append(notes, s.Notes...)
	}
	return notes, p, nil
}

// A maker makes random trees and changes of them.
type maker struct{ *rand.Rand }

var names = []string{"main.go", "src/a.c", "src/b.c", "docs/read me.txt", "größe/naïve.md", "日本/語.txt", "tab\there.txt", `quote"s\.txt`, "b/a", "a/b", "deep/er/and/deeper.h"}

func (m maker) line() string {
	words := []string{"", "}", "\t", "return nil", "x := 1", "-- sql", "++ more", "@@ -1 +1 @@", "diff --git a/x b/x", "\\ No newline", "größe", " indented", "trailing  "}
	if m.IntN(2) == 0 {
		return words[m.IntN(len(words))]
	}
	return fmt.Sprintf("line %d", m.IntN(60))
}

func (m maker) end() string { return []string{"\n", "\n", "\r\n"}[m.IntN(3)] }

func (m maker) text() string {
	var b strings.Builder
	n := m.IntN(60)
	style := m.IntN(4) // LF, LF, CRLF, mixed
	if m.IntN(8) == 0 {
		b.WriteString("\ufeff")
	}
	for i := range n {
		end := "\n"
		if style == 2 || style == 3 && m.IntN(2) == 0 {
			end = "\r\n"
		}
		if i == n-1 && m.IntN(3) == 0 {
			end = ""
		}
		b.WriteString(m.line() + end)
	}
	return b.String()
}

// edit changes a few lines.
func (m maker) edit(text string, times int) string {
	list := slices.Collect(strings.Lines(text))
	for range times {
		at := m.IntN(len(list) + 1)
		fresh := m.line() + m.end()
		switch m.IntN(4) {
		case 0:
			if at < len(list) {
				list = slices.Delete(list, at, min(at+1+m.IntN(3), len(list)))
			}
		case 1:
			if at < len(list) {
				list[at] = fresh
			}
		case 2:
			if at > 0 && strings.HasSuffix(list[at-1], "\n") || at == 0 {
				list = slices.Insert(list, at, fresh)
			}
		case 3:
			if n := len(list); n > 0 {
				if strings.HasSuffix(list[n-1], "\n") {
					list[n-1] = strings.TrimRight(list[n-1], "\r\n")
				} else {
					list[n-1] += "\n"
				}
			}
		}
	}
	return strings.Join(list, "")
}

func (m maker) tree() tree {
	tr := tree{}
	for _, i := range m.Perm(len(names))[:1+m.IntN(5)] {
		tr[names[i]] = file{m.text(), m.IntN(4) == 0}
	}
	return tr
}

// change edits, renames, copies, removes and adds files.
func (m maker) change(tr tree) tree {
	after := maps.Clone(tr)
	for _, name := range slices.Sorted(maps.Keys(tr)) {
		f := tr[name]
		fresh := names[m.IntN(len(names))]
		switch m.IntN(8) {
		case 0:
			delete(after, name)
		case 1:
			if _, there := after[fresh]; !there {
				delete(after, name)
				after[fresh] = file{m.edit(f.text, 1), f.exec}
			}
		case 2:
			if _, there := after[fresh]; !there {
				after[fresh] = f
				after[name] = file{m.edit(f.text, 1), f.exec}
			}
		case 3:
			after[name] = file{f.text, !f.exec}
		default:
			after[name] = file{m.edit(f.text, 1+m.IntN(5)), f.exec}
		}
	}
	if fresh := names[m.IntN(len(names))]; m.IntN(2) == 0 {
		if _, there := after[fresh]; !there {
			after[fresh] = file{m.text(), m.IntN(3) == 0}
		}
	}
	return after
}

// store puts trees into a new repository, as branches of their names.
func store(t testing.TB, trees map[string]tree) (repository string) {
	t.Helper()
	dir := t.TempDir()
	if _, err := git(t, dir, "", "init", "-q", "--bare"); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, branch := range slices.Sorted(maps.Keys(trees)) {
		fmt.Fprintf(&b, "commit refs/heads/%s\ncommitter x <x> 1 +0000\ndata 0\n", branch)
		for _, name := range slices.Sorted(maps.Keys(trees[branch])) {
			f, mode := trees[branch][name], 100644
			if f.exec {
				mode = 100755
			}
			fmt.Fprintf(&b, "M %d inline \"%s\"\ndata %d\n%s\n", mode, strings.NewReplacer(`"`, `\"`, `\`, `\\`, "\t", `\t`).Replace(name), len(f.text), f.text)
		}
	}
	if _, err := git(t, dir, b.String(), "fast-import", "--quiet"); err != nil {
		t.Fatal(err)
	}
	return dir
}

// unsure tells the cases made without context, whose hunks say nothing of line
// ends where they only add lines.
func unsure(seed uint64) bool { return seed%9 == 1 }

// plain is tr without carriage returns.
func (tr tree) plain() tree {
	plain := tree{}
	for name, f := range tr {
		plain[name] = file{strings.ReplaceAll(f.text, "\r", ""), f.exec}
	}
	return plain
}

// ended is tr with a newline at the end of every file.
func (tr tree) ended() tree {
	ended := tree{}
	for name, f := range tr {
		ended[name] = file{strings.TrimSuffix(f.text, "\n") + "\n", f.exec}
	}
	return ended
}

// Both git apply and we apply each generated diff to the tree it was made of,
// and to one that has changed since.
func TestAgreesWithGitOnGeneratedDiffs(t *testing.T) {
	const cases = 360
	var agreed, rejected, beyond, drifted, kept int
	trees := map[string]tree{}
	for seed := range uint64(cases) {
		m := maker{rand.New(rand.NewPCG(seed, 7))}
		before := m.tree()
		after := m.change(before)
		if unsure(seed) {
			before, after = before.plain(), after.plain()
		}
		trees[fmt.Sprintf("before%d", seed)], trees[fmt.Sprintf("after%d", seed)] = before, after
	}
	repository := store(t, trees)
	for seed := range uint64(cases) {
		m := maker{rand.New(rand.NewPCG(seed, 8))}
		before := trees[fmt.Sprintf("before%d", seed)]
		context, applying := 1+m.IntN(4), []string{"apply"}
		if unsure(seed) {
			context, applying = 0, []string{"apply", "--unidiff-zero"}
		}
		args := []string{"diff", fmt.Sprintf("-U%d", context), "-M", fmt.Sprintf("--diff-algorithm=%s", []string{"myers", "patience", "histogram"}[m.IntN(3)])}
		if m.IntN(3) == 0 {
			args = append(args, "-C", "--find-copies-harder")
		}
		text, err := git(t, repository, "", append(args, fmt.Sprintf("before%d", seed), fmt.Sprintf("after%d", seed))...)
		if err != nil {
			t.Fatal(err)
		}
		if text == "" {
			continue
		}
		target := before
		drift := seed%3 == 0 && !unsure(seed)
		if drift {
			drifted++
			target = maps.Clone(before)
			for _, name := range slices.Sorted(maps.Keys(target)) {
				f := target[name]
				target[name] = file{m.edit(f.text, 1+m.IntN(2)), f.exec}
			}
		}
		ours, theirs := t.TempDir(), t.TempDir()
		target.write(t, ours)
		target.write(t, theirs)
		_, gitErr := git(t, theirs, text, applying...)
		notes, p, err := apply(t, ours, text)
		got := readTree(t, ours)
		switch {
		case gitErr == nil && err != nil:
			t.Errorf("seed %d: git applies it, but: %v\n%s", seed, err, text)
		case gitErr == nil:
			agreed++
			d := same(got, readTree(t, theirs))
			if d != "" && drift && strings.Contains(text, "\n\\ No newline") && same(got.ended(), readTree(t, theirs).ended()) == "" {
				// Where a line of context without a newline meets the last line,
				// which has one by now, git takes it away; we leave it.
				d = ""
				kept++
			}
			if d != "" {
				t.Errorf("seed %d (drifted %t): %s\n%s", seed, drift, d, text)
			}
			if !drift && len(notes) > 0 {
				t.Errorf("seed %d: notes on a patch that fits: %q", seed, notes)
			}
		case err != nil:
			rejected++
			if d := same(got, target); d != "" {
				t.Errorf("seed %d: rejected, and yet %s", seed, d)
			}
		default:
			beyond++
			if len(notes) == 0 {
				t.Errorf("seed %d: applied beyond git without a word\n%s", seed, text)
			}
		}
		if err == nil {
			again := t.TempDir()
			target.write(t, again)
			var effective strings.Builder
			for _, s := range p.Steps {
				effective.WriteString(s.Diff)
			}
			if effective.Len() > 0 {
				if _, err := git(t, again, effective.String(), "apply"); err != nil {
					t.Errorf("seed %d: the effective diff: %v\n%s", seed, err, effective.String())
				} else if d := same(readTree(t, again), got); d != "" {
					t.Errorf("seed %d: the effective diff gives something else: %s", seed, d)
				}
			}
		}
	}
	t.Logf("%d cases (%d on changed files): %d applied alike, %d rejected by both, %d applied by us alone and so noted; %d with a last newline that git removes", cases, drifted, agreed, rejected, beyond, kept)
	if agreed+rejected < 300 {
		t.Errorf("only %d cases were comparable", agreed+rejected)
	}
}

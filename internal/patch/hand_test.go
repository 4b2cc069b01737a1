package patch_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/patch"
)

// numbered is a text of lines "1" to "n", some replaced.
func numbered(n int, replace ...string) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		b.WriteString(digits(i) + "\n")
	}
	return strings.NewReplacer(replace...).Replace(b.String())
}

func digits(n int) string {
	return strings.Repeat("x", n%3) + string(rune('A'+n%26)) + strings.Repeat("y", n/26)
}

const (
	alike  = "git and we do the same"
	both   = "both refuse it"
	beyond = "only we take it, and say why"
	apart  = "only git takes it"
)

// Diffs written by hand, each applied by git and by us.
func TestAgreesWithGitOnHandWrittenDiffs(t *testing.T) {
	text := func(s string) tree { return tree{"f": {text: s}} }
	tests := []struct {
		name   string
		before tree
		patch  string
		want   string
		after  tree // where want is beyond
	}{
		{"plain", text("a\nb\nc\n"), "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", alike, nil},
		{"no prefix", text("a\nb\nc\n"), "--- f\n+++ f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", alike, nil},
		{"two directories", tree{"s/f": {text: "a\n"}}, "diff -ru old/s/f new/s/f\n--- old/s/f\t2024-01-02 03:04:05.000000000 +0000\n+++ new/s/f\t2024-01-02 03:04:06.000000000 +0000\n@@ -1 +1 @@\n-a\n+b\n", alike, nil},
		{"backup name", text("a\n"), "--- f.orig\t2024-01-02 03:04:05 +0000\n+++ f\t2024-01-02 03:04:06 +0000\n@@ -1 +1 @@\n-a\n+b\n", alike, nil},
		{"times without a tab", text("a\n"), "--- a/f 2024-01-02 03:04:05.000000000 +0000\n+++ b/f 2024-01-02 03:04:06.000000000 +0000\n@@ -1 +1 @@\n-a\n+b\n", alike, nil},
		{"created by time", tree{"g": {text: "x\n"}}, "--- a/f\t1970-01-01 00:00:00.000000000 +0000\n+++ b/f\t2024-01-02 03:04:06.000000000 +0000\n@@ -0,0 +1 @@\n+a\n", alike, nil},
		{"deleted by time", tree{"f": {text: "a\n"}, "g": {}}, "--- a/f\t2024-01-02 03:04:06.000000000 +0000\n+++ b/f\t1970-01-01 01:00:00.000000000 +0100\n@@ -1 +0,0 @@\n-a\n", alike, nil},
		{"created without /dev/null", tree{"g": {}}, "--- a/f\n+++ b/f\n@@ -0,0 +1 @@\n+a\n", alike, nil},
		{"mail", text("a\nb\n"), "From 1234 Mon Sep 17 00:00:00 2001\nSubject: [PATCH] x\n\n---\n f | 2 +-\n 1 file changed\n\ndiff --git a/f b/f\nindex 1..2 100644\n--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@ func x() {\n a\n-b\n+B\n-- \n2.39.5\n\n", alike, nil},
		{"fence", text("a\nb\n"), "Sure:\n```diff\n--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n```\nDone.\n", alike, nil},
		{"no newline at the end of the patch", text("a\nb\n"), "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+B", beyond, text("a\nB\n")},
		{"newline added", text("a"), "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n", alike, nil},
		{"newline removed", text("a\nb\n"), "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+b\n\\ No newline at end of file\n", alike, nil},
		{"newline forgotten", text("a\nb"), "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n", beyond, text("a\nc")},
		{"newline forgotten, line added", text("a\nb"), "--- a/f\n+++ b/f\n@@ -1,2 +1,3 @@\n a\n b\n+c\n", beyond, text("a\nb\nc")},
		{"offset forward", text(numbered(40)), "--- a/f\n+++ b/f\n@@ -2,3 +2,3 @@\n " + digits(20) + "\n-" + digits(21) + "\n+new\n " + digits(22) + "\n", alike, nil},
		{"offset backward", text(numbered(40)), "--- a/f\n+++ b/f\n@@ -35,3 +35,3 @@\n " + digits(10) + "\n-" + digits(11) + "\n+new\n " + digits(12) + "\n", alike, nil},
		{"equally near", text("z\na\nb\nc\nz\nz\na\nb\nc\nz\n"), "--- a/f\n+++ b/f\n@@ -4,3 +4,3 @@\n a\n-b\n+B\n c\n", alike, nil},
		{"first line, elsewhere by now", text("new\na\nb\nc\n"), "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", beyond, text("new\na\nB\nc\n")},
		{"end of file, elsewhere by now", text("x\ny\na\nb\n"), "--- a/f\n+++ b/f\n@@ -2,2 +2,3 @@\n a\n b\n+c\n", alike, nil},
		{"not at the end any more", text("x\na\nb\nnew\n"), "--- a/f\n+++ b/f\n@@ -2,2 +2,3 @@\n a\n b\n+c\n", beyond, text("x\na\nb\nc\nnew\n")},
		{"added twice at the end", text("x\na\nb\nc\n"), "--- a/f\n+++ b/f\n@@ -2,2 +2,3 @@\n a\n b\n+c\n", both, nil},
		{"context changed", text("a\nb\nc\nd\ne\nf\nG\n"), "--- a/f\n+++ b/f\n@@ -1,7 +1,7 @@\n a\n b\n c\n-d\n+D\n e\n f\n g\n", beyond, text("a\nb\nc\nD\ne\nf\nG\n")},
		{"removed line changed", text("a\nb\nc\nX\ne\nf\ng\n"), "--- a/f\n+++ b/f\n@@ -1,7 +1,7 @@\n a\n b\n c\n-d\n+D\n e\n f\n g\n", both, nil},
		{"four lines of context changed", text("a\nB\nB\nB\nd\ne\ne\ne\nf\n"), "--- a/f\n+++ b/f\n@@ -1,9 +1,9 @@\n a\n b\n b\n b\n-d\n+D\n e\n e\n e\n f\n", both, nil},
		{"applied already", text("a\nB\nc\n"), "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", both, nil},
		{"count too large, or cut off", text("a\nb\nc\n"), "--- a/f\n+++ b/f\n@@ -1,5 +1,5 @@\n a\n-b\n+B\n c\n", both, nil},
		{"lost spaces of empty lines", text("a\n\nb\n\nc\n"), "--- a/f\n+++ b/f\n@@ -1,5 +1,5 @@\n a\n\n-b\n+B\n\n c\n", alike, nil},
		{"missing file", tree{"g": {}}, "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n", both, nil},
		{"creates what exists", text("a\n"), "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+b\n", both, nil},
		{"deletes what has more", text("a\nb\n"), "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", both, nil},
		{"rename onto a file", tree{"f": {text: "a\n"}, "g": {text: "b\n"}}, "diff --git a/f b/g\nrename from f\nrename to g\n", both, nil},
		{"two files exchanged", tree{"f": {text: "a\n"}, "g": {text: "b\n"}}, "diff --git a/f b/g\nrename from f\nrename to g\ndiff --git a/g b/f\nrename from g\nrename to f\n", alike, nil},
		{"chain of renames", tree{"f": {text: "a\n"}, "g": {text: "b\n"}}, "diff --git a/f b/g\nrename from f\nrename to g\ndiff --git a/g b/h\nrename from g\nrename to h\n", alike, nil},
		{"rename and copy of one file", tree{"f": {text: "a\n"}}, "diff --git a/f b/g\ncopy from f\ncopy to g\ndiff --git a/f b/h\nrename from f\nrename to h\n", alike, nil},
		{"a file twice", text("a\nb\n"), "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-a\n+A\n b\n--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n A\n-b\n+B\n", alike, nil},
		{"second file missing", text("a\n"), "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n--- a/g\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n", both, nil},
		{"mode", text("a\n"), "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n", alike, nil},
		{"empty file made", tree{"g": {}}, "diff --git a/f b/f\nnew file mode 100755\nindex 0000000..e69de29\n", alike, nil},
		{"empty file deleted", tree{"f": {}, "g": {}}, "diff --git a/f b/f\ndeleted file mode 100644\nindex e69de29..0000000\n", alike, nil},
		{"quoted name", tree{"gr\u00f6\u00dfe \"x\"": {text: "a\n"}}, "diff --git \"a/gr\\303\\266\\303\\237e \\\"x\\\"\" \"b/gr\\303\\266\\303\\237e \\\"x\\\"\"\n--- \"a/gr\\303\\266\\303\\237e \\\"x\\\"\"\n+++ \"b/gr\\303\\266\\303\\237e \\\"x\\\"\"\n@@ -1 +1 @@\n-a\n+b\n", alike, nil},
		{"name with spaces", tree{"my file": {text: "a\n"}}, "diff --git a/my file b/my file\nold mode 100644\nnew mode 100755\n", alike, nil},
		{"CRLF file", text("a\r\nb\r\n"), "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\r\n-b\r\n+B\r\n", alike, nil},
		{"CRLF file, LF patch", text("a\r\nb\r\nc\r\n"), "--- a/f\n+++ b/f\n@@ -1,3 +1,4 @@\n a\n-b\n+B\n+B2\n c\n", beyond, text("a\r\nB\r\nB2\r\nc\r\n")},
		{"LF file, CRLF patch", text("a\nb\nc\n"), "--- a/f\r\n+++ b/f\r\n@@ -1,3 +1,3 @@\r\n a\r\n-b\r\n+B\r\n c\r\n", beyond, text("a\nB\nc\n")},
		{"line end changed", text("a\r\nb\r\n"), "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-a\r\n+a\n b\r\n", alike, nil},
		{"byte order mark", text("\ufeffa\nb\n"), "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-\ufeffa\n+a\n b\n", alike, nil},
		{"byte order mark unseen", text("\ufeffa\nb\n"), "--- a/f\n+++ b/f\n@@ -1,2 +1,3 @@\n+0\n-a\n+A\n b\n", beyond, text("\ufeff0\nA\nb\n")},
		{"up and out", text("a\n"), "--- a/../f\n+++ b/../f\n@@ -1 +1 @@\n-a\n+b\n", both, nil},
		{"absolute", text("a\n"), "--- /tmp/f\n+++ /tmp/f\n@@ -1 +1 @@\n-a\n+b\n", both, nil},
		{"into .git", text("a\n"), "--- /dev/null\n+++ b/.git/config\n@@ -0,0 +1 @@\n+b\n", both, nil},
		{"nothing", text("a\n"), "hello\n", both, nil},
		{"hunk alone", text("a\n"), "@@ -1 +1 @@\n-a\n+b\n", both, nil},
		{"hunk that changes nothing", text("a\n"), "--- a/f\n+++ b/f\n@@ -1 +1 @@\n a\n", both, nil},
		{"creation with old lines", text("a\n"), "--- /dev/null\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n", both, nil},
		{"overlapping hunks", text("a\nb\nc\nd\n"), "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n@@ -3,2 +3,2 @@\n-c\n+C\n d\n", both, nil},
		{"hunk of a new file for one with lines", text("a\n"), "--- a/f\n+++ b/f\n@@ -0,0 +1 @@\n+b\n", both, nil},
		{"two hunks at one place", text("a\nb\nc\nd\ne\nf\ng\nh\n"), "--- a/f\n+++ b/f\n@@ -2,3 +2,3 @@\n b\n-c\n+C\n d\n@@ -2,3 +2,3 @@\n b\n-c\n+C\n d\n", both, nil},
		{"symbolic link", tree{"g": {}}, "diff --git a/f b/f\nnew file mode 120000\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+g\n\\ No newline at end of file\n", apart, nil},
		{"no context, a line changed", text("a\nb\nc\n"), "--- a/f\n+++ b/f\n@@ -2 +2 @@\n-b\n+B\n", alike, nil},
		{"no context, a line added", text("a\nb\nc\n"), "--- a/f\n+++ b/f\n@@ -2,0 +3 @@\n+B\n", alike, nil},
		{"no context, a line added past the end", text("a\n"), "--- a/f\n+++ b/f\n@@ -5,0 +6 @@\n+B\n", apart, nil},
	}
	counts := map[string]int{}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ours, theirs := t.TempDir(), t.TempDir()
			tt.before.write(t, ours)
			tt.before.write(t, theirs)
			args := []string{"apply"}
			if strings.HasPrefix(tt.name, "no context") {
				args = append(args, "--unidiff-zero") // else git puts it at the end of the file
			}
			_, gitErr := git(t, theirs, tt.patch, args...)
			notes, _, err := apply(t, ours, tt.patch)
			got, want := readTree(t, ours), tree(nil)
			verdict := map[[2]bool]string{{true, true}: alike, {false, false}: both, {false, true}: beyond, {true, false}: apart}[[2]bool{gitErr == nil, err == nil}]
			counts[verdict]++
			if verdict != tt.want {
				t.Fatalf("%s, want: %s\ngit: %v\nwe: %v", verdict, tt.want, gitErr, err)
			}
			switch verdict {
			case alike:
				want = readTree(t, theirs)
			case beyond:
				want = tt.after
			default:
				want = maps.Clone(tt.before)
			}
			if d := same(got, want); d != "" {
				t.Error(d)
			}
			if verdict == both && !strings.Contains(err.Error(), " ") {
				t.Errorf("the refusal says only %q", err)
			}
			t.Logf("notes %q, error %v", notes, err)
		})
	}
	t.Logf("%d diffs: %v", len(tests), counts)
	if patch.MaxFuzz != 3 {
		t.Error("the cases above are made for a fuzz of 3")
	}
}

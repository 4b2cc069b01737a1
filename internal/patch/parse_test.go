package patch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// show is what a patch was read as, a line for each file.
func show(files []*File) string {
	var b strings.Builder
	for _, f := range files {
		fmt.Fprintf(&b, "%s %q %q", f.Action, f.Old, f.New)
		if f.OldMode != f.NewMode {
			fmt.Fprintf(&b, " %o>%o", f.OldMode, f.NewMode)
		}
		for _, h := range f.Hunks {
			before, after := h.counts()
			fmt.Fprintf(&b, " %d,%d+%d,%d", h.OldStart, before, h.NewStart, after)
		}
		if f.Binary {
			b.WriteString(" binary")
		}
		for _, n := range f.Notes {
			b.WriteString(" (" + n + ")")
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestParse(t *testing.T) {
	const hunk = "@@ -1 +1 @@\n-a\n+b\n"
	tests := []struct {
		name, patch string
		strip       int
		want        string
	}{
		{"a and b", "--- a/x/y\n+++ b/x/y\n" + hunk, StripAuto, `modified "x/y" "x/y" 1,1+1,1`},
		{"the other way round", "--- b/x\n+++ a/x\n" + hunk, StripAuto, `modified "x" "x" 1,1+1,1`},
		{"mnemonic", "diff --git i/x w/x\n--- i/x\n+++ w/x\n" + hunk, StripAuto, `modified "x" "x" 1,1+1,1`},
		{"no prefix", "--- a/x\n+++ a/x\n" + hunk, StripAuto, `modified "a/x" "a/x" 1,1+1,1`},
		{"no prefix, told otherwise", "--- a/x\n+++ a/x\n" + hunk, 1, `modified "x" "x" 1,1+1,1`},
		{"prefixes that are directories", "--- a/x\n+++ b/x\n" + hunk, 0, `modified "b/x" "b/x" 1,1+1,1`},
		{"dot", "--- ./x//y\n+++ ./x/y\n" + hunk, StripAuto, `modified "x/y" "x/y" 1,1+1,1`},
		{"created", "--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+b\n", StripAuto, `created "" "x" 0,0+1,1`},
		{"created without prefix", "--- /dev/null\n+++ src/x\n@@ -0,0 +1 @@\n+b\n", StripAuto, `created "" "src/x" 0,0+1,1`},
		{"deleted", "--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n", StripAuto, `deleted "x" "" 1,1+0,0`},
		{"git without its mode line", "diff --git a/x b/x\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+b\n", StripAuto, `created "" "x" 0,0+1,1`},
		{"git, no prefix", "diff --git d/x d/x\nold mode 100644\nnew mode 100755\n", StripAuto, `modified "d/x" "d/x" 100644>100755`},
		{"renamed", "diff --git a/x y b/z\nsimilarity index 90%\nrename from x y\nrename to z\n", StripAuto, `renamed "x y" "z"`},
		{"renamed, no prefix", "diff --git d/x d/y\nrename from d/x\nrename to d/y\n--- d/x\n+++ d/y\n" + hunk, StripAuto, `renamed "d/x" "d/y" 1,1+1,1`},
		{"copied", "diff --git a/a/x b/b/x\ncopy from a/x\ncopy to b/x\n", StripAuto, `copied "a/x" "b/x"`},
		{"binary", "diff --git a/x b/x\nindex 1..2 100644\nBinary files a/x and b/x differ\n--- a/y\n+++ b/y\n" + hunk, StripAuto, `modified "x" "x" binary` + "\n" + `modified "y" "y" 1,1+1,1`},
		{"nothing about one", "diff --git a/x b/x\nindex 1..2 100644\n--- a/y\n+++ b/y\n" + hunk, StripAuto, "patch line 1: the header of one file names two, y and a/x"},
		{"CRLF", "diff --git a/x b/x\r\nindex 1..2 100644\r\n--- a/x\r\n+++ b/x\r\n@@ -1 +1 @@\r\n-a\r\n+b\r\n", StripAuto, `modified "x" "x" 1,1+1,1`},
		{"count of one too small", "--- x\n+++ x\n@@ -1,1 +1,1 @@\n a\n-b\n+c\n d\n", StripAuto, `modified "x" "x" 1,3+1,3 (The header of hunk 1 counts 1 and 1 lines, its body has 3 and 3; the body was taken.)`},
		{"count too large, another hunk", "--- x\n+++ x\n@@ -1,9 +1,9 @@\n-b\n+c\n@@ -20 +20 @@\n-b\n+c\n", StripAuto, `modified "x" "x" 1,1+1,1 20,1+20,1 (The header of hunk 1 counts 9 and 9 lines, its body has 1 and 1; the body was taken.)`},
		{"count too large, another file", "--- x\n+++ x\n@@ -1,9 +1,9 @@\n-b\n+c\n--- y\n+++ y\n" + hunk, StripAuto, `modified "x" "x" 1,1+1,1 (The header of hunk 1 counts 9 and 9 lines, its body has 1 and 1; the body was taken.)` + "\n" + `modified "y" "y" 1,1+1,1`},
		{"lines that look like a header", "--- x\n+++ x\n@@ -1,2 +1,2 @@\n a\n--- y\n+++ y\n@@ -9 +9 @@\n-b\n+c\n", StripAuto, `modified "x" "x" 1,2+1,2 9,1+9,1`},
		{"empty lines between hunks", "--- x\n+++ x\n" + hunk + "\n\n" + strings.ReplaceAll(hunk, "1", "9"), StripAuto, `modified "x" "x" 1,1+1,1 9,1+9,1`},
		{"text between hunks", "--- x\n+++ x\n" + hunk + "and\n" + hunk, StripAuto, "patch line 7: a hunk without the lines --- and +++ before it that name its file"},
		{"no hunk", "--- x\n+++ x\n\n", StripAuto, `patch line 1: names a file, but no hunk "@@ -LINE,COUNT +LINE,COUNT @@" follows`},
		{"no hunk after git's header", "diff --git a/x b/x\n--- a/x\n+++ b/x\n", StripAuto, `patch line 4: names the file x, but no hunk "@@ -LINE,COUNT +LINE,COUNT @@" follows`},
		{"body without marks", "--- x\n+++ x\n@@ -1,2 +1,2 @@\na\nb\n", StripAuto, "patch line 3: the hunk adds and removes nothing; begin added lines with + and removed ones with -"},
		{"body that ends early", "--- x\n+++ x\n@@ -1,2 +1,2 @@\n a\nb\n", StripAuto, "patch line 5: ends the hunk that begins at patch line 3 before anything was changed; begin each of its lines with a space, - or +"},
		{"half a rename", "diff --git a/x b/y\nrename from x\n", StripAuto, "patch line 1: a rename or copy needs both names, from and to"},
		{"two names", "diff --git a/x b/y\n--- a/x\n+++ b/y\n" + hunk, StripAuto, "patch line 1: the header names two files, x and y, but no rename; add the lines rename from and rename to"},
		{"no name", "diff --git \nold mode 100644\nnew mode 100755\n", StripAuto, "patch line 1: the header does not tell the file's name; write it as diff --git a/NAME b/NAME"},
		{"no mode", "diff --git a/x b/x\nold mode rwx\n", StripAuto, `patch line 2: "rwx" is no file mode; write one such as 100644`},
		{"nothing twice", "--- /dev/null\n+++ /dev/null\n" + hunk, StripAuto, "patch line 1: both sides are /dev/null, so no file is named"},
		{"a line amidst that lost its space", "--- x\n+++ x\n@@ -1,4 +1,4 @@\n-a\n+b\nc\n-d\n+e\n", StripAuto, "patch line 6: is no line of the hunk that begins at patch line 3, whose header counts 4 and 4 lines and whose body ends here with 1 and 1; begin each of its lines with a space, - or +"},
		{"dots for lines", "--- x\n+++ x\n@@ -1,9 +1,9 @@\n a\n-b\n+c\n...\n-d\n+e\n", StripAuto, "patch line 7: is no line of the hunk that begins at patch line 3, whose header counts 9 and 9 lines and whose body ends here with 2 and 2; begin each of its lines with a space, - or +"},
		{"a note amidst", "--- x\n+++ x\n@@ -1,3 +1,3 @@\n-b\n+c\n# note\n d\n@@ -9 +9 @@\n-b\n+c\n", StripAuto, "patch line 6: is no line of the hunk that begins at patch line 3, whose header counts 3 and 3 lines and whose body ends here with 1 and 1; begin each of its lines with a space, - or +"},
		{"a tab for a space", "--- x\n+++ x\n@@ -1,2 +1,2 @@\n-b\n+c\n\td\n", StripAuto, "patch line 6: is no line of the hunk that begins at patch line 3, whose header counts 2 and 2 lines and whose body ends here with 1 and 1; begin each of its lines with a space, - or +"},
		{"an empty line, and one that lost its space", "--- x\n+++ x\n@@ -1,4 +1,4 @@\n-b\n+c\n\nd\n-e\n", StripAuto, "patch line 7: is no line of the hunk that begins at patch line 3, whose header counts 4 and 4 lines and whose body ends here with 1 and 1; begin each of its lines with a space, - or +"},
		{"counts that fit in front of one", "--- x\n+++ x\n@@ -1 +1 @@\n-b\n+c\nd\n-e\n+f\n", StripAuto, "patch line 6: is no line of the hunk that begins at patch line 3, whose header counts 1 and 1 lines and whose body ends here with 1 and 1; begin each of its lines with a space, - or +"},
		{"cut off", "--- x\n+++ x\n@@ -1,3 +1,3 @@\n a\n-b\n", StripAuto, "patch line 3: the patch ends within this hunk, whose header counts 3 and 3 lines and whose body has 2 and 1; give all of it, or counts that are right"},
		{"cut off, one side whole", "--- x\n+++ x\n@@ -1,2 +1,2 @@\n-a\n-b\n+c", StripAuto, "patch line 3: the patch ends within this hunk, whose header counts 2 and 2 lines and whose body has 2 and 1; give all of it, or counts that are right"},
		{"wrong counts, in a fence", "```\n--- x\n+++ x\n@@ -1,9 +1,9 @@\n-b\n+c\n```\nIt is done.\n", StripAuto, `modified "x" "x" 1,1+1,1 (The header of hunk 1 counts 9 and 9 lines, its body has 1 and 1; the body was taken.)`},
		{"right counts, and prose", "--- x\n+++ x\n" + hunk + "It is done.\n\n- with a list\n", StripAuto, `modified "x" "x" 1,1+1,1`},
		{"newline mark first", "--- x\n+++ x\n@@ -1 +1 @@\n\\ No newline at end of file\n-a\n+b\n", StripAuto, `patch line 4: "\\ No newline at end of file" stands before any line of the hunk`},
		{"newline mark amidst", "--- x\n+++ x\n@@ -1,2 +1,2 @@\n-a\n\\ No newline at end of file\n+b\n c\n", StripAuto, "patch line 3: in this hunk a line without a newline at its end is followed by others"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files, err := Parse(tt.patch, tt.strip)
			got := strings.TrimSuffix(show(files), "\n")
			if err != nil {
				c, message := fault.Of(err)
				if got = message; c != fault.InvalidParameter {
					t.Errorf("code %s", c)
				}
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

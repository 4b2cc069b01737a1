package patch

import (
	"strings"
	"testing"
)

// What git would refuse or leave open: line ends that differ, and which of
// several places is taken.
func TestApply(t *testing.T) {
	const head = "--- f\n+++ f\n"
	tests := []struct{ name, text, patch, want, diff string }{
		{"same line ends come first", "a\r\nb\r\nc\r\nx\na\nb\nc\n", head + "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", "a\r\nb\r\nc\r\nx\na\nB\nc\n", "@@ -3,5 +3,5 @@\n c\r\n x\n a\n-b\n+B\n c\n"},
		{"line ends told", "a\nb\nc\nD\n", head + "@@ -1,4 +1,4 @@\n a\n-b\n+b\r\n c\n d\n", "a\nb\r\nc\nD\n", "@@ -1,4 +1,4 @@\n a\n-b\n+b\r\n c\n D\n"},
		{"equally near", "a\nb\nc\n1\n2\n3\na\nb\nc\n", head + "@@ -4,3 +4,3 @@\n a\n-b\n+B\n c\n", "a\nb\nc\n1\n2\n3\na\nB\nc\n", "@@ -5,5 +5,5 @@\n 2\n 3\n a\n-b\n+B\n c\n"},
		{"line after an open one", "a\nb", head + "@@ -1,2 +1,3 @@\n a\n b\n+c\n", "a\nb\nc", "@@ -1,2 +1,3 @@\n a\n-b\n\\ No newline at end of file\n+b\n+c\n\\ No newline at end of file\n"},
		{"two hunks after an open one", "a", head + "@@ -1,0 +2 @@\n+b\n@@ -1,0 +3 @@\n+c\n", "a\nb\nc", "@@ -1 +1,3 @@\n-a\n\\ No newline at end of file\n+a\n+b\n+c\n\\ No newline at end of file\n"},
		{"added lines take their ends from around", "a\r\nb\nc\r\n", head + "@@ -1,3 +1,5 @@\n a\n+1\n b\n+2\n c\n", "a\r\n1\r\nb\n2\nc\r\n", "@@ -1,3 +1,5 @@\n a\r\n+1\r\n b\n+2\n c\r\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files, err := Parse(tt.patch, StripAuto)
			if err != nil {
				t.Fatal(err)
			}
			a, err := Apply(t.Context(), tt.text, files[0])
			if err != nil {
				t.Fatal(err)
			}
			if got := a.Text(); got != tt.want {
				t.Errorf("text is %q, want %q (%q)", got, tt.want, a.Notes)
			}
			if got := a.Diff(); got != tt.diff {
				t.Errorf("diff is %q, want %q", got, tt.diff)
			}
		})
	}
}

// With a line of context that is wrong, a hunk that fits in two places away from
// its line is not put into either.
func TestFuzzNeedsOnePlace(t *testing.T) {
	block := "b\nc\nd\ne\nf\n"
	files, err := Parse("--- f\n+++ f\n@@ -1,7 +1,7 @@\n a\n b\n c\n-d\n+D\n e\n f\n g\n", StripAuto)
	if err != nil {
		t.Fatal(err)
	}
	if a, err := Apply(t.Context(), strings.Repeat("x\n", 20)+block+"x\n", files[0]); err != nil || a.Hunks[0].Fuzz != 1 || a.Hunks[0].Offset != 19 {
		t.Errorf("in one place: %v, %+v", err, a)
	}
	if _, err := Apply(t.Context(), strings.Repeat("x\n", 20)+block+"x\n"+block, files[0]); err == nil {
		t.Error("applied to one of two places")
	}
}

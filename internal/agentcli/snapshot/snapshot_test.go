package snapshot

import (
	"slices"
	"testing"
)

func TestRelative(t *testing.T) {
	for _, c := range []struct{ prefix, name, want string }{
		{"", "a/b", "a/b"}, {"sub/", "sub/a", "a"}, {"sub/", "a", "../a"}, {"a/b/", "a/c/d", "../c/d"}, {"a/b/", "x", "../../x"}, {"a/b/", "ab/x", "../../ab/x"},
	} {
		if got := relative(c.prefix, c.name); got != c.want {
			t.Errorf("%s from %s is %s, not %s", c.name, c.prefix, got, c.want)
		}
	}
}

func TestWithoutBinaries(t *testing.T) {
	text := "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+Binary files are not text\n"
	binary := "diff --git a/p b/p\nnew file mode 100644\nindex 0000000..1111111\nBinary files /dev/null and b/p differ\n"
	for _, c := range []struct{ in, want string }{{text, text}, {binary, ""}, {text + binary + text, text + text}, {binary + text, text}, {"", ""}} {
		if got := withoutBinaries(c.in); got != c.want {
			t.Errorf("got\n%s\nwant\n%s", got, c.want)
		}
	}
	if parts := slices.Collect(splitDiff(text + binary)); !slices.Equal(parts, []string{text, binary}) {
		t.Errorf("parts %q", parts)
	}
}

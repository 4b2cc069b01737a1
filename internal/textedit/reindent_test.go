package textedit_test

import (
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/textedit"
)

func TestReindent(t *testing.T) {
	const file = "func f() {\r\n\tfor {\r\n\t\tg()\r\n\t}\r\n}"
	d, err := textedit.Parse([]byte(file), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		first, last     int
		old, text, want string
	}{
		{3, 3, "g()", "if x {\n    g()\n}", "\t\tif x {\n\t\t\tg()\n\t\t}"},
		{3, 3, "\t\tg()", "\t\th()\n", "\t\th()\n"},
		{2, 4, "for {\r\n  g()\r\n}\r\n", "for {\n  g()\n\n  h()\n}", "\tfor {\n\t\tg()\n\n\t\th()\n\t}"},
		{5, 5, "}", "} // f", "} // f"},
		{3, 3, "g()\nh()", "x\n  y", "x\n  y"},
		{3, 3, "  ", "x\n  y", "x\n  y"},
	} {
		if got := d.Reindent(c.first, c.last, c.old, c.text); got != c.want {
			t.Errorf("%d-%d %q: %q, want %q", c.first, c.last, c.text, got, c.want)
		}
	}
}

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/conduit-mcp/conduit-mcp/cmd"
)

// Every command has a page, which says what its help says.
func TestPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man")
	if err := write(dir); err != nil {
		t.Fatal(err)
	}
	root, err := cmd.Root()
	if err != nil {
		t.Fatal(err)
	}
	pages := 0
	var look func(c *cobra.Command)
	look = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			look(sub)
		}
		if c.Hidden || !c.IsAvailableCommand() && c.HasParent() && !c.IsAdditionalHelpTopicCommand() || c.Name() == "help" {
			return
		}
		pages++
		name := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
		b, err := os.ReadFile(filepath.Join(dir, name))
		page := string(b)
		if err != nil || !strings.HasPrefix(page, ".nh\n.TH ") || !strings.Contains(plain(page), plain(c.Short)) {
			t.Errorf("%s: %v\n%.300s", name, err, page)
		}
		for _, ours := range []string{"/home", "/root", "Auto generated"} {
			if strings.Contains(page, ours) {
				t.Errorf("%s has %s", name, ours)
			}
		}
		if c.HasLocalFlags() && !strings.Contains(page, ".SH OPTIONS") {
			t.Errorf("%s lacks its options", name)
		}
	}
	look(root)
	if found, err := os.ReadDir(dir); err != nil || pages < 30 || len(found) < pages {
		t.Errorf("%d commands, %d pages, %v", pages, len(found), err)
	}
}

// plain is a page without roff.
func plain(s string) string {
	return strings.NewReplacer(`\fB`, "", `\fP`, "", `\fI`, "", `\`, "").Replace(s)
}

// What writes manual pages is not in the server.
func TestNotInTheServer(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "../../cmd/conduit-mcp").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range strings.Fields(string(out)) {
		if strings.HasPrefix(pkg, "github.com/spf13/cobra/doc") || strings.Contains(pkg, "md2man") {
			t.Errorf("the server has %s", pkg)
		}
	}
}

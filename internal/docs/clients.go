package docs

import (
	"fmt"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/internal/clients"
)

// The servers that [Clients] shows.
var (
	example = clients.Server{Command: "/usr/local/bin/conduit-mcp", Env: map[string]string{"CONDUIT_ALLOWED_PATHS": "/home/me/projects"}}
	windows = clients.Server{Command: `C:\Users\me\bin\conduit-mcp.exe`, Env: map[string]string{"CONDUIT_ALLOWED_PATHS": `C:\Users\me\projects;D:\data`}}
)

// Clients renders a page that shows every known client how to start the server.
func Clients() string {
	var b strings.Builder
	b.WriteString("# Clients\n\n`conduit-mcp doctor --client NAME DIRECTORY` prints what stands here, with your paths and all settings that are set;\n" +
		"with `--quiet` nothing else. The command is a full path, since clients that are started from a menu do not have the\n`PATH` of a shell. " +
		"Add the entry to those that are there already, and start the client anew.\n\nWritten by `make docs` from the code.\n")
	for _, c := range clients.All {
		fmt.Fprintf(&b, "\n## %s\n\n`--client %s`\n\n- %s\n\n%s", c.Title, c.ID, strings.Join(c.Files, "\n- "), fenced(c, example))
	}
	b.WriteString("\n## Windows\n\nDirectories are separated by `;`. A backslash is written twice, in JSON as in TOML; `/` does as well:\n\n")
	for _, id := range []string{clients.Default, "codex"} {
		c, _ := clients.Find(id)
		b.WriteString(fenced(c, windows))
		if !c.TOML {
			b.WriteString("\n")
		}
	}
	return b.String()
}

func fenced(c clients.Client, s clients.Server) string {
	language := "json"
	if c.TOML {
		language = "toml"
	}
	return fmt.Sprintf("```%s\n%s\n```\n", language, c.Snippet(s))
}

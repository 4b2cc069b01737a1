// Package docs writes the pages of reference from what is
// registered, so that they cannot say anything else than the code.
package docs

import (
	"fmt"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/registry"
)

// Settings renders a Markdown table of settings.
func Settings(list []registry.Setting) string {
	var b strings.Builder
	b.WriteString("| Variable | Default | Meaning |\n| --- | --- | --- |\n")
	for _, s := range list {
		def := ""
		if d := defaultOf(s); d != "" {
			def = "`" + d + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", s.Env, def, cell(meaning(s)))
	}
	return b.String()
}

// Environment renders settings as the lines of an environment file, each
// commented out with its default, but for CONDUIT_ALLOWED_PATHS: to set that to
// its default would lift the denial of credentials.
func Environment(list []registry.Setting) string {
	var b strings.Builder
	b.WriteString("# The settings of conduit-mcp with their defaults. A variable that is set but\n# empty counts as unset. conduit-mcp --env-file FILE reads such a file; what the\n# environment has comes before it. Written by make docs.\n")
	for _, s := range list {
		def := defaultOf(s)
		if s.Env == "CONDUIT_ALLOWED_PATHS" {
			def = ""
		}
		fmt.Fprintf(&b, "\n# %s\n# %s=%s\n", meaning(s), s.Env, def)
	}
	return b.String()
}

// defaultOf is the default of a setting where that is a value to write; of
// directories of the user the meaning tells it.
func defaultOf(s registry.Setting) string {
	if s.Kind == "state" || s.Kind == "data" {
		return ""
	}
	return s.Default
}

func meaning(s registry.Setting) string {
	text := s.Doc
	if a := s.Accepts(); a != "" {
		text += " " + sentence(a)
	}
	if len(s.Aliases) > 0 {
		text += " " + strings.Join(s.Aliases, ", then ") + " counts where it is unset."
	}
	return text
}

// sentence makes a phrase a sentence.
func sentence(phrase string) string {
	return strings.ToUpper(phrase[:1]) + phrase[1:] + "."
}

// cell escapes text for a cell of a Markdown table.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}

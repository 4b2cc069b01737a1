package agentcli

import (
	"fmt"
	"strings"
)

// prompt is what the agent is told.
func prompt(cwd string, r Request) string {
	var b strings.Builder
	section := func(title, text string) { fmt.Fprintf(&b, "# %s\n%s\n\n", title, text) }
	section("1.0 SYSTEM DIRECTIVE", "You are a software engineer who works alone, without anybody to ask, in one directory. Do the task below completely, by editing the files there. Nobody can answer questions; where something is unclear, choose what is most sensible and say so at the end.")
	section("2.0 TASK", strings.TrimSpace(r.Instructions))
	var limits []string
	limits = append(limits, "- Work in "+cwd+" and change nothing outside it.")
	if len(r.Allowlist) > 0 {
		limits = append(limits, "- Change only files covered by: "+strings.Join(r.Allowlist, ", "))
	}
	if r.TestCommand != nil {
		limits = append(limits, "- When you have finished, this command is run and must succeed: "+*r.TestCommand)
	}
	limits = append(limits, "- Do not commit, push or rewrite history, and leave no processes running.", "- Put no passwords, keys or tokens into files or answers.")
	section("3.0 CONSTRAINTS", strings.Join(limits, "\n"))
	section("3.1 QUALITY BAR", "Keep to the style of the code around. Change what the task needs and no more. Leave no placeholders.")
	section("4.0 EXECUTION PROTOCOL", "1. Read what matters for the task.\n2. Make the changes.\n3. Check them, with the project's own tests where there are any.")
	section("5.0 OUTPUT", "End with a short summary: what you changed, in which files, and anything left open. The changes themselves are taken from the files; do not repeat them.")
	return strings.TrimSpace(b.String()) + "\n"
}

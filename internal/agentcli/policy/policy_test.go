package policy_test

import (
	"strings"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/policy"
)

func TestAllowed(t *testing.T) {
	for _, c := range []struct {
		entry, name string
		want        bool
	}{
		{"a.go", "a.go", true}, {"a.go", "b/a.go", false}, {"*.go", "a.go", true}, {"*.go", "b/a.go", false}, {"**/*.go", "b/c/a.go", true},
		{"src", "src/a/b", true}, {"src/", "src/a", true}, {"./src", "src/a", true}, {"src", "srcs/a", false}, {"src", "src", true},
		{"{a,b}/*.md", "b/x.md", true}, {"src/?.go", "src/a.go", true}, {".", "anything/at/all", true}, {"**", "x", true},
		{"**", "../x", false}, {".", "../x", false}, {"x", "../x", false}, {`src\a`, "src/b", false},
	} {
		if got := policy.Allowed([]string{c.entry}, c.name); got != c.want {
			t.Errorf("%s covers %s: %t", c.entry, c.name, got)
		}
	}
}

func TestSecrets(t *testing.T) {
	for _, c := range []struct{ line, kind string }{
		{"+-----BEGIN OPENSSH PRIVATE KEY-----", "a private key"},
		{"+id = AKIAABCDEFGHIJKLMNOP", "an AWS access key"},
		{"+ghp_" + strings.Repeat("a1", 18), "a GitHub token"},
		{"+github_pat_" + strings.Repeat("a1", 18), "a GitHub token"},
		{"+glpat-" + strings.Repeat("a", 20), "a GitLab token"},
		{"+xoxb-1234567890-abc", "a Slack token"},
		{"+AIza" + strings.Repeat("b", 35), "a Google API key"},
		{"+npm_" + strings.Repeat("c", 36), "an npm token"},
		{"+sk-proj-" + strings.Repeat("d", 24), "an API key"},
		{"+eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefghijkl", "a JSON web token"},
		{"+x = [hidden]", "a value of the agent's environment"},
		{"-AKIAABCDEFGHIJKLMNOP", ""},
		{" AKIAABCDEFGHIJKLMNOP", ""},
		{"+risk-averse-and-otherwise-harmless", ""},
		{"+AKIA is how they begin", ""},
	} {
		issues := policy.After(nil, nil, nil, "--- a/f\n+++ b/dir/f\n@@ -1 +1 @@\n"+c.line+"\n"+c.line+"\n")
		switch {
		case c.kind == "" && len(issues) > 0:
			t.Errorf("%s: %+v", c.line, issues)
		case c.kind != "" && (len(issues) != 1 || issues[0].Code != policy.SecretInDiff || !strings.HasPrefix(issues[0].Message, "dir/f: ") || !strings.Contains(issues[0].Message, c.kind+";")):
			t.Errorf("%s: %+v", c.line, issues)
		}
		if len(issues) > 0 && c.kind != "a value of the agent's environment" && strings.Contains(issues[0].Message, c.line[1:]) {
			t.Errorf("the message shows the secret: %s", issues[0].Message)
		}
	}
}

func TestBefore(t *testing.T) {
	none := " "
	issues := policy.Before(policy.Task{Instructions: "", TestCommand: &none, TestRequired: true, Allowlist: []string{"ok", `..\x`, "a/../b"}, Depth: 1, MaxDepth: 1, Worktree: true})
	var codes []string
	for _, i := range issues {
		codes = append(codes, i.Code)
		if i.Phase != "pre" || i.Severity != "error" {
			t.Errorf("%+v", i)
		}
	}
	if got := strings.Join(codes, " "); got != "POLICY_INSTRUCTIONS_REQUIRED POLICY_TEST_COMMAND_EMPTY POLICY_ALLOWLIST_ESCAPE POLICY_AGENT_DEPTH POLICY_WORKTREE_REPOSITORY" {
		t.Error(got)
	}
	if issues := policy.Before(policy.Task{Instructions: "x", MaxDepth: 1, Worktree: true, Repository: true}); len(issues) > 0 {
		t.Errorf("%+v", issues)
	}
}

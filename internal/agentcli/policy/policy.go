// Package policy judges tasks before they run and what they changed after.
package policy

import (
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/bmatcuk/doublestar/v4"
)

// Codes of an Issue.
const (
	InstructionsRequired = "POLICY_INSTRUCTIONS_REQUIRED"
	TestCommandRequired  = "POLICY_TEST_COMMAND_REQUIRED"
	TestCommandEmpty     = "POLICY_TEST_COMMAND_EMPTY"
	AllowlistAbsolute    = "POLICY_ALLOWLIST_ABSOLUTE"
	AllowlistEscape      = "POLICY_ALLOWLIST_ESCAPE"
	AllowlistPattern     = "POLICY_ALLOWLIST_PATTERN"
	DirtyBaseline        = "POLICY_ALLOWLIST_DIRTY_BASELINE"
	AllowlistViolation   = "POLICY_ALLOWLIST_VIOLATION"
	DepthExceeded        = "POLICY_AGENT_DEPTH"
	WorktreeRepository   = "POLICY_WORKTREE_REPOSITORY"
	SecretInDiff         = "POLICY_SECRET_IN_DIFF"
)

// An Issue is one finding. Those of phase pre are errors, and the task does not
// run; those of phase post are warnings, and leave its outcome as it is.
type Issue struct {
	Code     string `json:"code"`
	Message  string `json:"message"`
	Phase    string `json:"phase"`
	Severity string `json:"severity"`
}

func refuse(code, format string, args ...any) Issue {
	return Issue{code, fmt.Sprintf(format, args...), "pre", "error"}
}

func warn(code, format string, args ...any) Issue {
	return Issue{code, fmt.Sprintf(format, args...), "post", "warning"}
}

// A Task is what is judged before a run.
type Task struct {
	Instructions string
	TestCommand  *string // nil where the caller gave none
	TestRequired bool    // policy.requireTestCommand
	Allowlist    []string
	Depth        int // agents above this run
	MaxDepth     int
	Worktree     bool
	Repository   bool // the working directory belongs to a git repository
	Words        Words
}

// Words are what messages call things to whoever calls: tools and parameters, or
// commands and options. Each fits where its example stands.
type Words struct {
	Health, Cancel, List, Wait              string // "Run providers_health", "task_list tells", "wait for it with task_status"
	Instructions, Test, Allowlist, Worktree string // "instructions is empty", "give testCommand", "allowlist entry", "leave worktree out"
	Env, Cwd, TaskID, Cursor                string // "env: ...", "cwd names the directory", "choose another taskId", "one that task_status returned"
}

// Before returns the reasons not to run t.
func Before(t Task) []Issue {
	var issues []Issue
	w := t.Words
	if strings.TrimSpace(t.Instructions) == "" {
		issues = append(issues, refuse(InstructionsRequired, "%s is empty; say what the agent should do", w.Instructions))
	}
	switch {
	case t.TestCommand == nil && t.TestRequired:
		issues = append(issues, refuse(TestCommandRequired, "policy.requireTestCommand is set; give %s, a shell command that checks the result", w.Test))
	case t.TestCommand != nil && strings.TrimSpace(*t.TestCommand) == "":
		issues = append(issues, refuse(TestCommandEmpty, "%s is empty; give a shell command or leave it out", w.Test))
	}
	for _, entry := range t.Allowlist {
		slashed := filepath.ToSlash(entry)
		switch {
		case path.IsAbs(slashed) || filepath.IsAbs(entry) || strings.HasPrefix(entry, "~"):
			issues = append(issues, refuse(AllowlistAbsolute, "%s entry %q is absolute; write it relative to the working directory", w.Allowlist, entry))
		case escapes(slashed):
			issues = append(issues, refuse(AllowlistEscape, "%s entry %q leads out of the working directory; leave out ..", w.Allowlist, entry))
		case !doublestar.ValidatePattern(slashed):
			issues = append(issues, refuse(AllowlistPattern, "%s entry %q is no valid glob", w.Allowlist, entry))
		}
	}
	if t.Depth >= t.MaxDepth {
		issues = append(issues, refuse(DepthExceeded, "this server was started by an agent that runs under conduit already, %d deep; agents may be %d deep (runner.maxDepth)", t.Depth, t.MaxDepth))
	}
	if t.Worktree && !t.Repository {
		issues = append(issues, refuse(WorktreeRepository, "%s needs a git repository, and the working directory is in none; leave %[1]s out, or run git init there", w.Worktree))
	}
	return issues
}

// escapes reports whether a relative pattern may lead above where it starts.
func escapes(pattern string) bool {
	return slices.Contains(strings.Split(pattern, "/"), "..")
}

// After returns warnings on what a run changed: changed are the paths relative
// to the working directory, dirty those that differed from the last commit
// before the run already.
func After(allowlist, changed, dirty []string, diff string) []Issue {
	var issues []Issue
	if len(allowlist) > 0 {
		if len(dirty) > 0 {
			issues = append(issues, warn(DirtyBaseline, "uncommitted changes were there before the run, in %d paths; only what the agent itself changed was checked against the allowlist", len(dirty)))
		}
		for _, name := range changed {
			if !Allowed(allowlist, name) {
				issues = append(issues, warn(AllowlistViolation, "%s was changed and is not covered by the allowlist", name))
			}
		}
	}
	return append(issues, secrets(diff)...)
}

// Allowed reports whether an entry covers name: it is the name itself, a
// directory above it, or a glob that matches it.
func Allowed(allowlist []string, name string) bool {
	return !strings.HasPrefix(name, "../") && slices.ContainsFunc(allowlist, func(entry string) bool {
		entry = path.Clean(filepath.ToSlash(entry))
		if entry == "." || name == entry || strings.HasPrefix(name, entry+"/") {
			return true
		}
		ok, _ := doublestar.Match(entry, name)
		return ok
	})
}

// A shape is what credentials of a well-known kind look like.
type shape struct {
	kind   string
	needle string // every one holds it
	form   *regexp.Regexp
}

var shapes = sync.OnceValue(func() []shape {
	return []shape{
		{"a private key", "PRIVATE KEY", regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----`)},
		{"an AWS access key", "AKIA", regexp.MustCompile(`\bAKIA[0-9A-Z]{16}\b`)},
		{"a GitHub token", "gh", regexp.MustCompile(`\bgh[opsur]_[0-9A-Za-z]{30,}`)},
		{"a GitHub token", "github_pat_", regexp.MustCompile(`\bgithub_pat_\w{30,}`)},
		{"a GitLab token", "glpat-", regexp.MustCompile(`\bglpat-[\w-]{20,}`)},
		{"a Slack token", "xox", regexp.MustCompile(`\bxox[abprs]-[\w-]{10,}`)},
		{"a Google API key", "AIza", regexp.MustCompile(`\bAIza[\w-]{35}\b`)},
		{"an npm token", "npm_", regexp.MustCompile(`\bnpm_[0-9A-Za-z]{36}\b`)},
		{"an API key", "sk-", regexp.MustCompile(`\bsk-[\w-]{20,}`)},
		{"a JSON web token", "eyJ", regexp.MustCompile(`\beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{10,}`)},
	}
})

// Credentials names the kinds of credentials that text holds, by their shapes.
func Credentials(text string) []string {
	var kinds []string
	for _, s := range shapes() {
		if strings.Contains(text, s.needle) && s.form.MatchString(text) {
			kinds = append(kinds, s.kind)
		}
	}
	return kinds
}

// Hidden stands where a value of the environment was taken out of a text.
const Hidden = "[hidden]"

// secrets warns of lines that a diff adds and that look like credentials. The
// messages name file and kind, never the text.
func secrets(diff string) []Issue {
	var issues []Issue
	file := ""
	for line := range strings.Lines(diff) {
		if name, ok := strings.CutPrefix(line, "+++ "); ok {
			file = strings.TrimPrefix(strings.TrimSpace(name), "b/")
			continue
		}
		if !strings.HasPrefix(line, "+") {
			continue
		}
		found := func(kind string) {
			i := warn(SecretInDiff, "%s: an added line holds what looks like %s; remove it before it is committed", file, kind)
			if !slices.Contains(issues, i) {
				issues = append(issues, i)
			}
		}
		if strings.Contains(line, Hidden) {
			found("a value of the agent's environment")
		}
		for _, kind := range Credentials(line) {
			found(kind)
		}
	}
	return issues
}

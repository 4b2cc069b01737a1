package output

import (
	"regexp"
	"sync"
)

// A Class is a kind of failure that calls for its own answer.
type Class string

const (
	Auth        Class = "auth"         // the agent must be logged in first
	RateLimited Class = "rate_limited" // or out of quota
	Missing     Class = "not_installed"
	IdleTimeout Class = "idle_timeout"
	HardTimeout Class = "hard_timeout"
	Stopped     Class = "cancelled"
	Killed      Class = "signal" // ended by a signal from elsewhere
	Reported    Class = "agent_error"
	ExitCode    Class = "exit_code"
)

// The words are those of errors and their codes. They are looked for in error
// events and in what a failed agent wrote to stderr, never in its answer, which
// may well be about them.
var (
	authWords = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)not logged in|please (run|use) .{0,20}login|log ?in (required|again)|/login\b|unauthori[sz]ed|authentication[_ ](error|failed|required)|auth_required|` +
			`invalid (x-)?api[- _]key|incorrect api key|api key (not|is not) (valid|set|found)|missing (api key|credentials)|no credentials|(status|code|http|error)\D{0,12}\b40[13]\b|\b401 unauthorized|\b403 forbidden|set an auth method|token (has )?expired`)
	})
	rateWords = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)rate[- _]?limit|too many requests|quota exceeded|exceeded your current quota|insufficient_quota|RESOURCE_EXHAUSTED|usage limit|(status|code|http|error)\D{0,12}\b429\b|overloaded_error|out of credits`)
	})
)

// exitClasses are the exit codes that mean one thing in one format.
var exitClasses = map[string]map[int]Class{
	"gemini-stream": {41: Auth},
}

// Classify tells what kind of failure it is: format is the provider's, code the
// exit code, errors those of structured events, and stderr the end of the
// standard error.
func Classify(format string, code int, errors []string, stderr string) Class {
	if c, ok := exitClasses[format][code]; ok {
		return c
	}
	for _, text := range append(errors, stderr) {
		switch {
		case rateWords().MatchString(text):
			return RateLimited
		case authWords().MatchString(text):
			return Auth
		}
	}
	if len(errors) > 0 {
		return Reported
	}
	return ExitCode
}

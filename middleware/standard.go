package middleware

import (
	"fmt"
	"slices"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// The stages of the standard chain, outermost first. A [registry.Link] names the
// one that it follows.
const (
	StageErrors  = "errors"  // below it an error is an error; above it, an object
	StageLog     = "log"     // below it calls have been recorded; arguments are as sent
	StageNotice  = "notice"  // below it answers are without notices
	StagePayload = "payload" // below it arguments are within their limit
	StageDecode  = "decode"  // below it Call.Input is set
	StagePaths   = "paths"   // below it every path has been checked; next to the op
)

// Options are what the standard chain is given by the server.
type Options struct {
	Notice       any   // goes with the first success of a tool that carries notices; nil for none
	MaxPayload   int64 // CONDUIT_MAX_PAYLOAD_SIZE_BYTES
	Resolve      func(path string) (place.Place, error)
	ResolveBelow func(path string) (place.Place, error) // for Rooted tools
}

// Standard is the chain that every call passes, with each link behind the stage
// that it names; of several links behind one stage the first sees a call first.
func Standard(env *registry.Env, o Options, links ...registry.Link) (registry.Middleware, error) {
	type stage struct {
		name string
		mw   registry.Middleware
	}
	stages := []stage{
		{StageErrors, Errors(env.Log)},                     // the one place where an error becomes an object
		{StageLog, Log(env.Log)},                           // sees every outcome below with its raw cause
		{StageNotice, Notice(o.Notice)},                    // only successes reach it; once, atomically
		{StagePayload, PayloadLimit(o.MaxPayload)},         // cheapest refusal first
		{StageDecode, Decode()},                            // raw arguments → *In; below it calls are typed
		{StagePaths, PathGuard(o.Resolve, o.ResolveBelow)}, // needs *In; next to the op, so nothing edits paths after it
	}
	var names []string
	for _, s := range stages {
		names = append(names, s.name)
	}
	for _, l := range links {
		if !slices.Contains(names, l.After) {
			return nil, fmt.Errorf("a middleware is to follow %q; the stages are %s", l.After, strings.Join(names, ", "))
		}
	}
	var chain []registry.Middleware
	for _, s := range stages {
		chain = append(chain, s.mw)
		for _, l := range links {
			if l.After != s.name {
				continue
			}
			mw, err := l.New(env)
			if err != nil {
				return nil, err
			}
			chain = append(chain, mw)
		}
	}
	return registry.Chain(chain...), nil
}

package registry

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"reflect"
	"sync"
	"time"

	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// Env is what the server lends to ops and toolsets: everything they may not make
// themselves.
type Env struct {
	Context context.Context // ends with the server; background work keeps to it
	Log     *slog.Logger
	HTTP    *http.Client // keeps to CONDUIT_URL_GUARD and the other settings of URLs
	Now     func() time.Time
	Lookup  func(key string) (string, bool) // of the environment
	Project string                          // absolute directory that relative paths start from
	Paths   PathService                     // for paths that are no parameters: names in a patch, what an undo restores
	Server  Server

	sharing sync.Mutex
	shared  map[reflect.Type]*shared

	hooks  sync.Mutex
	closes []func() error
	lists  []func()
}

// A PathService is the server's path guard, for paths that are no parameters.
// Those of parameters have been through it before an op sees them.
type PathService interface {
	place.Guard

	// Allow makes dir, a directory among the files that toolsets keep for
	// themselves, usable by every tool until Revoke. What is allowed is the
	// directory that has the name now: one that takes its place later is not.
	Allow(dir string) error
	// Revoke takes back what Allow did for dir, which may be gone.
	Revoke(dir string)
}

// Server is what a server says of itself.
type Server struct {
	Version       string
	Started       time.Time
	AllowedPaths  []string        // allowed directories, every link resolved
	DeniedPaths   []string        // active deny rules as written, "~" resolved
	LogFile       string          // "NONE" where logging is off
	Configuration json.RawMessage // object of the active settings by variable
}

// A shared is a value of Shared, or the place of one that could not be made yet.
type shared struct {
	making sync.Mutex
	made   bool
	value  any
}

// Shared returns the server's one T, making it on first use. The ops of a
// family share state through it, such as open sessions. make may call
// Shared for other types, but for none whose making needs T. What failed is
// tried again by the next call.
func Shared[T any](env *Env, make func(*Env) (T, error)) (T, error) {
	env.sharing.Lock()
	s := env.shared[reflect.TypeFor[T]()]
	if s == nil {
		if env.shared == nil {
			env.shared = map[reflect.Type]*shared{}
		}
		s = &shared{}
		env.shared[reflect.TypeFor[T]()] = s
	}
	env.sharing.Unlock()
	s.making.Lock()
	defer s.making.Unlock()
	if s.made {
		return s.value.(T), nil
	}
	v, err := make(env)
	if err == nil {
		s.value, s.made = v, true
	}
	return v, err
}

// OnClose has f called when the server ends, last registered first. It may be
// called from builders and from the make function of [Shared].
func (e *Env) OnClose(f func() error) {
	e.hooks.Lock()
	defer e.hooks.Unlock()
	e.closes = append(e.closes, f)
}

// OnList has f called when a client first asks for the list of tools. It must
// return at once. It may be called from builders and from the make function of
// [Shared].
func (e *Env) OnList(f func()) {
	e.hooks.Lock()
	defer e.hooks.Unlock()
	e.lists = append(e.lists, f)
}

// Listed runs the functions given to OnList, each once.
func (e *Env) Listed() {
	e.hooks.Lock()
	lists := e.lists
	e.lists = nil
	e.hooks.Unlock()
	for _, f := range lists {
		f()
	}
}

// Close runs the functions given to OnClose once and returns the first error.
func (e *Env) Close() error {
	e.hooks.Lock()
	closes := e.closes
	e.closes = nil
	e.hooks.Unlock()
	var first error
	for i := len(closes) - 1; i >= 0; i-- {
		if err := closes[i](); err != nil && first == nil {
			first = err
		}
	}
	return first
}

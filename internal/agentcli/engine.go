// Package agentcli gives tasks to command line agents under policy and tells
// exactly what they changed.
package agentcli

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/config"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/policy"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/process"
	"github.com/conduit-mcp/conduit-mcp/internal/agentcli/task"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// DepthVar tells how many agents under conduit are above a process.
const DepthVar = "CONDUIT_AGENT_DEPTH"

// MarkVar marks all processes of one run.
const MarkVar = task.MarkVar

// Services are what the engine may not make itself.
type Services struct {
	Log    *slog.Logger
	Now    func() time.Time
	Lookup func(key string) (string, bool) // of the environment
	// Places are directories whose tasks are known without being named, beside
	// those that tasks were run in: the project and the allowed directories.
	Places []string
	// State is where records of tasks and locks are kept; "": conduit-mcp/agent
	// in the user's state directory, as Lookup has it.
	State string
	Words Words
	Clock *process.Clock // that time limits of runs go by; nil: the system's
}

// Words are what messages call things.
type Words = policy.Words

// An Engine runs tasks. It is safe for use from several goroutines.
type Engine struct {
	*Services
	config *config.Config
	health health

	ctx  context.Context // ends with the engine
	stop context.CancelFunc
	runs sync.WaitGroup

	mu    sync.Mutex
	live  map[string]*live // tasks of this process by id
	ended []string         // those that are over, the oldest first
	trees map[string]chan struct{}
	known []place.Place // working directories of tasks
}

// remembered is how many ended tasks are kept in memory.
const remembered = 200

// New returns an engine for the configuration. Nothing runs before it is asked
// for.
func New(c *config.Config, s Services) *Engine {
	if s.State == "" {
		s.State = stateDir(s.Lookup)
	}
	e := &Engine{Services: &s, config: c, live: map[string]*live{}, trees: map[string]chan struct{}{}}
	e.ctx, e.stop = context.WithCancel(context.Background())
	e.health.init()
	return e
}

// Close ends all runs, each with what it started, and records them as
// interrupted.
func (e *Engine) Close() error {
	e.stop()
	e.runs.Wait()
	return nil
}

// lock waits until no other run, of this process or another, works in the tree
// whose top is top, or above or below it.
func (e *Engine) lock(ctx context.Context, top string) (unlock func(), err error) {
	e.mu.Lock()
	turn := e.trees[top]
	if turn == nil {
		turn = make(chan struct{}, 1)
		e.trees[top] = turn
	}
	e.mu.Unlock()
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	dir := filepath.Join(e.State, "claims")
	err = os.MkdirAll(dir, 0o700)
	var claims *os.Root
	if err == nil {
		claims, err = os.OpenRoot(dir)
	}
	if err != nil {
		<-turn
		return nil, err
	}
	defer claims.Close()
	for {
		release, ok, err := task.Claim(claims, top)
		if err != nil {
			<-turn
			return nil, fmt.Errorf("claiming %s: %w", top, err)
		}
		if ok {
			return func() {
				release()
				<-turn
			}, nil
		}
		select {
		case <-time.After(task.Retry):
		case <-ctx.Done():
			<-turn
			return nil, ctx.Err()
		}
	}
}

// lastLine is the last line of s that is not empty, or other where there is
// none.
func lastLine(s, other string) string {
	s = strings.TrimSpace(s)
	return cmp.Or(strings.TrimSpace(s[strings.LastIndexByte(s, '\n')+1:]), other)
}

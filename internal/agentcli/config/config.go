// Package config reads mcp-conduit.config.json: policy, runner, audit and the
// command line agents that tasks can be given to.
package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// FileName is the configuration that is looked for in the working directory.
const FileName = "mcp-conduit.config.json"

// A Config is the whole file. Every field is optional there; [Default] says
// what stands in for an absent one.
type Config struct {
	Server       Server              `json:"server"`
	ProvidersDir string              `json:"providersDir"` // of files <id>.json, relative to the configuration
	Policy       Policy              `json:"policy"`
	Runner       Runner              `json:"runner"`
	Audit        Store               `json:"audit"`
	Logs         Store               `json:"logs"`
	Providers    map[string]Provider `json:"providers"`

	// File is the file that was read, "" where there was none.
	File string `json:"-"`
}

// A Server is how the original named itself. The fields are accepted and have
// no effect: the server that carries the toolset speaks for itself.
type Server struct {
	Name            string `json:"name"`
	Version         string `json:"version"`
	ProtocolVersion string `json:"protocolVersion"`
}

// A Policy says what tasks must observe.
type Policy struct {
	TrackBinaryPaths   bool `json:"trackBinaryPaths"`   // results list changed binary files in binaryPaths
	RequireTestCommand bool `json:"requireTestCommand"` // a task without testCommand is refused
}

// A Runner bounds runs of agents.
type Runner struct {
	TimeoutSeconds float64  `json:"timeoutSeconds"` // without any output; 120
	TimeoutMs      int64    `json:"timeoutMs"`      // the same in milliseconds; wins where both are given
	MaxSeconds     float64  `json:"maxSeconds"`     // of a whole attempt; 3600
	Retry          Retry    `json:"retry"`
	MaxDepth       int      `json:"maxDepth"` // agents that may run below one another; 1
	EnvAllow       []string `json:"envAllow"` // variables that agents see beside the usual ones
}

// A Retry says how often a run that went silent is tried.
type Retry struct {
	MaxAttempts  int     `json:"maxAttempts"`  // 2
	DelaySeconds float64 `json:"delaySeconds"` // 2
	OnDirty      bool    `json:"onDirty"`      // also where the attempt before changed files
}

// A Store is a directory of records: absolute, or relative to the directory
// that a task runs in.
type Store struct {
	Enabled bool   `json:"enabled"`
	Dir     string `json:"dir"`
}

// Kinds of Provider.
const (
	JSONCLI = "json-cli" // a command that is given the prompt and prints what it does
	ACP     = "acp"      // a command that speaks the Agent Client Protocol on its standard streams
)

// Values of Provider.InputMode.
const (
	Stdin = "stdin" // the prompt is written to the standard input, which is then closed
	Arg   = "arg"   // the prompt is an argument
)

// Values of HealthCheck.AuthOutputMode.
const (
	AuthText  = "text"
	AuthJSON  = "json"
	AuthJSONL = "jsonl"
)

// A Provider is one agent and how it is called: binary, args, modelFlag and
// model, and in mode arg inputFlag and the prompt.
type Provider struct {
	Type         string            `json:"type"`
	Binary       string            `json:"binary"`
	InputMode    string            `json:"inputMode"`
	Args         []string          `json:"args"`
	InputFlag    *string           `json:"inputFlag"` // --prompt; "" gives the prompt as a bare argument
	ModelFlag    *string           `json:"modelFlag"` // --model
	Model        string            `json:"model"`
	Env          map[string]string `json:"env"`
	EnvAllow     []string          `json:"envAllow"` // variables of the server that this agent sees too
	Cwd          string            `json:"cwd"`
	TimeoutMs    int64             `json:"timeoutMs"` // in place of runner.timeoutSeconds
	OutputFormat string            `json:"outputFormat"`
	ResultPath   string            `json:"resultPath"`  // JSON pointers into the output, for agents
	SessionPath  string            `json:"sessionPath"` // whose format is none of the known ones
	UsagePath    string            `json:"usagePath"`
	Permissions  string            `json:"permissions"` // of an acp agent that asks: edits (default), all or none
	HealthCheck  HealthCheck       `json:"healthCheck"`
}

// A HealthCheck tells whether an agent can be used, without spending anything.
type HealthCheck struct {
	VersionArgs      []string `json:"versionArgs"`    // ["--version"]
	AuthArgs         []string `json:"authArgs"`       // none: no check
	AuthOutputMode   string   `json:"authOutputMode"` // text, json or jsonl
	TimeoutMs        int64    `json:"timeoutMs"`      // 15000
	SuccessExitCodes []int    `json:"successExitCodes"`
}

// OutputFormats are the values of Provider.OutputFormat.
var OutputFormats = []string{"auto", "json", "jsonl", "claude-stream", "codex-jsonl", "gemini-stream", "opencode-jsonl"}

// Idle is how long an agent of provider p may be silent.
func (c *Config) Idle(p Provider) time.Duration {
	switch {
	case p.TimeoutMs > 0:
		return time.Duration(p.TimeoutMs) * time.Millisecond
	case c.Runner.TimeoutMs > 0:
		return time.Duration(c.Runner.TimeoutMs) * time.Millisecond
	}
	return seconds(c.Runner.TimeoutSeconds)
}

// Hard is how long one attempt may take.
func (c *Config) Hard() time.Duration { return seconds(c.Runner.MaxSeconds) }

// Delay is the pause before another attempt.
func (c *Config) Delay() time.Duration { return seconds(c.Runner.Retry.DelaySeconds) }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Records returns the places of audits, logs and tasks, as globs where they are
// relative to the directories of tasks, for rules that keep them from callers.
func (c *Config) Records() []string {
	rules := []string{c.Audit.Dir, path.Join(path.Dir(filepath.ToSlash(c.Audit.Dir)), "tasks"), c.Logs.Dir}
	for i, dir := range rules {
		if !filepath.IsAbs(dir) {
			rules[i] = path.Clean(filepath.ToSlash(dir))
		}
	}
	return rules
}

// IDs returns the names of the providers, sorted.
func (c *Config) IDs() []string { return slices.Sorted(maps.Keys(c.Providers)) }

// Default is what holds without a configuration.
func Default() *Config {
	return &Config{
		Server:    Server{Name: "mcp-conduit"},
		Runner:    Runner{TimeoutSeconds: 120, MaxSeconds: 3600, MaxDepth: 1, Retry: Retry{MaxAttempts: 2, DelaySeconds: 2}},
		Audit:     Store{Enabled: true, Dir: ".mcp-conduit/audit"},
		Logs:      Store{Enabled: true, Dir: ".mcp-conduit/logs"},
		Providers: builtIn(),
	}
}

// Load reads the configuration: the file explicit where it is given, which must
// then exist, else FileName in dir where there is one, else [Default]. Unknown
// keys and wrong types are ERR_CONFIG_INVALID with the JSON pointer of the
// place.
func Load(explicit, dir string) (*Config, error) {
	c := Default()
	file := cmp.Or(explicit, filepath.Join(dir, FileName))
	file, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	raw, err := readFile(file)
	if errors.Is(err, fs.ErrNotExist) && explicit == "" {
		return c, nil
	}
	if err != nil {
		return nil, unreadable(file, err)
	}
	c.File = file
	tree, err := parse(file, raw)
	if err != nil {
		return nil, err
	}
	d := decoder{file: file}
	root := d.object(tree, "")
	inline := root.members["providers"]
	delete(root.members, "providers")
	d.fill(c, root)
	if d.err != nil {
		return nil, d.err
	}
	if c.ProvidersDir != "" {
		if err := c.loadDir(Abs(c.ProvidersDir, filepath.Dir(file))); err != nil {
			return nil, err
		}
	}
	if inline != nil {
		providers := d.object(inline, "/providers")
		for _, id := range slices.Sorted(maps.Keys(providers.members)) {
			c.Providers[id] = d.provider(id, providers.members[id], "/providers/"+escape(id), c.Providers[id])
		}
	}
	if d.err == nil {
		d.checkRunner(c)
	}
	return c, d.err
}

// Abs returns path, which counts from base where it is relative.
func Abs(path, base string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(base, path)
}

// loadDir adds a provider for each file <id>.json in dir.
func (c *Config) loadDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fault.New(fault.ConfigInvalid, "%s: /providersDir: %s cannot be read; name a directory of files <provider>.json, relative to the configuration", c.File, dir)
	}
	for _, e := range entries {
		id, isJSON := strings.CutSuffix(e.Name(), ".json")
		if !isJSON || e.IsDir() {
			continue
		}
		file := filepath.Join(dir, e.Name())
		raw, err := readFile(file)
		if err != nil {
			return unreadable(file, err)
		}
		tree, err := parse(file, raw)
		if err != nil {
			return err
		}
		d := decoder{file: file}
		c.Providers[id] = d.provider(id, tree, "", c.Providers[id])
		if d.err != nil {
			return d.err
		}
	}
	return nil
}

// maxFile bounds a configuration, in bytes.
const maxFile = 1 << 20

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(raw) > maxFile {
		return nil, fault.New(fault.ConfigInvalid, "%s is larger than %d bytes", name, maxFile)
	}
	return raw, err
}

func unreadable(file string, err error) error {
	var known *fault.Error
	if errors.As(err, &known) {
		return err
	}
	_, message := fault.Of(err)
	return fault.New(fault.ConfigInvalid, "the configuration %s cannot be read: %s", file, message)
}

// parse reads one JSON value; an error tells line and column.
func parse(file string, raw []byte) (any, error) {
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.UseNumber()
	var v any
	err := dec.Decode(&v)
	at := dec.InputOffset()
	if err == nil {
		if _, more := dec.Token(); more == io.EOF {
			return v, nil
		}
		err = errors.New("there is more after the JSON value")
	}
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		at = syntax.Offset
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		at = int64(len(raw))
	}
	before := string(raw[:min(int(at), len(raw))])
	line := strings.Count(before, "\n") + 1
	column := len(before) - strings.LastIndexByte(before, '\n')
	return nil, fault.New(fault.ConfigInvalid, "%s is not valid JSON, line %d, column %d: %v", file, line, column, err)
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A comparison is what a script of side-by-side measurements writes as JSON:
// tasks, their metrics, and for each server or command-line tool one sample a
// round.
type comparison struct {
	Servers []string `json:"servers"`
	Rounds  int      `json:"rounds"`
	Results tasks    `json:"results"`

	versions []row // of the servers
}

// tasks are in the order of the JSON object.
type tasks []task

type task struct {
	name    string
	What    string            `json:"what"`
	Metrics metrics           `json:"metrics"`
	Failed  map[string]string `json:"failed"`
}

type metrics []metric

type metric struct {
	name  string
	Unit  string `json:"unit"`
	Peers map[string]struct {
		Median  float64            `json:"median"`
		Samples map[string]float64 `json:"samples"` // by round
	} `json:"peers"`
}

func (t *tasks) UnmarshalJSON(b []byte) error {
	return inOrder(b, func(name string, d *json.Decoder) error {
		one := task{name: name}
		defer func() { *t = append(*t, one) }()
		return d.Decode(&one)
	})
}

func (m *metrics) UnmarshalJSON(b []byte) error {
	return inOrder(b, func(name string, d *json.Decoder) error {
		one := metric{name: name}
		defer func() { *m = append(*m, one) }()
		return d.Decode(&one)
	})
}

// inOrder calls each for the members of a JSON object as they stand.
func inOrder(b []byte, each func(name string, d *json.Decoder) error) error {
	d := json.NewDecoder(strings.NewReader(string(b)))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("an object was expected, not %v (%w)", t, err)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		if err := each(name.(string), d); err != nil {
			return err
		}
	}
	return nil
}

// Names in comparisons: this program, and command-line tools, which stand apart
// from servers.
const ours = "conduit"

func isTool(name string) bool { return strings.HasPrefix(name, "cli") }

// memoryMetric is the name of the metric that is memory.
const memoryMetric = "peak RSS"

// A ratio is ours to another's: the median over rounds, the lowest and the
// highest.
type ratio struct{ median, low, high float64 }

// against is the ratio to another's figures over the rounds that both have.
func (m metric) against(other string) (ratio, bool) {
	var all []float64
	for round, a := range m.Peers[ours].Samples {
		if b := m.Peers[other].Samples[round]; b > 0 {
			all = append(all, a/b)
		}
	}
	if len(all) == 0 {
		return ratio{}, false
	}
	slices.Sort(all)
	middle := (all[(len(all)-1)/2] + all[len(all)/2]) / 2
	return ratio{middle, all[0], all[len(all)-1]}, true
}

// best is who has the least median of those that want accepts, or "".
func (m metric) best(want func(name string) bool) string {
	best := ""
	for name, p := range m.Peers {
		if name != ours && want(name) && (best == "" || p.Median < m.Peers[best].Median || p.Median == m.Peers[best].Median && name < best) {
			best = name
		}
	}
	return best
}

// sideBySide runs script with binary as ours.
func sideBySide(ctx context.Context, script, binary string, rounds int) (*comparison, error) {
	dir, err := os.MkdirTemp("", "conduit-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "out.json")
	env := append(environment(bencherSettings()...), "CONDUIT_BIN="+binary)
	cmd := exec.CommandContext(ctx, "python3", script, "--rounds", strconv.Itoa(rounds), "--json", out)
	cmd.Env, cmd.Stderr = env, os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w", script, err)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		return nil, err
	}
	c, err := parseComparison(b)
	if err != nil {
		return nil, err
	}
	list := exec.CommandContext(ctx, "python3", script, "--list")
	list.Env = env
	commands, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("%s --list: %w", script, err)
	}
	c.versions = peerVersions(ctx, c.Servers, string(commands))
	return c, nil
}

// bencherSettings are those of this process that are meant for the script: where
// its peers are.
func bencherSettings() []string {
	var keep []string
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "CONDUIT_BENCH_") || name == "CONDUIT_SEED_CMD" {
			keep = append(keep, v)
		}
	}
	return keep
}

func parseComparison(b []byte) (*comparison, error) {
	c := &comparison{}
	if err := json.Unmarshal(b, c); err != nil {
		return nil, fmt.Errorf("side by side: %w", err)
	}
	if !slices.Contains(c.Servers, ours) {
		return nil, fmt.Errorf("side by side: %q was not measured, only %s", ours, strings.Join(c.Servers, ", "))
	}
	return c, nil
}

// peerVersions tells the versions of servers whose commands stand in lines
// "NAME COMMAND": what the package says that the program is part of, or the
// server itself when it is initialized.
func peerVersions(ctx context.Context, servers []string, commands string) []row {
	ctx, stop := context.WithTimeout(ctx, 30*time.Second) // some may not answer
	defer stop()
	var rows []row
	for line := range strings.Lines(commands) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] == ours || isTool(f[0]) || !slices.Contains(servers, f[0]) {
			continue
		}
		if v := packageVersion(f[1:]); v != "" {
			rows = append(rows, row{f[0], v})
		} else if s, err := start(exec.CommandContext(ctx, f[1], f[2:]...)); err == nil {
			s.stop()
			rows = append(rows, row{f[0], s.name})
		}
	}
	return rows
}

// packageVersion is the name and version in the package.json nearest above a
// file of a command, or "".
func packageVersion(argv []string) string {
	for _, arg := range argv {
		file, err := filepath.EvalSymlinks(arg)
		if err != nil || !filepath.IsAbs(file) {
			continue
		}
		for dir := filepath.Dir(file); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			var p struct{ Name, Version string }
			b, err := os.ReadFile(filepath.Join(dir, "package.json"))
			if err == nil && json.Unmarshal(b, &p) == nil && p.Name != "" && p.Version != "" {
				return p.Name + " " + p.Version
			}
		}
	}
	return ""
}

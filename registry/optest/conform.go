package optest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// secret is what a file outside the allowed directory holds in conformance
// runs; no answer may show it.
const secret = "what lies outside"

// patience is how long a call that was cancelled may take, on a machine that is
// busy with other things.
var patience = time.Minute

// Conform checks every op of set for what all ops promise, as far as its examples
// and its schema show it:
//
//   - each example decodes, runs over small files in the place of those it names,
//     and fails with no code that Desc.Errors lacks;
//   - with all its paths led to one file outside, each example that has paths is
//     denied, shows nothing of that file and changes nothing beside it;
//   - a call that is cancelled when the op begins returns;
//   - a ReadOnly op leaves names, types and contents in the allowed directory as
//     they were;
//   - one call with a value for each property that the published schema gives the
//     op decodes, also with those of other ops present as null, empty or their
//     default.
func Conform(t *testing.T, set *registry.Set) {
	t.Helper()
	for _, op := range set.AllOps() {
		t.Run(op.ID(), func(t *testing.T) {
			if len(op.Examples) == 0 {
				t.Error("there is no example")
			}
			for _, ex := range op.Examples {
				t.Run(ex.Title, func(t *testing.T) { conformExample(t, set, op, ex) })
			}
			conformSchema(t, set, op)
		})
	}
}

func conformExample(t testing.TB, set *registry.Set, op *registry.Op, ex registry.Example) {
	in, err := op.Decode(json.RawMessage(ex.Args))
	if err != nil {
		t.Fatalf("the example does not decode: %v", err)
	}
	b := mount(t, set, op, nil)
	var paths []string
	registry.Paths(in, func(p *registry.Path) {
		if p.String() != "" { // an optional one that the example leaves out
			paths = append(paths, p.String())
		}
	})
	for i, p := range paths {
		if filepath.IsLocal(p) && len(filepath.Ext(p)) > 1 {
			b.write(t, filepath.Join(b.Dir, p), []byte(fmt.Sprintf("file %d\n", i)))
		}
	}
	before := fingerprint(t, b.Dir)
	b.checkCodes(t, b.Text(t, ex.Args))
	if op.Effect == registry.ReadOnly && fingerprint(t, b.Dir) != before {
		t.Error("a read-only op changed the tree")
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = b.Call(&atWork{Context: ctx}, ex.Args)
	}()
	select {
	case <-done:
	case <-time.After(patience):
		t.Error("a cancelled call does not return")
	}

	if len(paths) == 0 {
		return
	}
	b.write(t, filepath.Join(b.Out, "f"), []byte(secret))
	outside, err := json.Marshal(filepath.Join(b.Out, "f"))
	if err != nil {
		t.Fatal(err)
	}
	args := ex.Args
	for _, p := range paths {
		quoted, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		args = strings.ReplaceAll(args, string(quoted), string(outside))
	}
	beyond := fingerprint(t, b.Out)
	got := b.Text(t, args)
	if !strings.Contains(got, "ACCESS_DENIED") || strings.Contains(got, `:"success"`) || strings.Contains(got, `"success":true`) || strings.Contains(got, secret) {
		t.Errorf("outside the allowed directories it answers %s", b.pretty(got))
	}
	if fingerprint(t, b.Out) != beyond {
		t.Error("it changed something outside the allowed directories")
	}
}

// atWork is the context of a call that is cancelled once it has its turn: who
// asks for Done first, which is the queue, waits for nothing.
type atWork struct {
	context.Context
	begun atomic.Bool
}

func (c *atWork) Done() <-chan struct{} {
	if c.begun.CompareAndSwap(false, true) {
		return nil
	}
	return c.Context.Done()
}

var errorCode = regexp.MustCompile(`"(?:error_code|code)":"(ERR_[A-Z_]+|[A-Z_]+)"`)

// checkCodes fails the test for a code in an answer that the op does not
// document.
func (b *Bench) checkCodes(t testing.TB, answer string) {
	t.Helper()
	for _, m := range errorCode.FindAllStringSubmatch(answer, -1) {
		if !slices.Contains(b.op.Errors, fault.Code(m[1])) {
			t.Errorf("%s is not in Desc.Errors: %s", m[1], b.pretty(answer))
		}
	}
}

// fingerprint is a hash of the names, types and contents below dir.
func fingerprint(t testing.TB, dir string) string {
	t.Helper()
	h := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fmt.Fprintln(h, path, d.Type())
		if d.Type().IsRegular() {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			h.Write(content)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// published is the part of a tool's schema that calls are made from.
type published struct {
	Type        string               `json:"type"`
	Description string               `json:"description"`
	Enum        []string             `json:"enum"`
	Minimum     *int64               `json:"minimum"`
	Properties  map[string]published `json:"properties"`
	Items       *published           `json:"items"`
}

// conformSchema makes calls of op from what its tool publishes.
func conformSchema(t testing.TB, set *registry.Set, op *registry.Op) {
	var schema published
	if err := json.Unmarshal(set.InputSchema(op.Tool), &schema); err != nil {
		t.Fatal(err)
	}
	for _, others := range []string{"absent", "null", "empty"} {
		call := schema.object(op, others)
		if tool, _ := set.Tool(op.Tool); tool.Discriminator != "" {
			call[tool.Discriminator] = op.Name
		}
		args, err := json.Marshal(call)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := op.Decode(args); err != nil {
			t.Errorf("with other properties %s, a call made from the published schema is refused: %v\n%s", others, err, args)
		}
	}
}

// object makes an object with the properties that op takes; the others are
// absent, null or empty.
func (p published) object(op *registry.Op, others string) map[string]any {
	o := map[string]any{}
	for name, prop := range p.Properties {
		switch {
		case prop.takenBy(op):
			o[name] = prop.value(op, others)
		case others == "null":
			o[name] = nil
		case others == "empty":
			if v := prop.idle(); v != nil {
				o[name] = v
			}
		}
	}
	return o
}

var takers = regexp.MustCompile(`\(([a-z_, ]+)\)`)

// takenBy reads the ops in front of a description: "(put, mkdir) …", or all but
// some: "(not archive) …".
func (p published) takenBy(op *registry.Op) bool {
	if !strings.HasPrefix(p.Description, "(") {
		return true
	}
	for _, m := range takers.FindAllStringSubmatch(p.Description, -1) {
		names, others := strings.CutPrefix(m[1], "not ")
		if slices.Contains(strings.Split(names, ", "), op.Name) != others {
			return true
		}
	}
	return false
}

func (p published) value(op *registry.Op, others string) any {
	switch {
	case len(p.Enum) > 0:
		return p.Enum[0]
	case p.Type == "string":
		return "a"
	case p.Type == "boolean":
		return true
	case p.Type == "integer" || p.Type == "number":
		if p.Minimum != nil {
			return max(*p.Minimum, 1)
		}
		return 1
	case p.Type == "array":
		return []any{p.Items.value(op, others)}
	case p.Type == "object":
		return p.object(op, others)
	}
	return "a"
}

// idle is an empty or default value, nil where there is none to give.
func (p published) idle() any {
	if _, after, ok := bytes.Cut([]byte(p.Description), []byte("Default ")); ok {
		after, _, _ = bytes.Cut(after, []byte(". (")) // what follows is of other operations
		var v any
		if json.Unmarshal(bytes.TrimSuffix(after, []byte(".")), &v) == nil {
			return v
		}
		return string(bytes.TrimSuffix(after, []byte(".")))
	}
	switch p.Type {
	case "string":
		return ""
	case "boolean":
		return false
	case "array":
		return []any{}
	}
	return nil
}

package registry

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/invopop/jsonschema"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// A Tool is an MCP tool: a name, and the parameter that selects its op.
type Tool struct {
	Name          string // ^[a-zA-Z0-9_-]{1,64}$, which every client and model API accepts
	Toolset       string // the family it belongs to; one that belongs to none is always served
	Discriminator string // "operation" or "action"; empty when the tool has one op
	Summary       string
	Echo          bool // error objects repeat the discriminator as action_performed
	Notices       bool // results may carry the first-use notice
	Structured    bool // results go into structuredContent whatever CONDUIT_STRUCTURED_CONTENT says
	Rooted        bool // its paths are relative to the project root and stay below it
	Errors        fault.Dialect
}

// A Set is a validated collection of ops. It does not change once made.
type Set struct {
	tools map[string]Tool
	ops   map[string]*Op // by ID
}

var pending struct {
	sync.Mutex
	toolsets []Toolset
	tools    []Tool
	ops      []linked
}

// A linked op is made when a set first wants it, so that those of toolsets that
// nobody serves cost a program's start nothing.
type linked struct {
	Desc
	op func() *Op
}

// Register adds an op to the set returned by Registered. Call it from init.
func Register[Cfg, In, Out any](d Desc, build func(Cfg, *Env) (Func[In, Out], error)) {
	pending.Lock()
	defer pending.Unlock()
	pending.ops = append(pending.ops, linked{d, sync.OnceValue(func() *Op { return New(d, build) })})
}

// RegisterTool declares a tool that ops can join. Call it from init.
func RegisterTool(t Tool) {
	pending.Lock()
	defer pending.Unlock()
	pending.tools = append(pending.tools, t)
}

// Registered returns the ops of every package linked into the program.
func Registered() (*Set, error) {
	return Linked(func(Tool, Desc) bool { return true })
}

// Linked returns those of Registered that keep accepts.
func Linked(keep func(Tool, Desc) bool) (*Set, error) {
	pending.Lock()
	defer pending.Unlock()
	tools := map[string]Tool{}
	for _, t := range pending.tools {
		tools[t.Name] = t
	}
	var ops []*Op
	for _, l := range pending.ops {
		if t, known := tools[l.Tool]; !known || keep(t, l.Desc) { // of one without a tool NewSet tells
			ops = append(ops, l.op())
		}
	}
	return NewSet(pending.tools, ops)
}

// validToolName reports whether model APIs take name: at most 64 letters, digits,
// underscores and hyphens.
func validToolName(name string) bool {
	strange := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	}
	return name != "" && len(name) <= 64 && !strings.ContainsFunc(name, strange)
}

// NewSet checks tools and ops against each other and returns them as a Set.
// Checking here, and not in init, keeps the order of imports irrelevant.
func NewSet(tools []Tool, ops []*Op) (*Set, error) {
	s := &Set{tools: map[string]Tool{}, ops: map[string]*Op{}}
	for _, t := range tools {
		if _, dup := s.tools[t.Name]; dup {
			return nil, fmt.Errorf("tool %s registered twice", t.Name)
		}
		s.tools[t.Name] = t
	}
	for _, op := range ops {
		t, ok := s.tools[op.Tool]
		switch {
		case !ok && op.Name == "":
			s.tools[op.Tool] = Tool{Name: op.Tool, Summary: op.Summary}
		case !ok:
			return nil, fmt.Errorf("op %s: no tool %q", op.ID(), op.Tool)
		case (op.Name == "") != (t.Discriminator == ""):
			return nil, fmt.Errorf("op %s: does not fit tool %q", op.ID(), op.Tool)
		}
		if op.Effect == 0 || op.Summary == "" {
			return nil, fmt.Errorf("op %s: Effect and Summary are required", op.ID())
		}
		if _, dup := s.ops[op.ID()]; dup {
			return nil, fmt.Errorf("op %s registered twice", op.ID())
		}
		s.ops[op.ID()] = op
	}
	for name := range s.tools {
		if !validToolName(name) {
			return nil, fmt.Errorf("tool %q: a name has at most 64 letters, digits, underscores and hyphens", name)
		}
	}
	return s.settle()
}

// settle drops tools without ops, checks that ops of one tool and settings of
// one name agree, and tells each op what its siblings take.
func (s *Set) settle() (*Set, error) {
	for name, t := range s.tools {
		ops := s.Ops(name)
		if len(ops) == 0 {
			delete(s.tools, name)
			continue
		}
		for _, op := range ops {
			bound := *op
			bound.word = t.Discriminator
			bound.foreign = foreign{}
			for _, other := range ops {
				if other == op {
					continue
				}
				if err := bound.foreign.learn("", op.Params, other.Params, other); err != nil {
					return nil, err
				}
				if other.Lean && !op.Lean {
					bound.foreign.add(viewName, &jsonschema.Schema{Type: "string", Default: "full"}, other.Name)
				}
			}
			s.ops[op.ID()] = &bound
		}
	}
	seen := map[string]Setting{}
	for _, id := range slices.Sorted(maps.Keys(s.ops)) {
		for _, x := range s.ops[id].Settings {
			if y, ok := seen[x.Env]; ok && !x.agrees(y) {
				return nil, fmt.Errorf("op %s: setting %s is declared differently elsewhere", id, x.Env)
			}
			seen[x.Env] = x
		}
	}
	return s, nil
}

// learn notes the parameters of theirs, the schema of op, that mine lacks. Those
// that both have must be of one type.
func (f foreign) learn(at string, mine, theirs *jsonschema.Schema, op *Op) error {
	if theirs.Properties == nil {
		return nil
	}
	for p := theirs.Properties.Oldest(); p != nil; p = p.Next() {
		shape := join(at, p.Key)
		var own *jsonschema.Schema
		if mine != nil && mine.Properties != nil {
			own, _ = mine.Properties.Get(p.Key)
		}
		if own == nil {
			f.add(shape, p.Value, op.Name)
			continue
		}
		if own.Type != p.Value.Type {
			return fmt.Errorf("op %s: parameter %q is %s here and %s elsewhere in the tool", op.ID(), p.Key, p.Value.Type, own.Type)
		}
		a, b := own, p.Value
		for a.Items != nil && b.Items != nil {
			a, b = a.Items, b.Items
		}
		if err := f.learn(shape, a, b, op); err != nil {
			return err
		}
	}
	return nil
}

// add notes that op name takes the parameter at shape.
func (f foreign) add(shape string, s *jsonschema.Schema, name string) {
	if f[shape] == nil {
		f[shape] = &foreignParam{schema: s}
	}
	f[shape].ops = append(f[shape].ops, name)
}

// Tools returns the tools sorted by name.
func (s *Set) Tools() []Tool {
	return slices.SortedFunc(maps.Values(s.tools), func(a, b Tool) int { return cmp.Compare(a.Name, b.Name) })
}

// Tool returns the tool called name.
func (s *Set) Tool(name string) (Tool, bool) {
	t, ok := s.tools[name]
	return t, ok
}

// Ops returns the ops of a tool sorted by name.
func (s *Set) Ops(tool string) []*Op {
	var list []*Op
	for _, op := range s.ops {
		if op.Tool == tool {
			list = append(list, op)
		}
	}
	slices.SortFunc(list, func(a, b *Op) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// AllOps returns every op sorted by ID.
func (s *Set) AllOps() []*Op {
	return slices.SortedFunc(maps.Values(s.ops), func(a, b *Op) int { return cmp.Compare(a.ID(), b.ID()) })
}

// Settings returns the settings of every op and of the server itself (extra),
// sorted by variable, each once.
func (s *Set) Settings(extra ...Setting) []Setting {
	seen := map[string]Setting{}
	for _, x := range extra {
		seen[x.Env] = x
	}
	for _, op := range s.ops {
		for _, x := range op.Settings {
			seen[x.Env] = x
		}
	}
	return slices.SortedFunc(maps.Values(seen), func(a, b Setting) int { return strings.Compare(a.Env, b.Env) })
}

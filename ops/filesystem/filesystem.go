// Package filesystem is the filesystem toolset: the tools of the Filesystem MCP
// Server under their names, with its parameters, defaults and results, over the
// engines that the core tools have.
//
// Its rule of paths is stricter than that of the core: they are relative to the
// project root and stay below it. A failed item of a batch says why in its error
// field and, beyond the original, has an error_code; items whose old content was
// kept have a change_id.
package filesystem

import (
	"bytes"
	"encoding/json"
	"path"
	"path/filepath"
	"reflect"

	"github.com/invopop/jsonschema"

	"github.com/conduit-mcp/conduit-mcp/ops/change"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// Toolset is what CONDUIT_TOOLSETS calls the tools of this package.
const Toolset = "filesystem"

func init() {
	registry.RegisterToolset(registry.Toolset{
		Name:    Toolset,
		Summary: "Files of the project in batches, with the tool names and results of the Filesystem MCP Server.",
		Own:     change.Own,
	})
}

// register adds a tool that has one op.
func register[Cfg, In, Out any](d registry.Desc, build func(Cfg, *registry.Env) (registry.Func[In, Out], error)) {
	registry.RegisterTool(registry.Tool{Name: d.Tool, Toolset: Toolset, Summary: d.Summary, Rooted: true})
	registry.Register(d, build)
}

// codes are those that any tool with paths can end in, and more.
func codes(more ...fault.Code) []fault.Code {
	return append([]fault.Code{fault.InvalidParameter, fault.FSAccessDenied, fault.FSPathResolution, fault.FSBadPathInput}, more...)
}

// A trouble is why an item failed. Results embed it.
type trouble struct {
	Error string     `json:"error,omitempty"`
	Code  fault.Code `json:"error_code,omitempty"`

	cause error
}

// Settle fills t from err; nil means success.
func (t *trouble) Settle(err error) {
	if t.cause = err; err != nil {
		t.Code, t.Error = fault.Of(err)
	}
}

// Failed reports whether the item failed.
func (t trouble) Failed() bool { return t.cause != nil }

// Cause returns the error that the item was settled with, for the log.
func (t trouble) Cause() error { return t.cause }

// An outcome is a trouble whose results say success as well.
type outcome struct {
	Success bool `json:"success"`
	trouble
}

// Settle fills o from err; nil means success.
func (o *outcome) Settle(err error) {
	o.Success = err == nil
	o.trouble.Settle(err)
}

// located is err, which came of using p, with all that helps to find a path that
// does not exist: as given, as resolved, and the project root.
func located(p registry.Path, err error) error {
	at, perr := p.Place()
	if code, _ := fault.Of(err); code != fault.FSNotFound || perr != nil {
		return err
	}
	return fault.Hide(fault.FSNotFound, err, "no such file or directory: %s (resolved to %s, project root %s)", p, at.Abs, at.Root.Name())
}

// below is the path of rel in the directory dir, as other calls would give it.
func below(dir registry.Path, rel string) string {
	return path.Join(filepath.ToSlash(filepath.Clean(dir.String())), rel)
}

// A wrapped is the object round the results of some of the tools.
type wrapped[R any] struct {
	Results []R `json:"results"`
}

// encoded is v as JSON that is not made fit for HTML.
func encoded(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// schemaOf is the schema of T, for the documentation of types that write
// themselves as T.
func schemaOf[T any]() *jsonschema.Schema {
	s := (&jsonschema.Reflector{Anonymous: true, DoNotReference: true}).ReflectFromType(reflect.TypeFor[T]())
	s.Version = ""
	return s
}

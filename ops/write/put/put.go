// Package put adds write.put: files written whole.
package put

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"io"
	"strings"
	"sync/atomic"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/etag"
	"github.com/conduit-mcp/conduit-mcp/internal/journal"
	"github.com/conduit-mcp/conduit-mcp/ops/change"
	"github.com/conduit-mcp/conduit-mcp/ops/write"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func init() { registry.Register(desc, build) }

var desc = registry.Desc{
	Tool:    write.Tool,
	Name:    "put",
	Summary: "Write whole files, making missing parents.",
	Effect:  registry.Destructive,
	Errors: []fault.Code{
		fault.InvalidParameter, fault.FSAccessDenied, fault.FSPathResolution, fault.FSBadPathInput, fault.FSIsDirectory,
		fault.FSAlreadyExists, fault.FSWriteFailed, fault.FSOperation, fault.PreconditionFailed,
	},
	Examples: []registry.Example{
		{Title: "Write a file", Args: `{"entries": [{"path": "notes/today.md", "content": "# Today\n"}]}`},
		{Title: "Add a line, and write bytes to a file that must be new", Args: `{"entries": [{"path": "log.txt", "content": "started\n", "write_mode": "append"}, {"path": "dot.bin", "content": "AAH/", "input_encoding": "base64", "write_mode": "create"}]}`},
	},
}

type settings struct{ journal.Settings }

type params struct {
	Entries []entry `json:"entries" jsonschema:"minItems=1" jsonschema_description:"One object each."`
}

type entry struct {
	Path     registry.Path `json:"path" jsonschema_description:"File or directory."`
	Content  string        `json:"content" log:"content" jsonschema_description:"Text, or bytes in base64."`
	Encoding string        `json:"input_encoding,omitempty" jsonschema:"enum=text,enum=base64,default=text" jsonschema_description:"What content is."`
	Mode     string        `json:"write_mode,omitempty" jsonschema:"enum=overwrite,enum=append,enum=create,default=overwrite" jsonschema_description:"create: must not exist."`
	IfMatch  string        `json:"if_match,omitempty" jsonschema_description:"Etag the file must still have."`
}

type result struct {
	registry.Outcome
	Action       string `json:"action_performed"`
	Path         string `json:"path"`
	BytesWritten *int   `json:"bytes_written,omitempty"`
	Message      string `json:"message,omitempty"`
	Checksum     string `json:"checksum,omitempty"` // SHA-256 of the file; not after append
	ETag         string `json:"etag,omitempty"`
	journal.Mark
}

// Trim keeps of a result that does not fit into the response what identifies it.
func (r *result) Trim(err error) {
	*r = result{Action: r.Action, Path: r.Path, Mark: r.Mark}
	r.Settle(err)
}

var modes = map[string]atomicfile.Mode{"overwrite": atomicfile.Overwrite, "append": atomicfile.Append, "create": atomicfile.Create}

func build(cfg settings, env *registry.Env) (registry.Func[params, []result], error) {
	files, err := change.Shared(cfg.Settings, env)
	return func(ctx context.Context, in params) ([]result, error) {
		results := make([]result, len(in.Entries))
		jobs := make([]atomicfile.Job, len(in.Entries))
		parts := make([]*journal.Part, len(in.Entries))
		c := files.Journal.Begin(desc.ID())
		defer c.Done()
		var valid []*atomicfile.Job
		for i, e := range in.Entries {
			parts[i] = c.Part()
			jobs[i].Keep = parts[i]
			if jobs[i].Err = prepare(&jobs[i], e, i); jobs[i].Err == nil {
				valid = append(valid, &jobs[i])
			}
		}
		var done atomic.Int64
		if err := files.Writer.Run(ctx, valid, func() { registry.Progress(ctx, done.Add(1), int64(len(valid)), "") }); err != nil {
			return nil, err
		}
		for i, e := range in.Entries {
			results[i] = report(e, &jobs[i])
			results[i].Mark = parts[i].Mark()
		}
		return results, nil
	}, err
}

// prepare turns the n-th entry into a job.
func prepare(j *atomicfile.Job, e entry, n int) (err error) {
	if j.Place, err = e.Path.Place(); err != nil {
		return err
	}
	if e.Path.NamesDirectory() {
		return fault.New(fault.FSIsDirectory, "%s ends in a slash and so names a directory; leave the slash out to write a file", e.Path)
	}
	j.Content, j.Mode, j.IfMatch = e.Content, modes[e.Mode], e.IfMatch
	if e.Encoding == "base64" {
		j.Content, err = decode(e.Content)
		if err != nil {
			return fault.Hide(fault.InvalidParameter, err, "entries[%d].content is not valid base64; use the standard alphabet with = padding (line breaks are fine), or input_encoding text", n)
		}
	}
	return nil
}

// decode reads standard base64, with or without line breaks.
func decode(s string) (string, error) {
	var b strings.Builder
	b.Grow(base64.StdEncoding.DecodedLen(len(s)))
	_, err := io.Copy(&b, base64.NewDecoder(base64.StdEncoding.Strict(), strings.NewReader(s)))
	return b.String(), err
}

func report(e entry, j *atomicfile.Job) result {
	r := result{Action: desc.Name, Path: e.Path.String()}
	if r.Settle(j.Err); j.Err != nil {
		return r
	}
	n := len(j.Content)
	r.BytesWritten = &n
	if j.Sum != nil {
		r.Checksum, r.ETag = hex.EncodeToString(j.Sum), etag.Of(j.Sum)
	}
	switch {
	case j.Created:
		r.Message = "File created."
	case j.Mode == atomicfile.Append:
		r.Message = "Content appended."
	default:
		r.Message = "File overwritten."
	}
	r.Message += j.Note()
	return r
}

package filesystem

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/conduit-mcp/conduit-mcp/internal/mediatype"
	"github.com/conduit-mcp/conduit-mcp/internal/textfile"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func init() { register(readDesc, buildRead) }

var readDesc = registry.Desc{
	Tool:    "read_content",
	Summary: "Read text files, whole or a range of lines.",
	Effect:  registry.ReadOnly,
	Errors:  codes(fault.FSNotFound, fault.FSIsDirectory, fault.FSOperation, fault.FSReadFailed, fault.LimitExceeded),
	Examples: []registry.Example{
		{Title: "Two files", Args: `{"paths": ["README.md", "go.mod"]}`},
		{Title: "Ten lines, numbered", Args: `{"paths": ["main.go"], "start_line": 1, "end_line": 10}`},
	},
}

type readSettings struct {
	MaxRead int64 `env:"CONDUIT_MAX_FILE_READ_BYTES" default:"52428800" min:"1" doc:"Most bytes read of one file."`
}

type readParams struct {
	Paths  []registry.Path `json:"paths" jsonschema:"minItems=1" jsonschema_description:"Files."`
	Start  int64           `json:"start_line,omitempty" jsonschema:"minimum=1" jsonschema_description:"First line, from 1."`
	End    int64           `json:"end_line,omitempty" jsonschema:"minimum=1" jsonschema_description:"Last line, included."`
	Format string          `json:"format,omitempty" jsonschema:"enum=lines,enum=raw,default=lines" jsonschema_description:"Of a range: objects {lineNumber, content}, or plain text. A whole file is plain text."`
}

type readResult struct {
	Path    string   `json:"path"`
	Content *content `json:"content,omitempty"`
	trouble
	Charset string `json:"charset,omitempty"`        // where a byte order mark tells it
	Lossy   bool   `json:"encoding_lossy,omitempty"` // U+FFFD stands for what is no character
}

// Trim makes r a failed result that only names its path.
func (r *readResult) Trim(err error) {
	*r = readResult{Path: r.Path}
	r.Settle(err)
}

// A content is a text, or its lines.
type content struct {
	Text  *registry.Text
	Lines []line
}

type line struct {
	Number  int64  `json:"lineNumber"`
	Content string `json:"content"`
}

// MarshalJSON writes a string or an array.
func (c content) MarshalJSON() ([]byte, error) {
	if c.Text != nil {
		return encoded(c.Text)
	}
	return encoded(c.Lines)
}

// JSONSchema is that of a text, which lines are as well.
func (content) JSONSchema() *jsonschema.Schema { return schemaOf[string]() }

// inMemory is the length up to which text is held in memory; longer text streams.
const inMemory = 256 << 10

// atOnce is how many files of a call are read at the same time.
const atOnce = 8

func buildRead(cfg readSettings, _ *registry.Env) (registry.Func[readParams, []readResult], error) {
	return func(ctx context.Context, in readParams) ([]readResult, error) {
		if in.Start > in.End && in.End > 0 {
			return nil, fault.New(fault.InvalidParameter, "read_content: start_line %d lies after end_line %d", in.Start, in.End)
		}
		list, err := registry.EachParallel(ctx, atOnce, in.Paths, func(ctx context.Context, p registry.Path) (readResult, error) {
			r, err := in.file(ctx, p, cfg.MaxRead)
			r.Path = p.String()
			return r, located(p, err)
		})
		if err != nil {
			registry.Texts(list, func(t *registry.Text) { t.Body().Close() })
			return nil, err
		}
		return list, nil
	}, nil
}

// file reads one file, at most so many bytes of it.
func (in readParams) file(ctx context.Context, p registry.Path, most int64) (r readResult, err error) {
	at, err := p.Place()
	if err != nil {
		return r, err
	}
	f, fi, err := at.OpenFileOnly()
	if err != nil {
		return r, err
	}
	held := false
	defer func() {
		if !held {
			f.Close()
		}
		if errors.As(err, new(*fs.PathError)) {
			err = fault.Hide(fault.FSReadFailed, err, "reading %s failed", p)
		}
	}()
	head := make([]byte, min(mediatype.HeadSize, fi.Size()))
	n, err := f.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return r, err
	}
	if mime := mediatype.Detect(head[:n], at.Abs); !mediatype.IsText(mime) {
		return r, fault.New(fault.InvalidParameter, "%s is %s, not text; this tool reads text files", p, mime)
	}
	t, err := textfile.New(f, fi.Size(), p.String())
	if err != nil {
		return r, err
	}
	ranged := in.Start > 0 || in.End > 0
	part, err := t.Bytes(0, -1)
	if ranged {
		part, err = t.Lines(ctx, in.Start, in.End)
	}
	if err != nil {
		return r, err
	}
	if part.Len() > most {
		return r, fault.New(fault.LimitExceeded, "%d bytes of %s are asked for, more than CONDUIT_MAX_FILE_READ_BYTES (%d); read it in parts with start_line and end_line", part.Len(), p, most)
	}
	r.Charset = t.Charset()
	lines := ranged && in.Format == "lines"
	if part.Len() > inMemory && !lines {
		b, err := t.Settle(ctx, part, 0)
		if err != nil {
			return readResult{}, err
		}
		held, r.Lossy = true, b.Lossy()
		r.Content = &content{Text: registry.TextFrom(b)}
		return r, nil
	}
	text, lossy, err := t.String(ctx, part, 0)
	if err != nil {
		return readResult{}, err
	}
	r.Lossy = lossy
	if r.Content = (&content{Text: registry.TextOf(text)}); lines {
		r.Content = &content{Lines: numbered(text, max(in.Start, 1))}
	}
	return r, nil
}

// numbered divides text into lines, the first of which has a number.
func numbered(text string, first int64) []line {
	list := []line{}
	for l := range strings.Lines(text) {
		l = strings.TrimSuffix(strings.TrimSuffix(l, "\n"), "\r")
		list = append(list, line{first + int64(len(list)), l})
	}
	return list
}

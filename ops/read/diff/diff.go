// Package diff adds read.diff: what differs between two text files.
package diff

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/conduit-mcp/conduit-mcp/internal/source"
	"github.com/conduit-mcp/conduit-mcp/internal/textdiff"
	"github.com/conduit-mcp/conduit-mcp/ops/read"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func init() { registry.Register(desc, build) }

var desc = registry.Desc{
	Tool:    read.Tool,
	Name:    "diff",
	Summary: "Unified diff of two text files.",
	Effect:  registry.ReadOnly,
	Errors: []fault.Code{fault.InvalidParameter, fault.FSNotFound, fault.FSAccessDenied, fault.FSIsDirectory,
		fault.FSPathResolution, fault.FSBadPathInput, fault.FSOperation, fault.FSReadFailed, fault.DiffFailed,
		fault.LimitExceeded, fault.Unarchive, fault.ArchiveDetect},
	Examples: []registry.Example{
		{Title: "Two versions of a file", Args: `{"sources": ["old.txt", "new.txt"]}`},
		{Title: "Changed lines only, indentation ignored", Args: `{"sources": ["old.go", "new.go"], "ignore_whitespace": true, "context_lines": 0}`},
	},
}

type settings struct {
	MaxRead int64 `env:"CONDUIT_MAX_FILE_READ_BYTES" default:"52428800" min:"1" doc:"Most bytes read of one file."`
}

type params struct {
	Sources          []registry.Source `json:"sources" jsonschema:"minItems=1" jsonschema_description:"Old and new file."`
	Format           string            `json:"diff_format,omitempty" jsonschema:"enum=unified,default=unified"`
	IgnoreWhitespace bool              `json:"ignore_whitespace,omitempty" jsonschema_description:"The diff may then not apply."`
	Context          int               `json:"context_lines,omitempty" jsonschema:"minimum=0,maximum=20,default=3" jsonschema_description:"Up to 20."`
}

type result struct {
	Compared []string       `json:"sources_compared"`
	Format   string         `json:"diff_format_used"`
	Content  *registry.Text `json:"diff_content"`
	registry.Outcome
	Lossy bool `json:"encoding_lossy,omitempty"`
}

// Lean writes the bare diff.
func (r result) Lean(w io.Writer) error {
	_, err := r.Content.WriteTo(w)
	return err
}

func build(cfg settings, _ *registry.Env) (registry.Func[params, result], error) {
	return func(ctx context.Context, in params) (result, error) {
		r, err := compare(ctx, in, cfg.MaxRead)
		if err != nil {
			return result{}, err
		}
		r.Settle(nil)
		return r, nil
	}, nil
}

// check refuses sources that are not two local files.
func (p params) check() error {
	if len(p.Sources) != 2 {
		return fault.New(fault.InvalidParameter, "diff takes two local files in sources, the old and the new one; %d given", len(p.Sources))
	}
	for i, s := range p.Sources {
		if s.Type() == "url" {
			return fault.New(fault.InvalidParameter, "diff takes two local files; sources[%d] is a URL: name a file by its path alone, and save what a URL holds to a file first", i)
		}
	}
	return nil
}

func compare(ctx context.Context, in params, limit int64) (result, error) {
	if err := in.check(); err != nil {
		return result{}, err
	}
	var paths [2]string
	var texts [2][]byte
	r := result{Format: in.Format}
	inArchive := false
	for i, s := range in.Sources {
		f, err := source.Open(ctx, s)
		if err != nil {
			return result{}, err
		}
		paths[i], inArchive = f.Path, inArchive || f.Disk == nil
		texts[i], err = load(f, s.String(), limit)
		f.Close()
		if err != nil {
			return result{}, err
		}
		r.Compared = append(r.Compared, shown(s, f.Path))
	}
	if !bytes.Equal(texts[0], texts[1]) {
		for i, text := range texts {
			if err := textual(text, in.Sources[i].String()); err != nil {
				return result{}, err
			}
		}
	}
	name := nameBelow(paths[0], paths[1])
	if inArchive { // what has the other path is not a file that the diff could be applied to
		name = filepath.Base(paths[0])
	}
	diff, err := textdiff.Unified(ctx, texts[0], texts[1], "a/"+name, "b/"+name,
		textdiff.Options{Context: in.Context, IgnoreWhitespace: in.IgnoreWhitespace})
	if err != nil {
		return result{}, err
	}
	if r.Lossy = !utf8.ValidString(diff); r.Lossy {
		diff = strings.Map(func(c rune) rune { return c }, diff) // each byte that is no character becomes U+FFFD
	}
	r.Content = registry.TextOf(diff)
	return r, nil
}

// load reads a file of at most limit bytes.
func load(f *source.File, name string, limit int64) ([]byte, error) {
	var text bytes.Buffer
	text.Grow(int(min(max(f.Size, 0), limit, 1<<30)) + bytes.MinRead)
	switch n, err := text.ReadFrom(io.LimitReader(f, limit+1)); {
	case errors.As(err, new(*fs.PathError)):
		return nil, fault.Hide(fault.FSReadFailed, err, "reading %s failed", name)
	case err != nil:
		return nil, err
	case n > limit:
		return nil, fault.New(fault.LimitExceeded, "%s is larger than CONDUIT_MAX_FILE_READ_BYTES (%d), so it is not compared", name, limit)
	}
	return text.Bytes(), nil
}

// sniffed is how much of a file is searched for NUL.
const sniffed = 8000

// textual refuses what is no text to compare by lines.
func textual(text []byte, name string) error {
	switch {
	case bytes.HasPrefix(text, []byte("\xff\xfe")), bytes.HasPrefix(text, []byte("\xfe\xff")):
		return fault.New(fault.DiffFailed, "%s is UTF-16; diff compares UTF-8 text, so convert the file first", name)
	case bytes.IndexByte(text[:min(sniffed, len(text))], 0) >= 0:
		return fault.New(fault.DiffFailed, "%s is binary and differs from the other file; diff compares text. Operation content with format \"checksum\" identifies binary files", name)
	}
	return nil
}

// shown is the path of a file as results tell it: every link followed but that
// which the name itself may be. path has them all followed.
func shown(s registry.Source, path string) string {
	if at, err := s.Place(); err == nil {
		if entry, err := at.Entry(); err == nil { // not where the link stands outside the allowed directories
			return entry.Abs
		}
	}
	return path
}

// nameBelow is path a, relative to the deepest directory that holds both files.
func nameBelow(a, b string) string {
	const above = ".." + string(filepath.Separator)
	for dir := filepath.Dir(a); ; dir = filepath.Dir(dir) {
		toB, err := filepath.Rel(dir, b)
		if err != nil { // on another drive
			return filepath.Base(a)
		}
		if !strings.HasPrefix(toB, above) {
			return strings.TrimPrefix(filepath.ToSlash(a[len(dir):]), "/")
		}
	}
}

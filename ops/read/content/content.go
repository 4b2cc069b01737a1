// Package content adds read.content: what files and URLs hold, as text, base64,
// Markdown, media or a checksum.
package content

import (
	"context"
	"fmt"
	"io"

	"github.com/conduit-mcp/conduit-mcp/internal/digest"
	"github.com/conduit-mcp/conduit-mcp/internal/fetch"
	"github.com/conduit-mcp/conduit-mcp/ops/read"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func init() { registry.Register(desc, build) }

var desc = registry.Desc{
	Tool:      read.Tool,
	Name:      "content",
	Summary:   "As text, base64, Markdown (main content of a web page), media (image or audio block) or checksum.",
	Effect:    registry.ReadOnly,
	OpenWorld: true,
	Errors: []fault.Code{fault.InvalidParameter, fault.ChecksumAlgorithm, fault.FSNotFound, fault.FSAccessDenied,
		fault.FSIsDirectory, fault.FSPathResolution, fault.FSBadPathInput, fault.FSOperation, fault.FSReadFailed,
		fault.ChecksumFailed, fault.LimitExceeded, fault.HTTPInvalidURL, fault.HTTPRequestFailed, fault.HTTPTimeout,
		fault.HTTPStatus, fault.HTTPRange, fault.MarkdownExtraction, fault.MarkdownConversion, fault.UnsupportedImage,
		fault.ImageProcessing, fault.Unarchive, fault.ArchiveDetect},
	Examples: []registry.Example{
		{Title: "Two files", Args: `{"sources": ["README.md", "logo.png"]}`},
		{Title: "The last 20 lines, numbered", Args: `{"sources": ["server.log"], "start_line": -20, "line_numbers": true}`},
		{Title: "Checksum", Args: `{"sources": ["data.bin"], "format": "checksum", "checksum_algorithm": "sha512"}`},
	},
}

type settings struct {
	MaxRead     int64  `env:"CONDUIT_MAX_FILE_READ_BYTES" default:"52428800" min:"1" doc:"Most bytes read of one file."`
	MaxDownload int64  `env:"CONDUIT_MAX_URL_DOWNLOAD_BYTES" default:"20971520" min:"1" doc:"Most bytes read from one URL, decoded."`
	Threshold   int64  `env:"CONDUIT_IMAGE_COMPRESSION_THRESHOLD_BYTES" default:"1048576" min:"0" doc:"Images larger than this, in bytes, are compressed for base64."`
	Quality     int    `env:"CONDUIT_IMAGE_COMPRESSION_QUALITY" default:"75" min:"1" max:"100" doc:"Quality of compressed JPEG and WebP images."`
	Algorithm   string `env:"CONDUIT_DEFAULT_CHECKSUM_ALGORITHM" default:"sha256" oneof:"md5 sha1 sha256 sha512" doc:"Checksum algorithm of calls that name none."`
}

type params struct {
	Sources     []registry.Source `json:"sources" jsonschema:"minItems=1" jsonschema_description:"Paths, archive.zip!/inner/path, URLs."`
	Format      string            `json:"format,omitempty" jsonschema:"enum=text,enum=base64,enum=markdown,enum=media,enum=checksum" jsonschema_description:"Default: text, or base64 if binary."`
	Algorithm   string            `json:"checksum_algorithm,omitempty" jsonschema_description:"md5, sha1, sha256 or sha512."`
	Offset      int64             `json:"offset,omitempty" jsonschema:"minimum=0" jsonschema_description:"First byte."`
	Length      int64             `json:"length,omitempty" jsonschema:"minimum=-1,default=-1" jsonschema_description:"Bytes; -1: all."`
	StartLine   int64             `json:"start_line,omitempty" jsonschema_description:"From 1; -1 is the last."`
	EndLine     int64             `json:"end_line,omitempty" jsonschema_description:"Last line, included."`
	LineNumbers bool              `json:"line_numbers,omitempty" jsonschema_description:"Number the lines."`
	MaxChars    int64             `json:"max_chars,omitempty" jsonschema:"minimum=0" jsonschema_description:"Cut text to so many characters."`
	MaxSide     int64             `json:"max_side,omitempty" jsonschema:"minimum=1,default=1568" jsonschema_description:"Pixels a side of media images."`
	MaxBytes    int64             `json:"max_bytes,omitempty" jsonschema:"minimum=1,default=1048576" jsonschema_description:"Bytes of media."`
	ETag        bool              `json:"etag,omitempty" jsonschema_description:"Return an etag anyway."`
}

// check refuses parameters that contradict each other.
func (p params) check() error {
	lines := p.StartLine != 0 || p.EndLine != 0
	switch {
	case lines && (p.Offset != 0 || p.Length >= 0):
		return fault.New(fault.InvalidParameter, "start_line and end_line cannot be combined with offset and length; select either lines or bytes")
	case p.StartLine != 0 && p.EndLine != 0 && p.StartLine > p.EndLine && (p.StartLine > 0) == (p.EndLine > 0):
		return fault.New(fault.InvalidParameter, "start_line %d lies after end_line %d", p.StartLine, p.EndLine)
	case p.textual() && p.Format != "" && p.Format != "text" && p.Format != "markdown":
		return fault.New(fault.InvalidParameter, `start_line, end_line, line_numbers and max_chars apply to text; leave them out with format %q`, p.Format)
	case p.Format == "media" && (p.Offset != 0 || p.Length >= 0):
		return fault.New(fault.InvalidParameter, "offset and length do not apply to media, which are whole; leave them out, or use format base64")
	}
	return nil
}

// textual reports whether a parameter asks for what only text has.
func (p params) textual() bool {
	return p.StartLine != 0 || p.EndLine != 0 || p.LineNumbers || p.MaxChars != 0
}

type result struct {
	Source     string         `json:"source"`
	SourceType string         `json:"source_type"`
	Format     string         `json:"output_format_used,omitempty"`
	Content    *registry.Text `json:"content,omitempty"`
	registry.Outcome
	HTTPStatus      int               `json:"http_status_code,omitempty"`
	Range           fetch.RangeStatus `json:"range_request_status,omitempty"`
	FinalURL        string            `json:"final_url,omitempty"`
	MIMEType        string            `json:"mime_type,omitempty"`
	Size            *int64            `json:"size_bytes,omitempty"`
	OriginalSize    int64             `json:"original_size_bytes,omitempty"`
	Compressed      *bool             `json:"compression_applied,omitempty"`
	CompressionNote string            `json:"compression_error_note,omitempty"`
	MarkdownStatus  string            `json:"markdown_conversion_status,omitempty"`
	MarkdownSkipped string            `json:"markdown_conversion_skipped_reason,omitempty"`
	Title           string            `json:"title,omitempty"`
	Byline          string            `json:"byline,omitempty"`
	Excerpt         string            `json:"excerpt,omitempty"`
	SiteName        string            `json:"site_name,omitempty"`
	Published       string            `json:"published_time,omitempty"`
	MediaType       string            `json:"media_type,omitempty"`
	Width           int               `json:"width,omitempty"`
	Height          int               `json:"height,omitempty"`
	OriginalWidth   int               `json:"original_width,omitempty"`
	OriginalHeight  int               `json:"original_height,omitempty"`
	Note            string            `json:"note,omitempty"`
	Checksum        string            `json:"checksum,omitempty"`
	Algorithm       digest.Algorithm  `json:"checksum_algorithm_used,omitempty"`
	Charset         string            `json:"charset,omitempty"`
	Lossy           bool              `json:"encoding_lossy,omitempty"`
	Truncated       bool              `json:"truncated,omitempty"`
	NextOffset      int64             `json:"next_offset,omitempty"`
	TotalBytes      int64             `json:"total_bytes,omitempty"`
	ETag            *registry.Text    `json:"etag,omitempty"` // after the content, with which it may be written

	block *registry.Block
}

// Blocks is the media that r carries.
func (r *result) Blocks() []registry.Block {
	if r.block == nil {
		return nil
	}
	return []registry.Block{*r.block}
}

// Trim makes r a failed result that only names its source.
func (r *result) Trim(err error) {
	*r = result{Source: r.Source, SourceType: r.SourceType}
	r.Settle(err)
}

// body is where the content is still to come from, or nil.
func (r *result) body() registry.Body {
	if r.Content == nil {
		return nil
	}
	return r.Content.Body()
}

// hold sets a content that is at hand.
func (r *result) hold(text string) {
	r.Content = registry.TextOf(text)
	r.Size = new(int64(len(text)))
}

// stream sets a content that is written late.
func (r *result) stream(b registry.Body) {
	r.Content = registry.TextFrom(b)
	r.Size = new(b.Size())
}

type results []result

// Lean writes the bare content, of several sources each after a line that names
// it. What follows a truncated content says how to go on.
func (list results) Lean(w io.Writer) error {
	for i, r := range list {
		if len(list) > 1 {
			before := ""
			if i > 0 {
				before = "\n"
			}
			if _, err := fmt.Fprintf(w, "%s==> %s <==\n", before, r.Source); err != nil {
				return err
			}
		}
		if err := r.lean(w); err != nil {
			return err
		}
	}
	return nil
}

func (r result) lean(w io.Writer) error {
	var err error
	switch {
	case r.Failed():
		_, err = fmt.Fprintf(w, "%s: %s", r.ErrorCode, r.ErrorMessage)
	case r.block != nil:
		size := ""
		if r.Width > 0 {
			size = fmt.Sprintf(" %dx%d", r.Width, r.Height)
		}
		_, err = fmt.Fprintf(w, "[%s%s, %d bytes]", r.MediaType, size, *r.Size)
	case r.Content == nil:
		_, err = io.WriteString(w, r.Checksum)
	default:
		_, err = r.Content.WriteTo(w)
	}
	if err == nil && r.Truncated {
		_, err = fmt.Fprintf(w, "[truncated: go on with offset %d of %d]", r.NextOffset, r.TotalBytes)
	}
	return err
}

func build(cfg settings, env *registry.Env) (registry.Func[params, results], error) {
	fallback, err := digest.Parse(cfg.Algorithm)
	if err != nil {
		return nil, err
	}
	web := fetch.New(env.HTTP, cfg.MaxDownload, env.Now)
	return func(ctx context.Context, in params) (results, error) {
		if err := in.check(); err != nil {
			return nil, err
		}
		r := reading{params: in, algorithm: fallback, max: cfg.MaxRead, threshold: cfg.Threshold, quality: cfg.Quality,
			web: web, log: env.Log}
		if in.Algorithm != "" && in.Format == "checksum" {
			if r.algorithm, err = digest.Parse(in.Algorithm); err != nil {
				return nil, err
			}
		}
		list, err := registry.EachParallel(ctx, read.AtOnce, in.Sources, r.source)
		for i, s := range in.Sources {
			list[i].Source, list[i].SourceType = s.String(), s.Type()
			if b := list[i].body(); b != nil && err != nil {
				b.Close()
			}
		}
		if err != nil {
			return nil, err
		}
		return list, nil
	}, nil
}

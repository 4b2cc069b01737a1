// Package metadata adds read.metadata: what is known of files and URLs without
// reading them.
package metadata

import (
	"context"
	"fmt"
	"io"

	"github.com/conduit-mcp/conduit-mcp/internal/fetch"
	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
	"github.com/conduit-mcp/conduit-mcp/internal/source"
	"github.com/conduit-mcp/conduit-mcp/ops/read"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func init() { registry.Register(desc, build) }

var desc = registry.Desc{
	Tool:      read.Tool,
	Name:      "metadata",
	Summary:   "Tell size, type, times and permissions.",
	Effect:    registry.ReadOnly,
	OpenWorld: true,
	Errors: []fault.Code{fault.FSNotFound, fault.FSAccessDenied, fault.FSPathResolution, fault.FSBadPathInput,
		fault.HTTPInvalidURL, fault.HTTPRequestFailed, fault.HTTPTimeout, fault.HTTPStatus,
		fault.FSOperation, fault.Unarchive, fault.ArchiveDetect, fault.LimitExceeded},
	Examples: []registry.Example{{Title: "A file and a directory", Args: `{"sources": ["notes.txt", "src"]}`}},
}

type params struct {
	Sources []registry.Source `json:"sources" jsonschema:"minItems=1" jsonschema_description:"Paths, archive.zip!/inner/path, URLs."`
}

type result struct {
	Source     string `json:"source"`
	SourceType string `json:"source_type"`
	registry.Outcome
	HTTPStatus int       `json:"http_status_code,omitempty"`
	Metadata   *metadata `json:"metadata,omitempty"`
}

type metadata struct {
	Name        string            `json:"name"`
	EntryType   string            `json:"entry_type"`
	Size        *int64            `json:"size_bytes,omitempty"`
	MIMEType    string            `json:"mime_type,omitempty"`
	Created     string            `json:"created_at_iso,omitempty"`
	Modified    string            `json:"modified_at_iso,omitempty"`
	Octal       string            `json:"permissions_octal,omitempty"`
	Permissions string            `json:"permissions_string,omitempty"`
	Headers     map[string]string `json:"http_headers,omitempty"`
	FinalURL    string            `json:"final_url,omitempty"`
}

// Trim makes r a failed result that only names its source.
func (r *result) Trim(err error) {
	r.Metadata = nil
	r.Settle(err)
}

type results []result

// Lean writes a line for each source.
func (list results) Lean(w io.Writer) error {
	for i, r := range list {
		if i > 0 {
			if _, err := io.WriteString(w, "\n"); err != nil {
				return err
			}
		}
		if _, err := io.WriteString(w, r.line()); err != nil {
			return err
		}
	}
	return nil
}

func (r result) line() string {
	if r.Failed() {
		return fmt.Sprintf("%s: %s", r.ErrorCode, r.ErrorMessage)
	}
	m := r.Metadata
	line := r.Source + ": " + m.EntryType
	if m.Size != nil {
		line += fmt.Sprintf(", %d bytes", *m.Size)
	}
	if m.MIMEType != "" {
		line += ", " + m.MIMEType
	}
	if m.Permissions != "" {
		line += ", " + m.Permissions
	}
	if m.Modified != "" {
		line += ", modified " + m.Modified
	}
	if m.FinalURL != "" {
		line += ", redirected to " + m.FinalURL
	}
	return line
}

func build(_ struct{}, env *registry.Env) (registry.Func[params, results], error) {
	web := fetch.New(env.HTTP, 0, env.Now)
	describe := func(ctx context.Context, s registry.Source) (result, error) {
		u, err := s.URL()
		switch {
		case err != nil:
			return result{}, err
		case u != nil:
			return describeURL(ctx, web, u)
		}
		return describeFile(ctx, s)
	}
	return func(ctx context.Context, in params) (results, error) {
		list, err := registry.EachParallel(ctx, read.AtOnce, in.Sources, describe)
		for i, s := range in.Sources {
			list[i].Source, list[i].SourceType = s.String(), s.Type()
		}
		return list, err
	}, nil
}

func describeFile(ctx context.Context, s registry.Source) (result, error) {
	info, err := source.Stat(ctx, s)
	if err != nil {
		return result{}, err
	}
	m := &metadata{
		Name:        info.Name,
		EntryType:   info.Type(),
		MIMEType:    info.MIMEType,
		Modified:    fileinfo.ISO(info.Modified),
		Octal:       info.Octal(),
		Permissions: info.String(),
	}
	if !info.Created.IsZero() {
		m.Created = fileinfo.ISO(info.Created)
	}
	switch {
	case info.Mode.IsRegular():
		m.Size = &info.Size
	case !info.IsDir():
		m.Size = new(int64)
	}
	return result{Metadata: m}, nil
}

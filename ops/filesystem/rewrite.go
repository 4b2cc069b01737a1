package filesystem

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/journal"
	"github.com/conduit-mcp/conduit-mcp/internal/rewrite"
	"github.com/conduit-mcp/conduit-mcp/internal/search"
	"github.com/conduit-mcp/conduit-mcp/internal/textedit"
	"github.com/conduit-mcp/conduit-mcp/ops/change"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// rewriteErrors are those of tools that change a part of files.
var rewriteErrors = codes(fault.FSNotFound, fault.FSIsDirectory, fault.FSOperation, fault.FSReadFailed, fault.FSWriteFailed,
	fault.PreconditionFailed, fault.LimitExceeded)

type rewriteSettings struct {
	readSettings
	journal.Settings
}

// rewriting returns what tools that change a part of files share.
func rewriting(cfg rewriteSettings, env *registry.Env) (*change.Files, rewrite.Engine, error) {
	files, err := change.Shared(cfg.Settings, env)
	if err != nil {
		return nil, rewrite.Engine{}, err
	}
	return files, rewrite.Engine{Writer: files.Writer, MaxBytes: cfg.MaxRead}, nil
}

// rewritten has the file that p names changed: f makes its new content. Unless
// write is set nothing is written. It reports whether there is a difference.
func rewritten(ctx context.Context, e rewrite.Engine, p registry.Path, keep atomicfile.Keeper, write bool, f func(old []byte) ([]byte, error)) (changed bool, err error) {
	at, err := p.Place()
	if err != nil {
		return false, err
	}
	file := &rewrite.File{Place: at, Name: p.String(), Path: p.String(), Keep: keep, Plan: func(_ context.Context, old []byte) ([][]byte, error) {
		content, err := f(old)
		if err != nil || bytes.Equal(old, content) {
			return nil, err
		}
		return [][]byte{content}, nil
	}}
	if err := e.Run(ctx, []*rewrite.File{file}, rewrite.Options{DryRun: !write}); err != nil {
		return false, err
	}
	return file.Changed, located(p, file.Err)
}

// expression compiles what the parameter at holds. Unlike in search_files a
// pattern in slashes is one that has slashes.
func expression(at, pattern string, ignoreCase bool) (search.Matcher, error) {
	if len(pattern) > search.MaxPattern {
		return nil, fault.New(fault.InvalidParameter, "%s may have at most %d bytes", at, search.MaxPattern)
	}
	if strings.HasPrefix(pattern, "/") {
		pattern = "(?:" + pattern + ")"
	}
	compile := search.NewExpression
	if ignoreCase {
		compile = search.NewFolded
	}
	re, err := compile(pattern, true)
	if err != nil {
		return nil, fault.New(fault.InvalidParameter, "%s is not a valid JavaScript regular expression: %v", at, err)
	}
	return re, nil
}

// searched is the error of searching the file that p names.
func searched(p registry.Path, err error) error {
	if errors.Is(err, search.ErrGivenUp) {
		return fault.New(fault.LimitExceeded, "%s: the expression takes too long; simplify it, avoid nested repetitions", p)
	}
	return err
}

// parsed is the content of the file that p names as a text to be changed.
func parsed(p registry.Path, content []byte) (*textedit.Doc, error) {
	d, err := textedit.Parse(content, "")
	if err != nil {
		return nil, fault.Hide(fault.InvalidParameter, err, "%s is binary, and only text can be edited; replace it whole with write_content", p)
	}
	return d, nil
}

// about puts the name of the file in front of a message that lacks it.
func about(p registry.Path, err error) error {
	if coded := new(fault.Error); errors.As(err, &coded) {
		return fault.Hide(coded.Code, coded, "%s: %s", p, coded.Message)
	}
	return err
}

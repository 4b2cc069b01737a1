package fault_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

func TestOf(t *testing.T) {
	dir := t.TempDir()
	_, missing := os.Open(filepath.Join(dir, "nope"))
	path := func(err error) error { return &fs.PathError{Op: "open", Path: "/p", Err: err} }
	cause := errors.New("cause")
	for _, c := range []struct {
		err     error
		code    fault.Code
		message string
	}{
		{fault.New(fault.FSIsFile, "%s is a file", "x"), fault.FSIsFile, "x is a file"},
		{fmt.Errorf("outer: %w", fault.New(fault.FSIsFile, "x is a file")), fault.FSIsFile, "x is a file"},
		{fault.New(fault.FSReadFailed, "reading: %w", cause), fault.FSReadFailed, "reading: cause"},
		{fault.Hide(fault.FSReadFailed, cause, "reading"), fault.FSReadFailed, "reading"},
		{missing, fault.FSNotFound, "no such file or directory: " + filepath.Join(dir, "nope")},
		{fs.ErrNotExist, fault.FSNotFound, "no such file or directory"},
		{path(syscall.EACCES), fault.FSAccessDenied, "the operating system denies access: /p"},
		{path(syscall.EROFS), fault.FSAccessDenied, "the operating system denies access: /p"},
		{path(fs.ErrExist), fault.FSAlreadyExists, "already exists: /p"},
		{path(syscall.EISDIR), fault.FSIsDirectory, "is a directory, not a file: /p"},
		{path(syscall.ENOTDIR), fault.FSPathResolution, "a component of the path is not a directory: /p"},
		{path(syscall.ELOOP), fault.FSPathResolution, "too many symbolic links: /p"},
		{path(syscall.ENAMETOOLONG), fault.FSBadPathInput, "the name is too long for the file system: /p"},
		{path(cause), fault.FSOperation, "open failed: /p: cause"},
		{context.DeadlineExceeded, fault.LimitExceeded, "the operation ran past its time limit"},
		{context.Canceled, fault.FSOperation, "the operation was cancelled"},
		{cause, fault.Internal, "internal error; the server's log has the details"},
		{nil, fault.Internal, "internal error; the server's log has the details"},
	} {
		if code, message := fault.Of(c.err); code != c.code || message != c.message {
			t.Errorf("%v: %s, %q; want %s, %q", c.err, code, message, c.code, c.message)
		}
	}
	for _, err := range []error{fault.New(fault.FSReadFailed, "reading: %w", cause), fault.Hide(fault.FSReadFailed, cause, "reading")} {
		if !errors.Is(err, cause) {
			t.Errorf("%v lost its cause", err)
		}
	}
}

func TestDialect(t *testing.T) {
	err := fault.New(fault.FSNotFound, "no <file>")
	for want, d := range map[string]fault.Dialect{
		`{"status":"error","error_code":"ERR_FS_NOT_FOUND","error_message":"no `: {},
		`{"status":"error","error_code":"GONE","error_message":"no `:             {Rename: map[fault.Code]fault.Code{fault.FSNotFound: "GONE"}},
		`{"code":"GONE"}`: {Rename: map[fault.Code]fault.Code{fault.FSNotFound: "GONE"}, Encode: func(c fault.Code, _ string) any { return map[string]any{"code": c} }},
	} {
		if got, err := json.Marshal(d.Render(err)); err != nil || !strings.HasPrefix(string(got), want) {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
}

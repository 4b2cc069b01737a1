// Package fault gives errors the stable codes that clients see.
package fault

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// An Error is a failure with a code. The code is for programs, the message for
// the model or person who must correct the call: it names what was wrong and
// what would be right, and never carries file content or a stack.
type Error struct {
	Code    Code
	Message string
	Err     error // cause, logged but not shown; may be nil
}

func (e *Error) Error() string { return e.Message }
func (e *Error) Unwrap() error { return e.Err }

// New returns an error with code c. A %w verb in format keeps the cause, whose
// text then becomes part of the message a client sees.
func New(c Code, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: c, Message: err.Error(), Err: errors.Unwrap(err)}
}

// Hide returns an error with code c whose cause is kept for the log alone.
func Hide(c Code, cause error, format string, args ...any) error {
	return &Error{Code: c, Message: fmt.Sprintf(format, args...), Err: cause}
}

// Of reports the code and message a client should see for err. Errors made by
// [New] speak for themselves; well-known causes are mapped; anything else is
// ERR_INTERNAL_SERVER_ERROR with a fixed message, since its text was not
// written for a client.
func Of(err error) (Code, string) {
	var e *Error
	if errors.As(err, &e) {
		return e.Code, e.Message
	}
	var at *fs.PathError
	errors.As(err, &at)
	name := func(what string) string {
		if at != nil {
			return what + ": " + at.Path
		}
		return what
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return LimitExceeded, "the operation ran past its time limit"
	case errors.Is(err, context.Canceled):
		return FSOperation, "the operation was cancelled"
	case errors.Is(err, fs.ErrNotExist):
		return FSNotFound, name("no such file or directory")
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return FSAccessDenied, name("the operating system denies access")
	case errors.Is(err, fs.ErrExist):
		return FSAlreadyExists, name("already exists")
	case errors.Is(err, syscall.EISDIR):
		return FSIsDirectory, name("is a directory, not a file")
	case errors.Is(err, syscall.ENOTDIR):
		return FSPathResolution, name("a component of the path is not a directory")
	case errors.Is(err, syscall.ELOOP):
		return FSPathResolution, name("too many symbolic links")
	case errors.Is(err, syscall.ENAMETOOLONG):
		return FSBadPathInput, name("the name is too long for the file system")
	case at != nil:
		return FSOperation, fmt.Sprintf("%s failed: %s: %v", at.Op, at.Path, at.Err)
	}
	return Internal, "internal error; the server's log has the details"
}

// A Dialect is the wire form in which one family of tools reports errors. The
// zero Dialect is conduit's own: {status, error_code, error_message}.
type Dialect struct {
	Rename map[Code]Code                    // shared codes that the family calls otherwise
	Encode func(c Code, message string) any // nil: conduit's own form
}

// Render returns the object that tells a client about err.
func (d Dialect) Render(err error) any {
	c, msg := Of(err)
	if own, ok := d.Rename[c]; ok {
		c = own
	}
	if d.Encode != nil {
		return d.Encode(c, msg)
	}
	return Object{Status: "error", Code: c, Message: msg}
}

// An Object is conduit's own error object (spec section 2, Error Handling).
type Object struct {
	Status  string `json:"status"`
	Code    Code   `json:"error_code"`
	Message string `json:"error_message"`
}

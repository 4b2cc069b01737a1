package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"syscall"

	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// An httpError is the cause of an error that a status of the server led to.
type httpError struct {
	status int
	rng    RangeStatus
	err    error // a failure that came on top, or nil
}

func (e *httpError) Error() string {
	if e.err == nil {
		return "HTTP status " + strconv.Itoa(e.status)
	}
	return fmt.Sprintf("HTTP status %d; then: %v", e.status, e.err)
}

func (e *httpError) Unwrap() error { return e.err }

// StatusOf returns the HTTP status that err was caused by, 0 where there is
// none.
func StatusOf(err error) int {
	if e, ok := errors.AsType[*httpError](err); ok {
		return e.status
	}
	return 0
}

// RangeOf returns RangeNotSupported where err is
// ERR_HTTP_RANGE_NOT_SATISFIABLE, "" otherwise.
func RangeOf(err error) RangeStatus {
	if e, ok := errors.AsType[*httpError](err); ok {
		return e.rng
	}
	return ""
}

func statusError(u *url.URL, code int) error {
	return fault.Hide(fault.HTTPStatus, &httpError{status: code}, "%s answered with HTTP status %s", label(u), status(code))
}

// status writes a status code with its name. The server's own wording is not
// used: it may say anything.
func status(code int) string {
	if text := http.StatusText(code); text != "" {
		return fmt.Sprintf("%d (%s)", code, text)
	}
	return strconv.Itoa(code)
}

// failure turns an error of the exchange about u into one that a client may
// see. Causes are kept for the log; of what the server sent nothing is shown.
func (f *Fetcher) failure(ctx context.Context, u *url.URL, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	at := label(u)
	if isTimeout(err) {
		limit := f.client.Timeout.Milliseconds()
		if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
			return fault.Hide(fault.HTTPTimeout, err, "%s: no connection to the host could be made within %v or CONDUIT_HTTP_TIMEOUT_MS (%d)", at, connectTime, limit)
		}
		return fault.Hide(fault.HTTPTimeout, err, "%s: the exchange took longer than CONDUIT_HTTP_TIMEOUT_MS (%d)", at, limit)
	}
	return fault.Hide(fault.HTTPRequestFailed, err, "%s: %s", at, reason(err))
}

func isTimeout(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout() || errors.Is(err, os.ErrDeadlineExceeded)
}

// reason says in words of our own what err, of package net or net/http, means.
func reason(err error) string {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsNotFound {
			return fmt.Sprintf("the host name %q does not exist", fault.ClipTo(dns.Name, repeated))
		}
		return fmt.Sprintf("the host name %q could not be resolved; the name server failed", fault.ClipTo(dns.Name, repeated))
	}
	where := "the server"
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "proxyconnect" {
		where = "the proxy of CONDUIT_HTTP_PROXY"
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return fmt.Sprintf("connection to %s failed: %s", where, errno)
	}
	if errors.Is(err, http.ErrSchemeMismatch) {
		return where + " speaks plain HTTP on that port; try http://"
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "the certificate of " + where + " is for another host"
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "the certificate of " + where + " is signed by an unknown authority"
	}
	if bad, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		if bad.Reason == x509.Expired {
			return "the certificate of " + where + " has expired or is not valid yet"
		}
		return "the certificate of " + where + " is not valid"
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return where + " does not speak TLS on that port"
	}
	if alert, ok := errors.AsType[tls.AlertError](err); ok {
		return "no secure connection to " + where + ": " + alert.Error()
	}
	if bad, ok := errors.AsType[*decodeError](err); ok {
		return fmt.Sprintf("the body is not the valid %s that its Content-Encoding promises", bad.encoding)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		return where + " closed the connection before its answer was complete"
	}
	return fmt.Sprintf("%s broke off, gave no valid HTTP answer, or one whose header is larger than %d bytes", where, maxHeaderBytes)
}

// repeated is how many bytes messages repeat of a name or URL.
const repeated = 200

// label names u in messages: without credentials, query and fragment, which may
// hold secrets.
func label(u *url.URL) string {
	return fault.ClipTo((&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String(), repeated)
}

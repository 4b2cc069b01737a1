package fetch

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/andybalholm/brotli"
)

// maxEncodings bounds how many encodings a server may stack.
const maxEncodings = 3

var errLimit = errors.New("more bytes than the limit")

// A capped reader fails with errLimit once its source has given more than left
// bytes.
type capped struct {
	r    io.Reader
	left int64
}

func (c *capped) Read(p []byte) (int, error) {
	if c.left < 0 {
		return 0, errLimit
	}
	if int64(len(p)) > c.left+1 {
		p = p[:c.left+1]
	}
	n, err := c.r.Read(p)
	if c.left -= int64(n); c.left < 0 {
		return n - 1, errLimit
	}
	return n, err
}

// encodings lists what was done to a body, in that order.
func encodings(h http.Header) []string {
	var list []string
	for _, line := range h.Values("Content-Encoding") {
		for name := range strings.SplitSeq(line, ",") {
			if name = strings.ToLower(strings.TrimSpace(name)); name != "" && name != "identity" {
				list = append(list, name)
			}
		}
	}
	return list
}

// decode undoes the encodings of body. At every stage, from the bytes sent to
// the content, at most limit bytes go through; beyond that reading fails with
// errLimit.
func decode(h http.Header, body io.Reader, limit int64) (io.Reader, error) {
	list := encodings(h)
	if len(list) > maxEncodings {
		return nil, refuse("the server encodes its answer %d times; at most %d are undone", len(list), maxEncodings)
	}
	var r io.Reader = &capped{body, limit}
	for i := len(list) - 1; i >= 0; i-- {
		open, ok := decoders[list[i]]
		if !ok {
			return nil, refuse("the server encodes its answer in a way (%s) that is not understood; gzip, deflate and br are", short(list[i]))
		}
		d := &decoder{encoding: list[i], open: open, src: &source{r: r}}
		r = &capped{d, limit}
	}
	return r, nil
}

// short repeats the name of an encoding where it looks like one: a server may
// write anything there.
func short(name string) string {
	for _, c := range name {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return "which has no proper name"
		}
	}
	return name[:min(len(name), 16)]
}

var decoders = map[string]func(*bufio.Reader) (io.Reader, error){
	"gzip":    func(r *bufio.Reader) (io.Reader, error) { return gzip.NewReader(r) },
	"x-gzip":  func(r *bufio.Reader) (io.Reader, error) { return gzip.NewReader(r) },
	"deflate": inflate,
	"br":      func(r *bufio.Reader) (io.Reader, error) { return brotli.NewReader(r), nil },
}

// inflate reads the zlib format, which "deflate" means (RFC 9110, 8.4.1.2), and
// the bare stream that some servers send in its place.
func inflate(r *bufio.Reader) (io.Reader, error) {
	b, _ := r.Peek(2)
	if len(b) == 2 && b[0]&0x0f == 8 && (int(b[0])<<8|int(b[1]))%31 == 0 {
		return zlib.NewReader(r)
	}
	return flate.NewReader(r), nil
}

// A decoder undoes one encoding. An empty body is empty in every encoding.
type decoder struct {
	encoding string
	open     func(*bufio.Reader) (io.Reader, error)
	src      *source
	r        io.Reader // nil before the first read
}

func (d *decoder) Read(p []byte) (int, error) {
	if d.r == nil {
		buf := bufio.NewReader(d.src)
		if _, err := buf.Peek(1); err != nil {
			return 0, err
		}
		r, err := d.open(buf)
		if err != nil {
			return 0, d.failure(err)
		}
		d.r = r
	}
	n, err := d.r.Read(p)
	if err != nil && err != io.EOF {
		err = d.failure(err)
	}
	return n, err
}

// failure tells a source that failed from one that is not encoded as promised.
func (d *decoder) failure(err error) error {
	if d.src.err != nil {
		return d.src.err
	}
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return io.ErrUnexpectedEOF
	}
	return &decodeError{d.encoding, err}
}

// A source remembers how reading failed.
type source struct {
	r   io.Reader
	err error // never io.EOF
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

type decodeError struct {
	encoding string
	err      error
}

func (e *decodeError) Error() string { return fmt.Sprintf("%s: %v", e.encoding, e.err) }
func (e *decodeError) Unwrap() error { return e.err }

// Package digest computes checksums of streams.
package digest

import (
	"context"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"hash"
	"io"
	"strings"
	"sync"

	"github.com/conduit-mcp/conduit-mcp/internal/parallel"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// An Algorithm is the name of a hash function, in lower case.
type Algorithm string

// The algorithms of the specification.
const (
	MD5    Algorithm = "md5"
	SHA1   Algorithm = "sha1"
	SHA256 Algorithm = "sha256"
	SHA512 Algorithm = "sha512"
)

// Parse returns the algorithm of that name, in any case. The error is
// ERR_UNSUPPORTED_CHECKSUM_ALGORITHM and lists the valid names.
func Parse(name string) (Algorithm, error) {
	switch a := Algorithm(strings.ToLower(name)); a {
	case MD5, SHA1, SHA256, SHA512:
		return a, nil
	}
	return "", fault.New(fault.ChecksumAlgorithm, "checksum_algorithm %.40q is not supported; use md5, sha1, sha256 or sha512", name)
}

// New returns a hash of the algorithm, which must come from Parse or the
// constants.
func (a Algorithm) New() hash.Hash {
	switch a {
	case MD5:
		return md5.New()
	case SHA1:
		return sha1.New()
	case SHA512:
		return sha512.New()
	}
	return sha256.New()
}

const bufferSize = 1 << 20

var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// Feed reads r to its end, in constant memory, into every hash and returns the
// number of bytes. It ends with the error of ctx once that is done. Of a large r
// the next part is read while one is hashed.
func Feed(ctx context.Context, r io.Reader, hashes ...hash.Hash) (n int64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	buf := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buf)
	var other *[bufferSize]byte
	var ahead *parallel.Group // reads the next part
	var k int
	read := func() error {
		k, err = r.Read(buf[:])
		return nil
	}
	for read(); ; {
		part, end := buf[:k], err
		n += int64(k)
		full := end == nil && k == len(buf)
		if full {
			if other == nil {
				other = buffers.Get().(*[bufferSize]byte)
				defer buffers.Put(other)
				ahead = parallel.New()
			}
			buf, other = other, buf
			ahead.Go(read)
		}
		for _, h := range hashes {
			h.Write(part)
		}
		if full {
			if err := ahead.Wait(); err != nil {
				return n, err
			}
		}
		switch {
		case end == io.EOF:
			return n, nil
		case end != nil:
			return n, end
		case ctx.Err() != nil:
			return n, ctx.Err()
		case !full:
			read()
		}
	}
}

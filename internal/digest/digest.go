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
// number of bytes. It ends with the error of ctx once that is done.
func Feed(ctx context.Context, r io.Reader, hashes ...hash.Hash) (int64, error) {
	buf := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buf)
	for n := int64(0); ; {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		k, err := r.Read(buf[:])
		n += int64(k)
		for _, h := range hashes {
			h.Write(buf[:k])
		}
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

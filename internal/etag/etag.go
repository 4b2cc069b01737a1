// Package etag names the content of a file, so that a caller who has read it
// can ask to write only if it is still the same.
package etag

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"sync"
)

// Of returns the etag of content whose SHA-256 is sum: 22 characters, opaque to
// callers.
func Of(sum []byte) string { return base64.RawURLEncoding.EncodeToString(sum[:16]) }

// Sum returns the SHA-256 of what r still holds, in constant memory. It ends
// with the error of ctx once that is done.
func Sum(ctx context.Context, r io.Reader) ([]byte, error) {
	buf := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buf)
	h := sha256.New()
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n, err := r.Read(buf[:])
		h.Write(buf[:n])
		if err == io.EOF {
			return h.Sum(nil), nil
		}
		if err != nil {
			return nil, err
		}
	}
}

const bufferSize = 256 << 10

var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

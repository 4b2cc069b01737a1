// Package etag names the content of a file, so that a caller who has read it
// can ask to write only if it is still the same.
package etag

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"io"

	"github.com/conduit-mcp/conduit-mcp/internal/digest"
)

// Of returns the etag of content whose SHA-256 is sum: 22 characters, opaque to
// callers.
func Of(sum []byte) string { return base64.RawURLEncoding.EncodeToString(sum[:16]) }

// Sum returns the SHA-256 of what r still holds, in constant memory. It ends
// with the error of ctx once that is done.
func Sum(ctx context.Context, r io.Reader) ([]byte, error) {
	h := sha256.New()
	if _, err := digest.Feed(ctx, r, h); err != nil {
		return nil, err
	}
	return h.Sum(nil), nil
}

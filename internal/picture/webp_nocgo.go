//go:build !cgo

package picture

import (
	"context"
	"errors"
	"image"
)

// canWriteWebP reports whether this build has an encoder for WebP.
const canWriteWebP = false

func encodeWebP(context.Context, image.Image, int, []byte) ([]byte, error) {
	return nil, errors.ErrUnsupported
}

//go:build !cgo

package picture

import (
	"errors"
	"image"
)

// canWriteWebP reports whether this build has an encoder for WebP.
const canWriteWebP = false

func encodeWebP(image.Image, int, []byte) ([]byte, error) {
	return nil, errors.ErrUnsupported
}

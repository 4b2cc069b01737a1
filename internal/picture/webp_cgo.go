//go:build cgo

package picture

import (
	"bytes"
	"image"

	"github.com/bep/gowebp/libwebp"
	"github.com/bep/gowebp/libwebp/webpoptions"
)

// canWriteWebP reports whether this build has an encoder for WebP.
const canWriteWebP = true

// encodeWebP encodes a plain image with loss.
func encodeWebP(m image.Image, quality int, profile []byte) ([]byte, error) {
	rgb := nrgba(m)
	var b bytes.Buffer
	if err := libwebp.Encode(&b, rgb, webpoptions.EncodingOptions{Quality: quality}); err != nil {
		return nil, err
	}
	return withProfile(b.Bytes(), profileOf(profile, "RGB "), rgb.Rect.Dx(), rgb.Rect.Dy(), !rgb.Opaque()), nil
}

package picture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"slices"
	"strings"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
	"golang.org/x/image/webp"
)

// A kind is an image format.
type kind int

const (
	kindNone kind = iota
	kindJPEG
	kindPNG
	kindGIF
	kindWebP
	kindTIFF
	kindBMP
)

// codecs are what decodes each kind. The size is asked of the same code that
// decodes, since a file may name several.
var codecs = [...]struct {
	config func(io.Reader) (image.Config, error)
	decode func(io.Reader) (image.Image, error)
	dense  int // pixels that a byte of the file stands for at most, 0 where there is no such limit
}{
	kindJPEG: {jpeg.DecodeConfig, jpeg.Decode, 8 * 64}, // a block takes a bit
	kindPNG:  {png.DecodeConfig, png.Decode, 8 * 1032}, // the most that deflate reaches
	kindGIF:  {gif.DecodeConfig, gif.Decode, 0},
	kindWebP: {webp.DecodeConfig, decodeWebP, 0},
	kindTIFF: {tiff.DecodeConfig, tiff.Decode, 0},
	kindBMP:  {bmp.DecodeConfig, bmp.Decode, 8},
}

func kindOf(mime string) kind {
	mime, _, _ = strings.Cut(mime, ";")
	switch strings.ToLower(strings.TrimSpace(mime)) {
	case "image/jpeg", "image/jpg", "image/pjpeg":
		return kindJPEG
	case "image/png", "image/apng", "image/vnd.mozilla.apng", "image/x-png":
		return kindPNG
	case "image/gif":
		return kindGIF
	case "image/webp":
		return kindWebP
	case "image/tiff", "image/tif":
		return kindTIFF
	case "image/bmp", "image/x-bmp", "image/x-ms-bmp":
		return kindBMP
	}
	return kindNone
}

func (k kind) mime() string {
	return [...]string{"", "image/jpeg", "image/png", "image/gif", "image/webp", "image/tiff", "image/bmp"}[k]
}

// A header is what an image says of itself before its pixels.
type header struct {
	kind          kind
	width, height int      // as stored
	orientation   int      // 1 to 8 as in Exif
	frames        int      // of an animation or pages; counted to 2
	lossless      bool     // WebP
	cmyk          bool     // JPEG of four components
	deep          bool     // 16 bits a sample
	embedded      bool     // BMP with a colour profile of its own
	profile       []byte   // ICC, nil without
	colours       [][]byte // PNG: the chunks that say what the colours mean
}

// maxProfile bounds the colour profiles that are kept.
const maxProfile = 4 << 20

var errShort = errors.New("the image is cut short")

// readHeader recognizes an image by its content and reads its header; mime
// names in the error what is not recognized.
func readHeader(src source, mime string) (*header, error) {
	h := &header{orientation: 1, frames: 1}
	head := src.part(0, min(src.size, 74))
	switch {
	case bytes.HasPrefix(head, []byte("\xff\xd8\xff")):
		h.kind = kindJPEG
		h.readJPEG(src)
	case bytes.HasPrefix(head, []byte(pngSignature)):
		h.kind = kindPNG
		h.readPNG(src)
	case bytes.HasPrefix(head, []byte("GIF87a")), bytes.HasPrefix(head, []byte("GIF89a")):
		h.kind = kindGIF
		h.readGIF(src)
	case len(head) >= 12 && string(head[:4]) == "RIFF" && string(head[8:12]) == "WEBP":
		h.kind = kindWebP
		h.readWebP(src)
	case bytes.HasPrefix(head, []byte("II*\x00")), bytes.HasPrefix(head, []byte("MM\x00*")):
		h.kind = kindTIFF
		h.readTIFF(src)
	case bytes.HasPrefix(head, []byte("BM")) && len(head) >= 26:
		h.kind = kindBMP
		if len(head) >= 74 && head[14] >= 124 {
			space := string(head[70:74]) // MBED or LINK, little-endian
			h.embedded = space == "DEBM" || space == "KNIL"
		}
	default:
		return nil, unsupported(mime)
	}
	codec := codecs[h.kind]
	c, err := codec.config(io.NewSectionReader(src, 0, src.size))
	if err != nil {
		return nil, err
	}
	h.width, h.height = c.Width, c.Height
	switch c.ColorModel {
	case color.CMYKModel:
		h.cmyk = true
	case color.Gray16Model, color.RGBA64Model, color.NRGBA64Model:
		h.deep = true
	}
	if h.width <= 0 || h.height <= 0 {
		return nil, errors.New("the image has no pixels")
	}
	if !h.tooLarge() && codec.dense > 0 && int64(h.width*h.height/codec.dense) > src.size {
		return nil, fmt.Errorf("%w: %d bytes cannot hold %d x %d pixels", errShort, src.size, h.width, h.height)
	}
	return h, nil
}

func (h *header) tooLarge() bool { return int64(h.width)*int64(h.height) > maxPixels }

// upright returns the size at which the image is shown.
func (h *header) upright() (width, height int) {
	if h.orientation > 4 {
		return h.height, h.width
	}
	return h.width, h.height
}

const exifPrefix = "Exif\x00\x00"

// Tags of TIFF and Exif.
const (
	tagWidth       = 256
	tagHeight      = 257
	tagOrientation = 274
	tagProfile     = 34675
)

// tags yields the entries of the first directory of a TIFF structure, with the
// value of those that are one number, and of those of more where it is; it
// returns whether another directory follows. What is damaged is left out.
func tags(src source, yield func(tag int, number uint32, count int64)) (more bool) {
	head := src.part(0, 8)
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(head, []byte("II*\x00")):
		order = binary.LittleEndian
	case bytes.HasPrefix(head, []byte("MM\x00*")):
		order = binary.BigEndian
	default:
		return false
	}
	at := int64(order.Uint32(head[4:]))
	count := src.part(at, 2)
	if count == nil {
		return false
	}
	n := int64(order.Uint16(count))
	entries := src.part(at+2, 12*n)
	for e := range slices.Chunk(entries, 12) {
		kind, count := order.Uint16(e[2:]), order.Uint32(e[4:])
		v := order.Uint32(e[8:])
		switch {
		case count != 1:
		case kind == 1:
			v = uint32(e[8])
		case kind == 3:
			v = uint32(order.Uint16(e[8:]))
		}
		yield(int(order.Uint16(e)), v, int64(count))
	}
	next := src.part(at+2+12*n, 4)
	return next != nil && order.Uint32(next) != 0
}

// exifOrientation returns the orientation in an Exif block, 1 where it has none
// that is valid.
func exifOrientation(exif source) int {
	o := 1
	tags(exif, func(tag int, n uint32, count int64) {
		if tag == tagOrientation && count == 1 && 1 <= n && n <= 8 {
			o = int(n)
		}
	})
	return o
}

// profileOf returns the profile where it is for images of that colour space: a
// conversion leaves behind what does not describe its result.
func profileOf(profile []byte, space string) []byte {
	if len(profile) < 128 || string(profile[16:20]) != space {
		return nil
	}
	return profile
}

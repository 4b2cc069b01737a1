package picture

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"io"
	"strings"
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
	width, height int    // as stored
	orientation   int    // 1 to 8 as in Exif
	frames        int    // of an animation or pages; counted to 2
	lossless      bool   // WebP
	cmyk          bool   // JPEG of four components
	embedded      bool   // BMP with a colour profile of its own
	profile       []byte // ICC, nil without
}

// maxProfile bounds the colour profiles that are kept.
const maxProfile = 4 << 20

var errShort = errors.New("the image ends within its header")

// readHeader recognizes an image by its content and reads its header; mime
// names in the error what is not recognized.
func readHeader(data []byte, mime string) (*header, error) {
	h := &header{orientation: 1, frames: 1}
	var err error
	switch {
	case bytes.HasPrefix(data, []byte("\xff\xd8\xff")):
		h.kind, err = kindJPEG, h.readJPEG(data)
	case bytes.HasPrefix(data, []byte(pngSignature)):
		h.kind, err = kindPNG, h.readPNG(data)
	case bytes.HasPrefix(data, []byte("GIF87a")), bytes.HasPrefix(data, []byte("GIF89a")):
		h.kind, err = kindGIF, h.readGIF(data)
	case len(data) >= 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP":
		h.kind, err = kindWebP, h.readWebP(data)
		if err == nil && h.frames == 1 {
			h.width, h.height, err = webpSize(data)
		}
	case bytes.HasPrefix(data, []byte("II*\x00")), bytes.HasPrefix(data, []byte("MM\x00*")):
		h.kind, err = kindTIFF, h.readTIFF(data)
	case bytes.HasPrefix(data, []byte("BM")) && len(data) >= 26:
		h.kind, err = kindBMP, h.readBMP(data)
	default:
		return nil, unsupported(mime)
	}
	if err == nil && (h.width <= 0 || h.height <= 0) {
		err = errors.New("the image has no pixels")
	}
	return h, err
}

func (h *header) tooLarge() bool { return int64(h.width)*int64(h.height) > maxPixels }

// upright returns the size at which the image is shown.
func (h *header) upright() (width, height int) {
	if h.orientation > 4 {
		return h.height, h.width
	}
	return h.width, h.height
}

func (h *header) readJPEG(data []byte) error {
	f, err := parseJPEG(data)
	if err != nil {
		return err
	}
	h.width, h.height, h.cmyk = f.width, f.height, len(f.comps) == 4
	h.orientation, h.profile = f.orientation, f.profile()
	return nil
}

const pngSignature = "\x89PNG\r\n\x1a\n"

// pngChunks yields the chunks of a PNG up to its end or its damage. The
// checksums are not looked at.
func pngChunks(data []byte) func(yield func(name string, body []byte) bool) {
	return func(yield func(string, []byte) bool) {
		for rest := data[len(pngSignature):]; len(rest) >= 8; {
			n := uint64(binary.BigEndian.Uint32(rest))
			whole := uint64(len(rest)) >= 12+n
			if !yield(string(rest[4:8]), rest[8:min(8+n, uint64(len(rest)))]) || !whole {
				return
			}
			rest = rest[12+n:]
		}
	}
}

func (h *header) readPNG(data []byte) error {
	first := true
	for name, body := range pngChunks(data) {
		if first {
			if name != "IHDR" || len(body) < 13 {
				return errShort
			}
			h.width, h.height = positive(binary.BigEndian.Uint32(body)), positive(binary.BigEndian.Uint32(body[4:]))
			first = false
		}
		switch name {
		case "acTL":
			if len(body) >= 4 && binary.BigEndian.Uint32(body) > 1 {
				h.frames = 2
			}
		case "eXIf":
			h.orientation = exifOrientation(body)
		case "iCCP":
			h.profile = inflateProfile(body)
		}
	}
	if first {
		return errShort
	}
	return nil
}

// positive is n as an int, 0 where the format does not allow it.
func positive(n uint32) int {
	if n > 1<<31-1 {
		return 0
	}
	return int(n)
}

// inflateProfile reads the body of an iCCP chunk: a name, a method, deflated
// bytes.
func inflateProfile(body []byte) []byte {
	_, rest, ok := bytes.Cut(body, []byte{0})
	if !ok || len(rest) < 1 {
		return nil
	}
	z, err := zlib.NewReader(bytes.NewReader(rest[1:]))
	if err != nil {
		return nil
	}
	p, err := io.ReadAll(io.LimitReader(z, maxProfile+1))
	if err != nil || len(p) > maxProfile {
		return nil
	}
	return p
}

// readGIF counts the frames by walking the blocks; what is damaged is left to
// the decoder.
func (h *header) readGIF(data []byte) error {
	if len(data) < 13 {
		return errShort
	}
	h.width, h.height = int(binary.LittleEndian.Uint16(data[6:])), int(binary.LittleEndian.Uint16(data[8:]))
	table := func(flags byte) int {
		if flags&0x80 == 0 {
			return 0
		}
		return 3 << (flags&7 + 1)
	}
	h.frames = 0
	at := 13 + table(data[10])
	for at < len(data) && h.frames < 2 {
		switch data[at] {
		case 0x21:
			at += 2
		case 0x2c:
			if at+10 > len(data) {
				return nil
			}
			h.frames++
			at += 10 + table(data[at+9]) + 1
		default:
			return nil
		}
		for at < len(data) && data[at] != 0 {
			at += 1 + int(data[at])
		}
		at++
	}
	return nil
}

// webpChunks yields the chunks of a RIFF body up to its end or its damage.
func webpChunks(body []byte) func(yield func(name string, body []byte) bool) {
	return func(yield func(string, []byte) bool) {
		for len(body) >= 8 {
			n := uint64(binary.LittleEndian.Uint32(body[4:]))
			end := 8 + n + n&1
			if !yield(string(body[:4]), body[8:min(8+n, uint64(len(body)))]) || end > uint64(len(body)) {
				return
			}
			body = body[end:]
		}
	}
}

func uint24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }

func (h *header) readWebP(data []byte) error {
	extended := false
	for name, body := range webpChunks(data[12:]) {
		switch name {
		case "VP8X":
			if len(body) < 10 {
				return errShort
			}
			extended = true
			h.width, h.height = uint24(body[4:])+1, uint24(body[7:])+1
			if body[0]&0x02 != 0 {
				h.frames = 2
			}
		case "VP8 ":
			if !extended {
				if len(body) < 10 {
					return errShort
				}
				h.width, h.height = int(binary.LittleEndian.Uint16(body[6:])&0x3fff), int(binary.LittleEndian.Uint16(body[8:])&0x3fff)
			}
		case "VP8L":
			if len(body) < 5 {
				return errShort
			}
			h.lossless = true
			if bits := binary.LittleEndian.Uint32(body[1:]); !extended {
				h.width, h.height = int(bits&0x3fff)+1, int(bits>>14&0x3fff)+1
			}
		case "ICCP":
			if len(body) <= maxProfile {
				h.profile = body
			}
		case "EXIF":
			h.orientation = exifOrientation(bytes.TrimPrefix(body, []byte(exifPrefix)))
		}
	}
	return nil
}

func (h *header) readBMP(data []byte) error {
	w, t := int32(binary.LittleEndian.Uint32(data[18:])), int32(binary.LittleEndian.Uint32(data[22:]))
	h.width, h.height = int(w), max(int(t), -int(t))
	if len(data) >= 74 && data[14] >= 124 {
		space := string(data[70:74]) // MBED or LINK, little-endian
		h.embedded = space == "DEBM" || space == "KNIL"
	}
	return nil
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
// value of those that are one number, and of those of more the bytes; it returns
// whether another directory follows.
func tags(data []byte, yield func(tag int, number uint32, value []byte)) (more bool, err error) {
	if len(data) < 8 {
		return false, errShort
	}
	var order binary.ByteOrder
	switch string(data[:4]) {
	case "II*\x00":
		order = binary.LittleEndian
	case "MM\x00*":
		order = binary.BigEndian
	default:
		return false, errors.New("no TIFF structure")
	}
	at := uint64(order.Uint32(data[4:]))
	if at+2 > uint64(len(data)) {
		return false, errShort
	}
	n := uint64(order.Uint16(data[at:]))
	at += 2
	for range n {
		if at+12 > uint64(len(data)) {
			return false, errShort
		}
		e := data[at : at+12]
		at += 12
		kind, count := order.Uint16(e[2:]), uint64(order.Uint32(e[4:]))
		switch {
		case count == 1 && kind == 1:
			yield(int(order.Uint16(e)), uint32(e[8]), nil)
		case count == 1 && kind == 3:
			yield(int(order.Uint16(e)), uint32(order.Uint16(e[8:])), nil)
		case count == 1 && kind == 4:
			yield(int(order.Uint16(e)), order.Uint32(e[8:]), nil)
		case count > 4 && (kind == 1 || kind == 7):
			if from := uint64(order.Uint32(e[8:])); from+count <= uint64(len(data)) {
				yield(int(order.Uint16(e)), 0, data[from:from+count])
			}
		}
	}
	return at+4 <= uint64(len(data)) && order.Uint32(data[at:]) != 0, nil
}

// exifOrientation returns the orientation in an Exif block, 1 where it has none
// that is valid.
func exifOrientation(exif []byte) int {
	o := 1
	tags(exif, func(tag int, n uint32, _ []byte) { // what is damaged says nothing
		if tag == tagOrientation && 1 <= n && n <= 8 {
			o = int(n)
		}
	})
	return o
}

func (h *header) readTIFF(data []byte) error {
	more, err := tags(data, func(tag int, n uint32, value []byte) {
		switch tag {
		case tagWidth:
			h.width = positive(n)
		case tagHeight:
			h.height = positive(n)
		case tagProfile:
			if len(value) <= maxProfile {
				h.profile = value
			}
		}
	})
	if err != nil {
		return err
	}
	h.orientation = exifOrientation(data)
	if more {
		h.frames = 2
	}
	return nil
}

package picture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/bits"
)

// errNotSequential is for a JPEG whose coefficients are not read here:
// progressive, in several scans, of 12 bits, of unusual sampling.
var errNotSequential = errors.New("not a plain sequential JPEG")

var errBadJPEG = errors.New("damaged JPEG")

// zigzag gives the place in natural order of each coefficient of a block in the
// order of the file.
var zigzag = [64]uint8{
	0, 1, 8, 16, 9, 2, 3, 10,
	17, 24, 32, 25, 18, 11, 4, 5,
	12, 19, 26, 33, 40, 48, 41, 34,
	27, 20, 13, 6, 7, 14, 21, 28,
	35, 42, 49, 56, 57, 50, 43, 36,
	29, 22, 15, 23, 30, 37, 44, 51,
	58, 59, 52, 45, 38, 31, 39, 46,
	53, 60, 61, 54, 47, 55, 62, 63,
}

// A jpegFile is the header of a JPEG, up to its first scan.
type jpegFile struct {
	width, height int
	orientation   int
	icc           [][]byte // bodies of the segments, without the name
	adobe         int      // transform of the Adobe segment, -1 without one
	comps         []jpegComp
	plain         bool // 8-bit sequential Huffman, all components in one scan
	quant         [4]*[64]uint16
	dc, ac        [4]*huffman
	restart       int
	scan          []byte // entropy-coded data and what follows
}

type jpegComp struct {
	id     byte
	h, v   int // sampling factors
	tq     byte
	td, ta byte
}

const iccPrefix = "ICC_PROFILE\x00"

func parseJPEG(data []byte) (*jpegFile, error) {
	f := &jpegFile{orientation: 1, adobe: -1}
	sof := byte(0)
	for at := 2; ; {
		for at < len(data) && data[at] != 0xff {
			at++ // stray bytes, which other readers skip too
		}
		for at < len(data) && data[at] == 0xff {
			at++
		}
		if at >= len(data) {
			return f, f.ended(sof)
		}
		marker := data[at]
		at++
		if marker == 0 || marker == 1 || 0xd0 <= marker && marker <= 0xd8 {
			continue
		}
		if marker == 0xd9 {
			return nil, errBadJPEG
		}
		if at+2 > len(data) {
			return f, f.ended(sof)
		}
		n := int(binary.BigEndian.Uint16(data[at:]))
		if n < 2 {
			return nil, errBadJPEG
		}
		if at+n > len(data) {
			return f, f.ended(sof)
		}
		body := data[at+2 : at+n]
		at += n
		var err error
		switch marker {
		case 0xc0, 0xc1, 0xc2, 0xc3, 0xc5, 0xc6, 0xc7, 0xc9, 0xca, 0xcb, 0xcd, 0xce, 0xcf:
			if sof != 0 {
				return nil, errBadJPEG
			}
			sof = marker
			err = f.frame(body)
			f.plain = err == nil && sof <= 0xc1 && body[0] == 8
		case 0xc4:
			err = f.huffmanTables(body)
		case 0xdb:
			err = f.quantTables(body)
		case 0xdd:
			if len(body) != 2 {
				return nil, errBadJPEG
			}
			f.restart = int(binary.BigEndian.Uint16(body))
		case 0xe1:
			if rest, ok := bytes.CutPrefix(body, []byte(exifPrefix)); ok {
				f.orientation = exifOrientation(rest)
			}
		case 0xe2:
			if rest, ok := bytes.CutPrefix(body, []byte(iccPrefix)); ok && len(rest) > 2 {
				f.icc = append(f.icc, rest)
			}
		case 0xee:
			if rest, ok := bytes.CutPrefix(body, []byte("Adobe")); ok && len(rest) >= 7 {
				f.adobe = int(rest[6])
			}
		case 0xda:
			if sof == 0 {
				return nil, errBadJPEG
			}
			f.scan = data[at:]
			return f, f.scanHeader(body)
		}
		if err != nil {
			return nil, err
		}
	}
}

// ended is the verdict on data that ends before a scan: enough for the header
// when the frame has been seen.
func (f *jpegFile) ended(sof byte) error {
	if sof == 0 {
		return errShort
	}
	f.plain = false
	return nil
}

func (f *jpegFile) frame(b []byte) error {
	if len(b) < 6 || len(b) != 6+3*int(b[5]) {
		return errBadJPEG
	}
	f.height, f.width = int(binary.BigEndian.Uint16(b[1:])), int(binary.BigEndian.Uint16(b[3:]))
	if n := b[5]; n != 1 && n != 3 && n != 4 {
		return errBadJPEG
	}
	for b = b[6:]; len(b) > 0; b = b[3:] {
		c := jpegComp{id: b[0], h: int(b[1] >> 4), v: int(b[1] & 15), tq: b[2]}
		if c.h < 1 || c.h > 4 || c.v < 1 || c.v > 4 || c.tq > 3 {
			return errBadJPEG
		}
		f.comps = append(f.comps, c)
	}
	return nil
}

func (f *jpegFile) quantTables(b []byte) error {
	for len(b) > 0 {
		wide, id := int(b[0]>>4), b[0]&15
		if wide > 1 || id > 3 || len(b) < 1+64*(1+wide) {
			return errBadJPEG
		}
		b = b[1:]
		t := new([64]uint16)
		for k := range t {
			if wide == 1 {
				t[k] = binary.BigEndian.Uint16(b[2*k:])
			} else {
				t[k] = uint16(b[k])
			}
		}
		f.quant[id] = t
		b = b[64*(1+wide):]
	}
	return nil
}

func (f *jpegFile) huffmanTables(b []byte) error {
	for len(b) > 0 {
		if len(b) < 17 || b[0]>>4 > 1 || b[0]&15 > 3 {
			return errBadJPEG
		}
		n := 0
		for _, c := range b[1:17] {
			n += int(c)
		}
		if n > 256 || len(b) < 17+n {
			return errBadJPEG
		}
		t, err := newHuffman([16]byte(b[1:17]), b[17:17+n])
		if err != nil {
			return err
		}
		if b[0]>>4 == 0 {
			f.dc[b[0]&15] = t
		} else {
			f.ac[b[0]&15] = t
		}
		b = b[17+n:]
	}
	return nil
}

func (f *jpegFile) scanHeader(b []byte) error {
	if len(b) < 1 || len(b) != 4+2*int(b[0]) {
		return errBadJPEG
	}
	f.plain = f.plain && int(b[0]) == len(f.comps)
	if !f.plain {
		return nil
	}
	for i := range f.comps {
		c := &f.comps[i]
		c.td, c.ta = b[2+2*i]>>4, b[2+2*i]&15
		if b[1+2*i] != c.id || c.td > 3 || c.ta > 3 {
			return errBadJPEG
		}
		if f.quant[c.tq] == nil || f.dc[c.td] == nil || f.ac[c.ta] == nil {
			f.plain = false
		}
	}
	return nil
}

// rgb reports whether the components are red, green and blue.
func (f *jpegFile) rgb() bool {
	return len(f.comps) == 3 && (f.adobe == 0 || f.adobe < 0 && f.comps[0].id == 'R' && f.comps[1].id == 'G')
}

// profile joins the segments of the colour profile, nil where one is missing.
func (f *jpegFile) profile() []byte {
	var p []byte
	for want := 1; want <= len(f.icc); want++ {
		found := false
		for _, s := range f.icc {
			if int(s[0]) == want && int(s[1]) == len(f.icc) {
				p, found = append(p, s[2:]...), true
				break
			}
		}
		if !found || len(p) > maxProfile {
			return nil
		}
	}
	return p
}

// lookBits is the length of the codes that one look-up resolves.
const lookBits = 10

// A huffman table decodes the codes of one DHT table.
type huffman struct {
	look   [1 << lookBits]uint16 // length << 8 | symbol, 0 where the code is longer
	end    [17]uint32            // first code beyond those of a length, left-aligned to 16 bits
	offset [17]int32             // of a length's first symbol, less its first code
	symbol []byte
}

func newHuffman(counts [16]byte, symbols []byte) (*huffman, error) {
	h := &huffman{symbol: symbols}
	code, k := uint32(0), 0
	for n := 1; n <= 16; n++ {
		h.offset[n] = int32(k) - int32(code)
		for range counts[n-1] {
			if code >= 1<<n {
				return nil, errBadJPEG
			}
			if n <= lookBits {
				from := code << (lookBits - n)
				for i := range uint32(1) << (lookBits - n) {
					h.look[from+i] = uint16(n)<<8 | uint16(symbols[k])
				}
			}
			code++
			k++
		}
		h.end[n] = code << (16 - n)
		code <<= 1
	}
	return h, nil
}

// long decodes a code of more than lookBits bits from the top of acc; length 0
// says that there is no such code.
func (h *huffman) long(acc uint64) (symbol byte, length uint) {
	top := uint32(acc >> 48)
	for n := lookBits + 1; n <= 16; n++ {
		if top < h.end[n] {
			if i := int32(top>>(16-n)) + h.offset[n]; i >= 0 && int(i) < len(h.symbol) {
				return h.symbol[i], uint(n)
			}
			break
		}
	}
	return 0, 0
}

// A bitReader reads entropy-coded data. Past a marker or the end it supplies
// zeros, and remembers how many.
type bitReader struct {
	data  []byte
	at    int
	acc   uint64 // unread bits, left-aligned
	n     uint   // how many
	zeros uint   // how many of them, the last, are made up
}

// fill makes n at least 32.
func (r *bitReader) fill(acc uint64, n uint) (uint64, uint) {
	if r.at+8 <= len(r.data) {
		v := binary.BigEndian.Uint64(r.data[r.at:])
		if t := ^v; (t-0x0101010101010101)&^t&0x8080808080808080 == 0 { // no byte is 0xff
			k := (63 - n) >> 3
			r.at += int(k)
			return acc | v>>(n&63), n + 8*k // the bits below come again with the next bytes
		}
	}
	for n <= 56 {
		b := byte(0)
		switch {
		case r.at >= len(r.data), r.data[r.at] == 0xff && (r.at+1 >= len(r.data) || r.data[r.at+1] != 0):
			r.zeros += 8
		case r.data[r.at] == 0xff:
			b = 0xff
			r.at += 2
		default:
			b = r.data[r.at]
			r.at++
		}
		acc |= uint64(b) << (56 - n)
		n += 8
	}
	return acc, n
}

// overrun reports whether made-up bits have been consumed.
func (r *bitReader) overrun() bool { return r.n < r.zeros }

// restart moves behind the restart marker numbered i.
func (r *bitReader) restart(i int) bool {
	if r.overrun() {
		return false
	}
	for r.at+1 < len(r.data) && r.data[r.at] == 0xff && r.data[r.at+1] == 0xff {
		r.at++
	}
	if r.at+2 > len(r.data) || r.data[r.at] != 0xff || r.data[r.at+1] != 0xd0+byte(i&7) {
		return false
	}
	*r = bitReader{data: r.data, at: r.at + 2}
	return true
}

// A coefBlock is a block of quantized coefficients in zigzag order. Only those
// that set names, and the first, are valid.
type coefBlock struct {
	set  uint64 // which coefficients after the first are not zero
	coef [64]int16
}

// block decodes one block; pred is the first coefficient of the one before.
func (r *bitReader) block(b *coefBlock, dc, ac *huffman, pred int32) (int32, bool) {
	acc, n := r.acc, r.n
	if n < 32 {
		acc, n = r.fill(acc, n)
	}
	e := dc.look[acc>>(64-lookBits)]
	symbol, length := byte(e), uint(e>>8)
	if length == 0 {
		if symbol, length = dc.long(acc); length == 0 {
			return 0, false
		}
	}
	acc <<= length & 63
	n -= length
	if size := uint(symbol); size > 0 {
		if size > 15 {
			return 0, false
		}
		pred += extend(uint32(acc>>((64-size)&63)), size)
		acc <<= size & 63
		n -= size
	}
	b.coef[0] = int16(pred)
	set := uint64(0)
	for k := uint(1); k < 64; k++ {
		if n < 32 {
			acc, n = r.fill(acc, n)
		}
		e := ac.look[acc>>(64-lookBits)]
		symbol, length := byte(e), uint(e>>8)
		if length == 0 {
			if symbol, length = ac.long(acc); length == 0 {
				return 0, false
			}
		}
		acc <<= length & 63
		n -= length
		size := uint(symbol & 15)
		if size == 0 {
			if symbol != 0xf0 {
				break
			}
			k += 15
			continue
		}
		if k += uint(symbol >> 4); k > 63 {
			return 0, false
		}
		b.coef[k] = int16(extend(uint32(acc>>((64-size)&63)), size))
		set |= 1 << (k & 63)
		acc <<= size & 63
		n -= size
	}
	b.set, r.acc, r.n = set, acc, n
	return pred, true
}

// extend gives the signed number that size bits stand for. It does not branch:
// signs cannot be predicted.
func extend(v uint32, size uint) int32 {
	negative := int32(v>>((size-1)&31)) - 1 // -1 or 0
	return int32(v) + negative&(1-int32(1)<<(size&31))
}

// A coefBand is some rows of MCUs of an image.
type coefBand struct {
	first  int           // its first row of MCUs
	blocks [][]coefBlock // of each component, row by row
}

// A coefReader decodes the bands of a plain JPEG in turn.
type coefReader struct {
	*jpegFile
	bits         bitReader
	pred         [4]int32
	across, down int // MCUs
	done         int // MCUs decoded
}

// newCoefReader prepares to read the coefficients.
func newCoefReader(f *jpegFile) (*coefReader, error) {
	if !f.plain {
		return nil, errNotSequential
	}
	if len(f.comps) == 1 {
		f.comps[0].h, f.comps[0].v = 1, 1 // its blocks come one by one whatever it says
	}
	h, v := 1, 1
	for _, c := range f.comps {
		if bits.OnesCount(uint(c.h)) != 1 || bits.OnesCount(uint(c.v)) != 1 {
			return nil, errNotSequential
		}
		h, v = max(h, c.h), max(v, c.v)
	}
	return &coefReader{jpegFile: f, bits: bitReader{data: f.scan},
		across: (f.width + 8*h - 1) / (8 * h), down: (f.height + 8*v - 1) / (8 * v)}, nil
}

// read decodes the next rows of MCUs, at most n, into the blocks of a band,
// which it makes where the band has none.
func (r *coefReader) read(b *coefBand, n int) error {
	if b.blocks == nil {
		for _, c := range r.comps {
			b.blocks = append(b.blocks, make([]coefBlock, n*c.v*r.across*c.h))
		}
	}
	b.first = r.done / r.across
	for row := range min(n, r.down-b.first) {
		for x := range r.across {
			if r.restart > 0 && r.done > 0 && r.done%r.restart == 0 {
				if !r.bits.restart(r.done/r.restart - 1) {
					return errBadJPEG
				}
				r.pred = [4]int32{}
			}
			r.done++
			for i := range r.comps {
				c := &r.comps[i]
				dc, ac := r.dc[c.td], r.ac[c.ta]
				for v := range c.v {
					at := ((row*c.v+v)*r.across + x) * c.h
					for h := range c.h {
						pred, ok := r.bits.block(&b.blocks[i][at+h], dc, ac, r.pred[i])
						if !ok {
							return errBadJPEG
						}
						r.pred[i] = pred
					}
				}
			}
		}
		if r.bits.overrun() {
			return errBadJPEG
		}
	}
	return nil
}

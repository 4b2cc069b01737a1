// Package inflate decompresses deflate streams (RFC 1951) that are in memory as
// a whole, into memory that is there already.
package inflate

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"sync"
)

var (
	// ErrCorrupt says that the input is no valid deflate stream.
	ErrCorrupt = errors.New("the deflate stream is corrupt")

	// ErrTruncated says that the input ends before the stream does.
	ErrTruncated = errors.New("the deflate stream is truncated")

	// ErrTooLong says that the stream has more than there is room for.
	ErrTooLong = errors.New("the deflate stream has more than expected")
)

// Decode decompresses the stream that src begins with to dst, and returns how
// many bytes that came to, also where it fails. What follows the stream in src
// is not looked at. What dst has beyond n is undefined.
func Decode(dst, src []byte) (n int, err error) {
	d := decoders.Get().(*decoder)
	defer decoders.Put(d)
	d.in = input{src: src}
	n, err = d.decode(dst)
	d.in = input{}
	return n, err
}

var decoders = sync.Pool{New: func() any { return new(decoder) }}

const (
	maxCode = 15 // bits of a code

	maxLiterals  = 286 // symbols that a block may have codes for
	maxDistances = 30
	endOfBlock   = 256

	// Codes of at most so many bits are looked up in one step.
	literalBits  = 10
	distanceBits = 8
	lengthBits   = 7 // of codes of lengths of codes, which have no more

	// A table for what follows the first bits of longer codes has 1<<k entries
	// for k+1 codes or more, so these sizes hold the first table and all others:
	// 1<<10 + 288*32/6, 1<<8 + 32*128/8.
	literalSize  = 1 << 12
	distanceSize = 1 << 10
)

// An entry of a table says what a code stands for. From the lowest bit:
//
//	0-7    bits of the code and of what belongs to it
//	8-11   bits of the code
//	14,15  what kind it is
//	16-30  the literal; the least length or distance
//	31     whether it is a literal
//
// Of a link to a further table, 16-30 is where that begins and 8-11 how many
// bits it is indexed by.
const (
	special = 1 << 15 // neither a literal, nor a length or distance
	link    = special | 1<<14
	end     = special | 1<<13
	literal = 1 << 31
)

// lengths and distances are the entries of the symbols without their codes. Two
// of each take part in the fixed codes but stand for nothing.
var (
	lengths = [...]uint32{
		end, 3 << 16, 4 << 16, 5 << 16, 6 << 16, 7 << 16, 8 << 16, 9 << 16, 10 << 16,
		11<<16 | 1, 13<<16 | 1, 15<<16 | 1, 17<<16 | 1, 19<<16 | 2, 23<<16 | 2, 27<<16 | 2, 31<<16 | 2,
		35<<16 | 3, 43<<16 | 3, 51<<16 | 3, 59<<16 | 3, 67<<16 | 4, 83<<16 | 4, 99<<16 | 4, 115<<16 | 4,
		131<<16 | 5, 163<<16 | 5, 195<<16 | 5, 227<<16 | 5, 258 << 16, special, special,
	}
	distances = [...]uint32{
		1 << 16, 2 << 16, 3 << 16, 4 << 16, 5<<16 | 1, 7<<16 | 1, 9<<16 | 2, 13<<16 | 2,
		17<<16 | 3, 25<<16 | 3, 33<<16 | 4, 49<<16 | 4, 65<<16 | 5, 97<<16 | 5, 129<<16 | 6, 193<<16 | 6,
		257<<16 | 7, 385<<16 | 7, 513<<16 | 8, 769<<16 | 8, 1025<<16 | 9, 1537<<16 | 9, 2049<<16 | 10, 3073<<16 | 10,
		4097<<16 | 11, 6145<<16 | 11, 8193<<16 | 12, 12289<<16 | 12, 16385<<16 | 13, 24577<<16 | 13, special, special,
	}
)

// lengthOrder is the order in which the lengths of codes of lengths come.
var lengthOrder = [...]byte{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// A decoder holds the tables of a block.
type decoder struct {
	in        input
	fixed     bool // the tables are those of the fixed codes
	literals  [literalSize]uint32
	distances [distanceSize]uint32
	lengths   [1 << lengthBits]uint32
	sizes     [maxLiterals + maxDistances + 4]byte // lengths of the codes of a block
	sorted    [maxLiterals + 2]uint16
}

// An input is read bit by bit. bits holds the next n bits, and above them
// nothing but what comes next in src.
type input struct {
	src  []byte
	at   int // of what is not yet among the n bits
	bits uint64
	n    uint
}

// fill makes 56 bits available, or all that are left.
func (in *input) fill() {
	if len(in.src)-in.at >= 8 {
		in.bits |= binary.LittleEndian.Uint64(in.src[in.at:]) << (in.n & 63)
		in.at += int((63 - in.n) >> 3)
		in.n |= 56
		return
	}
	for in.n < 56 && in.at < len(in.src) {
		in.bits |= uint64(in.src[in.at]) << in.n
		in.at++
		in.n += 8
	}
}

// take takes k bits; fewer may be left.
func (in *input) take(k uint) (v uint64, ok bool) {
	if k > in.n {
		return 0, false
	}
	v = in.bits & (1<<k - 1)
	in.bits >>= k
	in.n -= k
	return v, true
}

func (d *decoder) decode(dst []byte) (o int, err error) {
	for {
		d.in.fill()
		head, ok := d.in.take(3)
		if !ok {
			return o, ErrTruncated
		}
		switch head >> 1 {
		case 0:
			o, err = d.stored(dst, o)
		case 1:
			d.fix()
			o, err = d.block(dst, o)
		case 2:
			if err = d.header(); err == nil {
				o, err = d.block(dst, o)
			}
		default:
			err = ErrCorrupt
		}
		if err != nil || head&1 != 0 {
			return o, err
		}
	}
}

// stored copies a block that is not compressed.
func (d *decoder) stored(dst []byte, o int) (int, error) {
	in := &d.in
	rest := in.src[in.at-int(in.n>>3):]
	if len(rest) < 4 {
		return o, ErrTruncated
	}
	size := binary.LittleEndian.Uint16(rest)
	if size != ^binary.LittleEndian.Uint16(rest[2:]) {
		return o, ErrCorrupt
	}
	rest = rest[4:]
	n := copy(dst[o:], rest[:min(len(rest), int(size))])
	switch {
	case len(rest) < int(size):
		return o + n, ErrTruncated
	case n < int(size):
		return o + n, ErrTooLong
	}
	*in = input{src: in.src, at: len(in.src) - len(rest) + n}
	return o + n, nil
}

// fix makes the tables of the fixed codes.
func (d *decoder) fix() {
	if d.fixed {
		return
	}
	const n = maxLiterals + 2
	for i := range n {
		switch {
		case i < 144:
			d.sizes[i] = 8
		case i < 256:
			d.sizes[i] = 9
		case i < 280:
			d.sizes[i] = 7
		default:
			d.sizes[i] = 8
		}
	}
	for i := range maxDistances + 2 {
		d.sizes[n+i] = 5
	}
	d.build(d.literals[:], literalBits, d.sizes[:n], ofLiteral)
	d.build(d.distances[:], distanceBits, d.sizes[n:], ofDistance)
	d.fixed = true
}

// header reads the codes of a block and makes its tables.
func (d *decoder) header() error {
	in := &d.in
	counts, ok := in.take(5 + 5 + 4)
	if !ok {
		return ErrTruncated
	}
	literals, distances, lengths := int(counts&31)+257, int(counts>>5&31)+1, int(counts>>10)+4
	if literals > maxLiterals || distances > maxDistances {
		return ErrCorrupt
	}
	d.fixed = false
	var short [len(lengthOrder)]byte
	for i := range lengths {
		if i%16 == 0 {
			in.fill()
		}
		size, ok := in.take(3)
		if !ok {
			return ErrTruncated
		}
		short[lengthOrder[i]] = byte(size)
	}
	if !d.build(d.lengths[:], lengthBits, short[:], ofLength) {
		return ErrCorrupt
	}
	sizes := d.sizes[:literals+distances]
	for i := 0; i < len(sizes); {
		in.fill()
		e := d.lengths[in.bits&(1<<lengthBits-1)]
		if e&special != 0 {
			return ErrCorrupt
		}
		v, ok := in.take(uint(e & 31))
		if !ok {
			return ErrTruncated
		}
		symbol, extra := e>>16, int(v>>(e>>8&15))
		var size byte
		times := 1
		switch symbol {
		case 16:
			if i == 0 {
				return ErrCorrupt
			}
			size, times = sizes[i-1], 3+extra
		case 17:
			times = 3 + extra
		case 18:
			times = 11 + extra
		default:
			sizes[i] = byte(symbol)
			i++
			continue
		}
		if times > len(sizes)-i {
			return ErrCorrupt
		}
		for j := range sizes[i : i+times] {
			sizes[i+j] = size
		}
		i += times
	}
	if !d.build(d.literals[:], literalBits, sizes[:literals], ofLiteral) ||
		!d.build(d.distances[:], distanceBits, sizes[literals:], ofDistance) {
		return ErrCorrupt
	}
	return nil
}

// What a symbol stands for, as an entry without its code.

func ofLiteral(symbol uint16) uint32 {
	if symbol < endOfBlock {
		return literal | uint32(symbol)<<16
	}
	return lengths[symbol-endOfBlock]
}

func ofDistance(symbol uint16) uint32 { return distances[symbol] }

// ofLength is for the codes of lengths.
func ofLength(symbol uint16) uint32 {
	e := uint32(symbol) << 16
	switch symbol {
	case 16:
		e |= 2
	case 17:
		e |= 3
	case 18:
		e |= 7
	}
	return e
}

// build makes the table of a code, given by the sizes that the codes of its
// symbols have, 0 for those that do not occur. It reports whether the code is
// complete. Two others are valid as well: one without any symbol, and one of a
// single symbol whose code has one bit.
//
// Codes are read from their first bit on but their first bit is the lowest, so
// they are counted up from the top.
func (d *decoder) build(table []uint32, first int, sizes []byte, of func(uint16) uint32) bool {
	var count [maxCode + 1]int
	for _, size := range sizes {
		count[size&maxCode]++
	}
	count[0] = 0
	least, most := 0, 0
	var from [maxCode + 2]int // in sorted
	room := 1
	for size := 1; size <= maxCode; size++ {
		from[size+1] = from[size] + count[size]
		room = room<<1 - count[size]
		if count[size] > 0 {
			if least == 0 {
				least = size
			}
			most = size
		}
	}
	symbols := from[maxCode+1]
	if room != 0 {
		if symbols > 1 || symbols == 1 && most != 1 {
			return false
		}
		for i := range table[:1<<first] {
			table[i] = special
		}
		if symbols == 0 {
			return true
		}
	}
	next := from
	for symbol, size := range sizes {
		if size != 0 {
			d.sorted[next[size&maxCode]] = uint16(symbol)
			next[size&maxCode]++
		}
	}
	if room != 0 {
		e := of(d.sorted[0]) + 1<<8 + 1
		for i := 0; i < 1<<first; i += 2 {
			table[i] = e
		}
		return true
	}

	code := 0
	sorted := d.sorted[:symbols]
	for size := least; size <= first; size++ {
		if size > least {
			copy(table[1<<(size-1):1<<size], table[:1<<(size-1)])
		}
		for _, symbol := range sorted[:count[size]] {
			table[code] = of(symbol) + uint32(size<<8+size)
			code = after(code, size)
		}
		sorted = sorted[count[size]:]
	}
	free, begin, width, prefix := 1<<first, 0, 0, -1
	for size := first + 1; size <= most; size++ {
		for left := count[size]; left > 0; left-- {
			if code&(1<<first-1) != prefix {
				prefix = code & (1<<first - 1)
				width = size - first
				for room := 1<<width - left; room > 0; width++ {
					room = room<<1 - count[first+width+1]
				}
				begin = free
				free += 1 << width
				table[prefix] = uint32(begin)<<16 | uint32(width)<<8 | link
			}
			e := of(sorted[0]) + uint32(size<<8+size)
			sorted = sorted[1:]
			for i := code >> first; i < 1<<width; i += 1 << (size - first) {
				table[begin+i] = e
			}
			code = after(code, size)
		}
	}
	return true
}

// after is the code of size bits that comes after code, 0 after the last.
func after(code, size int) int {
	top := 1 << bits.Len(uint(^code&(1<<size-1))) >> 1
	return code&(top-1) | top
}

// block decompresses a block by the tables. o is how much of dst has been
// written to.
func (d *decoder) block(dst []byte, o int) (int, error) {
	src, at, bits, n := d.in.src, d.in.at, d.in.bits, d.in.n
	literals, distances := &d.literals, &d.distances

	// There is always input for twice 8 bytes, and room for four literals. n
	// counts in its lowest six bits; what is above them is of no account.
	for len(src)-at >= 16 && len(dst)-o >= 4 {
		bits |= binary.LittleEndian.Uint64(src[at:]) << (n & 63)
		at += int(^n & 63 >> 3)
		n |= 56
		e := literals[bits&(1<<literalBits-1)]
		for k := 0; k < 3 && e&literal != 0; k++ {
			dst[o] = byte(e >> 16)
			o++
			bits >>= e & 63
			n -= uint(e)
			e = literals[bits&(1<<literalBits-1)]
		}
		if e&literal != 0 {
			continue
		}
		if e&special != 0 {
			if e&link == link {
				e = literals[(uint64(e>>16)+bits>>literalBits&(1<<(e>>8&15)-1))%literalSize]
			}
			if e&literal != 0 {
				dst[o] = byte(e >> 16)
				o++
				bits >>= e & 63
				n -= uint(e)
				continue
			}
			if e&special != 0 {
				if e&end != end {
					return o, ErrCorrupt
				}
				bits >>= e & 63
				n -= uint(e)
				d.in = input{src, at, bits, n & 63}
				return o, nil
			}
		}
		// At least 26 bits are left, and a length takes 20 at most.
		length := int(e>>16) + int(bits&(1<<(e&63)-1)>>(e>>8&15))
		bits >>= e & 63
		n -= uint(e)
		bits |= binary.LittleEndian.Uint64(src[at:]) << (n & 63)
		at += int(^n & 63 >> 3)
		n |= 56
		e = distances[bits&(1<<distanceBits-1)]
		if e&special != 0 {
			if e&link == link {
				e = distances[(uint64(e>>16)+bits>>distanceBits&(1<<(e>>8&15)-1))%distanceSize]
			}
			if e&special != 0 {
				return o, ErrCorrupt
			}
		}
		distance := int(e>>16) + int(bits&(1<<(e&63)-1)>>(e>>8&15))
		bits >>= e & 63
		n -= uint(e)
		if distance > o {
			return o, ErrCorrupt
		}
		if len(dst)-o < length+32 {
			if len(dst)-o < length {
				return o, ErrTooLong
			}
			for range length {
				dst[o] = dst[o-distance]
				o++
			}
			continue
		}
		from, to := o-distance, o
		o += length
		for distance < 8 && to < o {
			// Of these the first ones are right. What repeats itself after so
			// many bytes also does after twice as many.
			binary.LittleEndian.PutUint64(dst[to:], binary.LittleEndian.Uint64(dst[from:]))
			to += distance
			distance *= 2
		}
		for to < o {
			s, t := (*[32]byte)(dst[from:]), (*[32]byte)(dst[to:])
			binary.LittleEndian.PutUint64(t[:8], binary.LittleEndian.Uint64(s[:8]))
			binary.LittleEndian.PutUint64(t[8:16], binary.LittleEndian.Uint64(s[8:16]))
			binary.LittleEndian.PutUint64(t[16:24], binary.LittleEndian.Uint64(s[16:24]))
			binary.LittleEndian.PutUint64(t[24:], binary.LittleEndian.Uint64(s[24:]))
			from += 32
			to += 32
		}
	}
	d.in = input{src, at, bits, n & 63}
	return d.tail(dst, o)
}

// tail is block where little input or room is left.
func (d *decoder) tail(dst []byte, o int) (int, error) {
	in := &d.in
	for {
		in.fill()
		e := d.literals[in.bits&(1<<literalBits-1)]
		if e&link == link {
			e = d.literals[(uint64(e>>16)+in.bits>>literalBits&(1<<(e>>8&15)-1))%literalSize]
		}
		v, ok := in.take(uint(e & 31))
		switch {
		case !ok:
			return o, ErrTruncated
		case e&literal != 0:
			if o == len(dst) {
				return o, ErrTooLong
			}
			dst[o] = byte(e >> 16)
			o++
			continue
		case e&end == end:
			return o, nil
		case e&special != 0:
			return o, ErrCorrupt
		}
		length := int(e>>16) + int(v>>(e>>8&15))
		in.fill()
		e = d.distances[in.bits&(1<<distanceBits-1)]
		if e&link == link {
			e = d.distances[(uint64(e>>16)+in.bits>>distanceBits&(1<<(e>>8&15)-1))%distanceSize]
		}
		if v, ok = in.take(uint(e & 31)); !ok {
			return o, ErrTruncated
		}
		distance := int(e>>16) + int(v>>(e>>8&15))
		switch {
		case e&special != 0 || distance > o:
			return o, ErrCorrupt
		case length > len(dst)-o:
			return o, ErrTooLong
		}
		for range length {
			dst[o] = dst[o-distance]
			o++
		}
	}
}

package picture

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/adler32"
	"sync"

	"github.com/klauspost/compress/flate"
)

// Levels of deflate.
const (
	bestDeflate  = 9
	quickDeflate = 5
)

// window is how far back deflate refers.
const window = 32 << 10

// stripSize is how much is deflated at a time, sampleSize how much of it is
// tried first.
const (
	stripSize  = 256 << 10
	sampleSize = 32 << 10
)

// A deflater makes zlib streams of one level.
type deflater struct {
	level int
	pools map[int]*sync.Pool // of writers, by level
}

func newDeflater(level int) *deflater {
	return &deflater{level, map[int]*sync.Pool{level: {}, flate.HuffmanOnly: {}}}
}

// stream compresses data as one zlib stream, in parts that are made at the same
// time: each knows the end of the one before as its dictionary, and all but
// the last end at a byte. Where repetitions do not help, as in the differences
// of a photograph's pixels, none are looked for.
func (d *deflater) stream(ctx context.Context, data []byte) ([][]byte, error) {
	n := max((len(data)+stripSize-1)/stripSize, 1)
	parts, sums := make([][]byte, n), make([]uint32, n)
	err := forEach(ctx, n, func(i int) error {
		from, to := i*stripSize, min((i+1)*stripSize, len(data))
		sums[i] = adler32.Checksum(data[from:to])
		use := d.level
		if to-from > 4*sampleSize {
			middle := (from + to) / 2
			plain, err := d.part(data, middle, middle+sampleSize, flate.HuffmanOnly, false, nil)
			if err != nil {
				return err
			}
			repeating, err := d.part(data, middle, middle+sampleSize, d.level, false, nil)
			if err != nil {
				return err
			}
			if len(plain) <= len(repeating) {
				use = flate.HuffmanOnly
			}
		}
		var prefix []byte
		if i == 0 {
			prefix = []byte("\x78\xda")
		}
		var err error
		parts[i], err = d.part(data, from, to, use, i == n-1, prefix)
		return err
	})
	if err != nil {
		return nil, err
	}
	sum := sums[0]
	for i := 1; i < n; i++ {
		sum = joinAdler(sum, sums[i], min(stripSize, len(data)-i*stripSize))
	}
	parts[n-1] = binary.BigEndian.AppendUint32(parts[n-1], sum)
	return parts, nil
}

// part deflates data[from:to], behind what prefix holds.
func (d *deflater) part(data []byte, from, to, level int, last bool, prefix []byte) ([]byte, error) {
	b := bytes.NewBuffer(prefix)
	dictionary := data[max(from-window, 0):from]
	z, ok := d.pools[level].Get().(*flate.Writer)
	if ok {
		z.ResetDict(b, dictionary)
	} else {
		var err error
		if z, err = flate.NewWriterDict(b, level, dictionary); err != nil {
			return nil, err
		}
	}
	_, err := z.Write(data[from:to])
	if err == nil && last {
		err = z.Close()
	} else if err == nil {
		err = z.Flush()
	}
	d.pools[level].Put(z)
	return b.Bytes(), err
}

// joinAdler returns the Adler-32 checksum of two pieces of data from that of
// each and the length of the second.
func joinAdler(first, second uint32, length int) uint32 {
	const mod = 65521
	a1, b1, a2, b2 := uint64(first&0xffff), uint64(first>>16), uint64(second&0xffff), uint64(second>>16)
	a := (a1 + a2 + mod - 1) % mod
	b := (b1 + b2 + uint64(length)%mod*(a1+mod-1)) % mod
	return uint32(b<<16 | a)
}

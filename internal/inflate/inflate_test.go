package inflate

import (
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	fast "github.com/klauspost/compress/flate"
)

// guard is how much around the memory of a call is watched.
const guard = 64

// against decompresses src with room for so many bytes more than it has, and
// checks that package flate judges it the same.
func against(t *testing.T, src []byte, more int) {
	t.Helper()
	const most = 1 << 22
	want, werr := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(src)), most+1))
	if len(want) > most {
		return
	}
	size := max(0, len(want)+more)
	memory := bytes.Repeat([]byte{0xa5}, size+2*guard)
	dst := memory[guard : guard+size : len(memory)]
	padded := append(bytes.Repeat([]byte{0x5a}, guard), src...)
	padded = append(padded, bytes.Repeat([]byte{0x5a}, guard)...)
	in := padded[guard : guard+len(src) : len(padded)]
	n, err := Decode(dst, in)
	for _, edge := range [][]byte{memory[:guard], memory[guard+size:]} {
		if !bytes.Equal(edge, bytes.Repeat([]byte{0xa5}, guard)) {
			t.Fatal("it wrote beyond the memory that it was given")
		}
	}
	if !bytes.Equal(in, src) {
		t.Fatal("it wrote to its input")
	}
	if n < 0 || n > size {
		t.Fatalf("%d bytes, of %d at most", n, size)
	}
	switch {
	case werr == nil && size >= len(want):
		if err != nil || !bytes.Equal(dst[:n], want) {
			t.Fatalf("%d bytes, %v, want %d bytes; the same: %t", n, err, len(want), bytes.Equal(dst[:n], want))
		}
	case err == nil:
		t.Fatalf("%d bytes and no error; package flate has %d bytes, %v, and there was room for %d", n, len(want), werr, size)
	case werr == nil && !errors.Is(err, ErrTooLong):
		t.Fatalf("%v, want that it is too long", err)
	default:
		both := min(n, len(want))
		if !bytes.Equal(dst[:both], want[:both]) {
			t.Fatalf("of a damaged stream, what comes before the damage differs")
		}
	}
}

// samples is data of many kinds.
func samples(t testing.TB) map[string][]byte {
	t.Helper()
	source, err := os.ReadFile("inflate_test.go")
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	random := make([]byte, 100_000)
	for i := range random {
		random[i] = byte(r.Uint32())
	}
	skewed := make([]byte, 200_000) // of codes of all lengths
	for i := range skewed {
		for skewed[i] = 0; skewed[i] < 250 && r.IntN(3) == 0; skewed[i]++ {
		}
	}
	wide := make([]byte, 0, 300_000) // far references among noise
	for len(wide) < 290_000 {
		if at := r.IntN(len(wide) + 1); at+300 < len(wide) && r.IntN(4) > 0 {
			wide = append(wide, wide[at:at+3+r.IntN(290)]...)
		} else {
			wide = append(wide, random[r.IntN(1000):][:r.IntN(50)]...)
		}
	}
	s := map[string][]byte{
		"nothing": nil, "a byte": {7}, "zeros": make([]byte, 70_000), "source": source, "random": random, "skewed": skewed, "wide": wide,
	}
	for period := 2; period < 20; period++ {
		s[fmt.Sprintf("period %d", period)] = bytes.Repeat(random[:period], 4000/period)
	}
	return s
}

func deflated(t testing.TB, data []byte, level int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, level)
	if err != nil {
		t.Fatal(err)
	}
	return closed(t, &b, w, data)
}

func deflatedFast(t testing.TB, data []byte, level int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := fast.NewWriter(&b, level)
	if err != nil {
		t.Fatal(err)
	}
	return closed(t, &b, w, data)
}

func closed(t testing.TB, b *bytes.Buffer, w io.WriteCloser, data []byte) []byte {
	t.Helper()
	_, err := w.Write(data)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestStreams(t *testing.T) {
	for title, data := range samples(t) {
		t.Run(title, func(t *testing.T) {
			for level := -2; level <= 9; level++ {
				for _, stream := range [][]byte{deflated(t, data, level), deflatedFast(t, data, level)} {
					dst := make([]byte, len(data))
					if n, err := Decode(dst, stream); err != nil || !bytes.Equal(dst[:n], data) {
						t.Fatalf("level %d: %d of %d bytes, %v", level, n, len(data), err)
					}
					for _, more := range []int{0, 1, 20, 1000, -1, -2, -300, -len(data)} {
						against(t, stream, more)
					}
					against(t, append(slices.Clip(stream), "what follows"...), 0)
				}
			}
		})
	}
}

func TestTruncatedStreams(t *testing.T) {
	for title, data := range samples(t) {
		data = data[:min(len(data), 3000)]
		for _, level := range []int{-2, 0, 1, 6} {
			stream := deflated(t, data, level)
			for n := range stream {
				if _, err := Decode(make([]byte, len(data)), stream[:n]); err == nil {
					t.Fatalf("%s, level %d: no error after %d of %d bytes", title, level, n, len(stream))
				}
				against(t, stream[:n], 0)
			}
		}
	}
}

func TestCorruptStreams(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	rounds := 100
	if testing.Short() {
		rounds = 20
	}
	for title, data := range samples(t) {
		t.Run(title, func(t *testing.T) {
			data = data[:min(len(data), 20_000)]
			for _, level := range []int{-2, 0, 1, 6, 9} {
				stream := deflated(t, data, level)
				for range rounds {
					bad := bytes.Clone(stream)
					for range 1 + r.IntN(3) {
						at := r.IntN(len(bad))
						if r.IntN(2) == 0 {
							at = r.IntN(min(len(bad), 100)) // where the codes are
						}
						bad[at] ^= 1 << r.IntN(8)
					}
					against(t, bad, r.IntN(400))
				}
			}
		})
	}
}

// A stream written bit by bit.
type script struct {
	b []byte
	n uint
}

func (s *script) put(v, n uint) *script {
	for i := range n {
		if s.n%8 == 0 {
			s.b = append(s.b, 0)
		}
		s.b[len(s.b)-1] |= byte(v>>i&1) << (s.n % 8)
		s.n++
	}
	return s
}

// codes begins a last block in which symbols have codes of these sizes, each
// written as it is.
func (s *script) codes(literals, distances []uint) *script {
	s.put(1|2<<1, 3).put(uint(len(literals)-257), 5).put(uint(len(distances)-1), 5).put(15, 4)
	for _, symbol := range lengthOrder {
		if symbol < 16 { // 16 codes of 4 bits
			s.put(4, 3)
		} else {
			s.put(0, 3)
		}
	}
	for _, size := range append(slices.Clone(literals), distances...) {
		for i := range uint(4) {
			s.put(size>>(3-i)&1, 1)
		}
	}
	return s
}

// sized has the sizes of some symbols among n.
func sized(n int, sizes map[int]uint) []uint {
	all := make([]uint, n)
	for symbol, size := range sizes {
		all[symbol] = size
	}
	return all
}

func TestCodes(t *testing.T) {
	// A literal and the end, and a length of 3.
	three := map[int]uint{'a': 1, 256: 2, 257: 2}
	for _, c := range []struct {
		title     string
		literals  []uint
		distances []uint
		data      uint // the bits of the block
		bits      uint
		want      string
		err       error
	}{
		{"no distances", sized(258, three), []uint{0}, 0b01_0, 3, "a", nil},
		{"no distances, but used", sized(258, three), []uint{0}, 0b0_11_0, 20, "a", ErrCorrupt},
		{"one distance", sized(258, three), []uint{1}, 0b01_0_11_0, 6, "aaaa", nil},
		{"one distance, and another used", sized(258, three), []uint{1}, 0b01_1_11_0, 20, "a", ErrCorrupt},
		{"one distance of two bits", sized(258, three), []uint{2}, 0, 0, "", ErrCorrupt},
		{"too many distances", sized(258, three), []uint{1, 1, 1}, 0, 0, "", ErrCorrupt},
		{"too few distances", sized(258, three), []uint{1, 2}, 0, 0, "", ErrCorrupt},
		{"too far", sized(258, three), []uint{1, 1}, 0b01_1_11_0, 20, "a", ErrCorrupt},
		{"too few literals", sized(258, map[int]uint{'a': 1, 256: 2}), []uint{1}, 0, 0, "", ErrCorrupt},
		{"too many literals", sized(258, map[int]uint{'a': 1, 'b': 1, 256: 2}), []uint{1}, 0, 0, "", ErrCorrupt},
		{"nothing but the end", sized(257, map[int]uint{256: 1}), []uint{0}, 0, 1, "", nil},
		{"nothing but the end, and another", sized(257, map[int]uint{256: 1}), []uint{0}, 1, 20, "", ErrCorrupt},
		{"no symbol", sized(257, nil), []uint{0}, 0, 20, "", ErrCorrupt},
		{"no end", sized(257, map[int]uint{'a': 1, 'b': 1}), []uint{0}, 0b10, 2, "ab", ErrTruncated},
		{"a symbol too many", sized(287, three), []uint{0}, 0b01_0, 3, "", ErrCorrupt},
		{"a distance too many", sized(258, three), make([]uint, 31), 0b01_0, 3, "", ErrCorrupt},
	} {
		t.Run(c.title, func(t *testing.T) {
			var s script
			s.codes(c.literals, c.distances).put(c.data, c.bits)
			dst := make([]byte, 1000)
			n, err := Decode(dst, s.b)
			// Where there is no end, the bits that fill the last byte count too.
			if !errors.Is(err, c.err) || !strings.HasPrefix(string(dst[:n]), c.want) || err == nil && n != len(c.want) {
				t.Errorf("%q, %v, want %q, %v", dst[:n], err, c.want, c.err)
			}
			against(t, s.b, 0)
			against(t, append(s.b, make([]byte, 40)...), 50)
		})
	}
}

// Codes of all sizes there are, so that most are in further tables.
func TestLongCodes(t *testing.T) {
	literals, distances := make([]uint, 286), make([]uint, 30)
	for i := range 14 {
		literals[i] = uint(i + 1)
		distances[i] = uint(i + 1)
	}
	literals[256], literals[285] = 15, 15
	distances[28], distances[29] = 15, 15
	for _, spread := range []int{0, 100, 140} { // in few tables, or in many
		var s script
		if spread > 0 {
			clear(literals)
			for i := range spread {
				literals[i] = 15
			}
			rest := 1<<15 - spread - 2
			literals[256], literals[285] = 15, 15
			for i, size := 150, uint(1); size <= 15; size++ {
				if rest>>(15-size)&1 != 0 {
					literals[i] = size
					i++
				}
			}
		}
		s.codes(literals, distances)
		r := rand.New(rand.NewPCG(5, uint64(spread)))
		for range 300 {
			stream := bytes.Clone(s.b)
			for range 4000 {
				b := byte(r.Uint32())
				if r.IntN(3) == 0 {
					b = 255
				}
				stream = append(stream, b)
			}
			against(t, stream, r.IntN(600)-300)
		}
	}
}

func TestStored(t *testing.T) {
	for title, c := range map[string]struct {
		stream string
		room   int
		want   string
		err    error
	}{
		"empty":            {"\x01\x00\x00\xff\xff", 0, "", nil},
		"some":             {"\x01\x02\x00\xfd\xffab", 2, "ab", nil},
		"two":              {"\x00\x01\x00\xfe\xffa\x01\x01\x00\xfe\xffb", 2, "ab", nil},
		"no room":          {"\x01\x02\x00\xfd\xffab", 1, "a", ErrTooLong},
		"cut":              {"\x01\x02\x00\xfd\xffa", 2, "a", ErrTruncated},
		"cut in its sizes": {"\x01\x02\x00\xfd", 2, "", ErrTruncated},
		"bad sizes":        {"\x01\x02\x00\xfd\xfeab", 2, "", ErrCorrupt},
		"no kind of block": {"\x07", 2, "", ErrCorrupt},
		"no input":         {"", 2, "", ErrTruncated},
		"no last block":    {"\x00\x01\x00\xfe\xffa", 2, "a", ErrTruncated},
		"fixed, no end":    {"\x4b", 2, "", ErrTruncated},
		"after fixed":      {"\x4a\x04\x04\x01\x00\xfe\xffb", 9, "ab", nil},
	} {
		dst := make([]byte, c.room)
		if n, err := Decode(dst, []byte(c.stream)); string(dst[:n]) != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %q, %v", title, dst[:n], err)
		}
		against(t, []byte(c.stream), 0)
	}
}

// Symbols that the fixed codes have and nothing stands for.
func TestFixedCodesWithoutMeaning(t *testing.T) {
	for length := range uint(8) { // of 8 bits, 280 to 287
		for distance := range uint(32) {
			var s script
			s.put(1|1<<1, 3)
			for range 40 {
				for i := range uint(8) { // the literal 0
					s.put(0x30>>(7-i)&1, 1)
				}
			}
			for i := range uint(8) {
				s.put((0xc0+length)>>(7-i)&1, 1)
			}
			for i := range uint(5) {
				s.put(distance>>(4-i)&1, 1)
			}
			for _, rest := range []int{0, 3, 60} { // at the end, and before it
				against(t, append(slices.Clip(s.b), make([]byte, rest)...), 600)
			}
		}
	}
}

func TestNothingIsAllocated(t *testing.T) {
	data := samples(t)["source"]
	stream, dst := deflated(t, data, 6), make([]byte, len(data))
	if n := testing.AllocsPerRun(100, func() {
		if _, err := Decode(dst, stream); err != nil {
			t.Fatal(err)
		}
	}); n >= 1 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzDecode(f *testing.F) {
	for _, data := range samples(f) {
		for _, level := range []int{-2, 0, 1, 6} {
			f.Add(deflated(f, data[:min(len(data), 2000)], level), 0)
		}
	}
	f.Fuzz(func(t *testing.T, src []byte, more int) {
		against(t, src, more%1000)
		against(t, src, 0)
	})
}

func FuzzData(f *testing.F) {
	for _, data := range samples(f) {
		f.Add(data[:min(len(data), 2000)], 6)
	}
	f.Fuzz(func(t *testing.T, data []byte, level int) {
		level = min(max(level, -2), 9)
		for _, stream := range [][]byte{deflated(t, data, level), deflatedFast(t, data, level)} {
			dst := make([]byte, len(data))
			if n, err := Decode(dst, stream); err != nil || !bytes.Equal(dst[:n], data) {
				t.Fatalf("%d of %d bytes, %v", n, len(data), err)
			}
		}
	})
}

// benchmark decompresses the sources of Go's packages net and go, one by one.
func benchmark(b *testing.B, decode func(dst, src []byte) error) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		b.Fatal(err)
	}
	var streams [][]byte
	var sizes []int
	all := 0
	for _, dir := range []string{"net", "net/http", "go/types", "runtime", "os"} {
		names, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "src", dir, "*.go"))
		if err != nil {
			b.Fatal(err)
		}
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err != nil {
				b.Fatal(err)
			}
			streams = append(streams, deflatedFast(b, data, 6))
			sizes = append(sizes, len(data))
			all += len(data)
		}
	}
	dst := make([]byte, slices.Max(sizes))
	b.SetBytes(int64(all))
	b.ReportAllocs()
	for b.Loop() {
		for i, stream := range streams {
			if err := decode(dst[:sizes[i]], stream); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	benchmark(b, func(dst, src []byte) error {
		_, err := Decode(dst, src)
		return err
	})
}

func BenchmarkFlate(b *testing.B) {
	var in bytes.Reader
	r := flate.NewReader(&in)
	benchmark(b, func(dst, src []byte) error {
		in.Reset(src)
		if err := r.(flate.Resetter).Reset(&in, nil); err != nil {
			return err
		}
		_, err := io.ReadFull(r, dst)
		return err
	})
}

func BenchmarkKlauspost(b *testing.B) {
	var in bytes.Reader
	r := fast.NewReader(&in)
	benchmark(b, func(dst, src []byte) error {
		in.Reset(src)
		if err := r.(fast.Resetter).Reset(&in, nil); err != nil {
			return err
		}
		_, err := io.ReadFull(r, dst)
		return err
	})
}

package picture

import (
	"image"
	"testing"
)

func benchCompress(b *testing.B, data []byte) {
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		out, _, err := compress(b, data, "", 75)
		if err != nil {
			b.Fatal(err)
		}
		n = len(out)
	}
	b.ReportMetric(float64(n), "bytes")
}

func BenchmarkCompress(b *testing.B) {
	src := photo(4000, 3000, false)
	b.Run("jpeg420", func(b *testing.B) { benchCompress(b, stdJPEG(b, src, 95)) })
	b.Run("jpegturned", func(b *testing.B) {
		benchCompress(b, withSegment(stdJPEG(b, src, 95), 0xe1, append([]byte(exifPrefix), exif(6)...)))
	})
	b.Run("png", func(b *testing.B) { benchCompress(b, stdPNG(b, src)) })
	b.Run("graphic", func(b *testing.B) {
		m := image.NewNRGBA(image.Rect(0, 0, 4000, 3000))
		for i := range m.Pix {
			m.Pix[i] = byte(i / 16000 / 40)
			if i%4 == 3 || i/4%4000/50%7 == 0 {
				m.Pix[i] = 255
			}
		}
		benchCompress(b, stdPNG(b, m))
	})
}

func BenchmarkFit(b *testing.B) {
	src := photo(4000, 3000, false)
	for name, data := range map[string][]byte{"jpeg": stdJPEG(b, src, 95), "png": stdPNG(b, src)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := fit(b, data, "", Limits{MaxSide: 1568, MaxBytes: 5 << 20}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

package pack

import (
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/mholt/archives"
)

// zstdWindow is the most memory that a zstd stream may ask for to look back.
const zstdWindow = 128 << 20

// decompress opens the stream in which format f wraps a tar.
func decompress(r io.Reader, f Format) (io.ReadCloser, error) {
	switch f {
	case TarGz:
		return gzip.NewReader(r)
	case TarBz2:
		return archives.Bz2{}.OpenReader(r)
	case TarXz:
		return archives.Xz{}.OpenReader(r)
	case TarZst:
		return archives.Zstd{DecoderOptions: []zstd.DOption{zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdWindow)}}.OpenReader(r)
	}
	return io.NopCloser(r), nil
}

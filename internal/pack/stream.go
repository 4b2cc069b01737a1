package pack

import (
	"io"

	"github.com/conduit-mcp/conduit-mcp/internal/codec"
)

// decompress opens the stream in which format f wraps a tar.
func decompress(r io.Reader, f Format) (io.ReadCloser, error) {
	switch f {
	case TarGz:
		return codec.Gzip(r)
	case TarBz2:
		return codec.Bzip2(r)
	case TarXz:
		return codec.Xz(r)
	case TarZst:
		return codec.Zstd(r)
	}
	return io.NopCloser(r), nil
}

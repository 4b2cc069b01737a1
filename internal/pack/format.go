// Package pack makes and opens archives: several files at a time, memory
// bounded whatever the size, nothing written outside the destination.
package pack

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/internal/zipfile"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// A Format is a kind of archive, by the name that callers use.
type Format string

// The formats that can be read. Zip and TarGz can be written.
const (
	Zip      Format = "zip"
	TarGz    Format = "tar.gz"
	Tar      Format = "tar"
	TarBz2   Format = "tar.bz2"
	TarXz    Format = "tar.xz"
	TarZst   Format = "tar.zst"
	SevenZip Format = "7z"
	Rar      Format = "rar"
)

// aliases are further names of formats.
var aliases = map[string]Format{"tgz": TarGz, "tbz2": TarBz2, "txz": TarXz, "tzst": TarZst}

// Formats lists the names of all formats that can be read, those that can be
// written first.
func Formats() []string {
	return []string{string(Zip), string(TarGz), "tgz", string(Tar), string(TarBz2), string(TarXz), string(TarZst), string(SevenZip), string(Rar)}
}

// ParseFormat reads the name of a format that can be read, in any case, with
// or without a dot in front: ERR_UNSUPPORTED_ARCHIVE_FORMAT.
func ParseFormat(name string) (Format, error) {
	s := strings.TrimPrefix(strings.ToLower(name), ".")
	if f, ok := aliases[s]; ok {
		return f, nil
	}
	if slices.Contains(Formats(), s) {
		return Format(s), nil
	}
	return "", fault.New(fault.ArchiveFormat, "%q is not an archive format that can be read; use one of %s", name, strings.Join(Formats(), ", "))
}

// ParseWritten is [ParseFormat] for formats that can be written.
func ParseWritten(name string) (Format, error) {
	if f, err := ParseFormat(name); err == nil && (f == Zip || f == TarGz) {
		return f, nil
	}
	return "", fault.New(fault.ArchiveFormat, "%q is not an archive format that can be written; use zip, tar.gz or tgz", name)
}

// magics are the first bytes of the formats that have such. Those that wrap a
// tar say nothing of what is inside.
var magics = []struct {
	prefix string
	format Format
}{
	{"PK\x03\x04", Zip},
	{"PK\x05\x06", Zip}, // empty
	{"PK\x07\x08", Zip}, // one part of several, or written as such
	{"7z\xbc\xaf\x27\x1c", SevenZip},
	{"Rar!\x1a\x07\x00", Rar},
	{"Rar!\x1a\x07\x01\x00", Rar},
	{"\x1f\x8b", TarGz},
	{"BZh", TarBz2},
	{"\xfd7zXZ\x00", TarXz},
	{"\x28\xb5\x2f\xfd", TarZst},
}

// foreign are first bytes of archives and compressed files that are not read.
var foreign = []struct{ prefix, name string }{
	{"!<arch>\n", "ar"},
	{"MSCF", "cab"},
	{"070701", "cpio"},
	{"070702", "cpio"},
	{"070707", "cpio"},
	{"xar!", "xar"},
	{"LZIP", "lzip"},
	{"\x04\x22\x4d\x18", "lz4"},
	{"\x1f\x9d", "compress (.Z)"},
	{"\x5d\x00\x00", "lzma"},
}

const tarBlock = 512

// Detect tells the format of an archive by its content; name counts only where
// the content leaves it open. A file that is compressed but holds no tar is no
// archive: ERR_UNSUPPORTED_ARCHIVE_FORMAT, as for archives of other kinds. What
// is not known at all is ERR_COULD_NOT_DETECT_ARCHIVE_FORMAT.
func Detect(r io.ReaderAt, size int64, name string) (Format, error) {
	head := make([]byte, min(size, tarBlock))
	if n, err := r.ReadAt(head, 0); n < len(head) {
		return "", fault.Hide(fault.ArchiveRead, err, "%s could not be read", name)
	}
	for _, m := range magics {
		if !bytes.HasPrefix(head, []byte(m.prefix)) {
			continue
		}
		if m.format.stream() && !holdsTar(r, size, m.format) && !m.format.named(name) {
			return "", fault.New(fault.ArchiveFormat, "%s is a single file, compressed; it holds no tar archive that could be unpacked", name)
		}
		return m.format, nil
	}
	if isTar(head) {
		return Tar, nil
	}
	for _, m := range foreign {
		if bytes.HasPrefix(head, []byte(m.prefix)) {
			return "", fault.New(fault.ArchiveFormat, "%s is an archive or compressed file of a kind that is not read here (%s); these are: %s", name, m.name, strings.Join(Formats(), ", "))
		}
	}
	if zipfile.Is(r, size) {
		return Zip, nil // behind something else, such as a program that unpacks it
	}
	return "", fault.New(fault.ArchiveDetect, "%s is not recognized as an archive; these are read: %s. If it is one of them, name it with format", name, strings.Join(Formats(), ", "))
}

// stream reports whether f is a tar in a compressed stream.
func (f Format) stream() bool {
	return f == TarGz || f == TarBz2 || f == TarXz || f == TarZst
}

// named reports whether a file name ends as archives of format f do.
func (f Format) named(name string) bool {
	base := strings.ToLower(path.Base(strings.ReplaceAll(name, `\`, "/")))
	if strings.HasSuffix(base, "."+string(f)) {
		return true
	}
	for alias, of := range aliases {
		if of == f && strings.HasSuffix(base, "."+alias) {
			return true
		}
	}
	return false
}

// holdsTar reports whether what is compressed in r begins like a tar.
func holdsTar(r io.ReaderAt, size int64, f Format) bool {
	s, err := decompress(io.NewSectionReader(r, 0, size), f)
	if err != nil {
		return false
	}
	defer s.Close()
	var block [tarBlock]byte
	_, err = io.ReadFull(s, block[:])
	return err == nil && isTar(block[:])
}

// isTar reports whether b begins with the header of a tar entry, or with the
// end of an empty tar.
func isTar(b []byte) bool {
	if len(b) < tarBlock {
		return false
	}
	if zero(b[:tarBlock]) {
		return true
	}
	_, err := tar.NewReader(bytes.NewReader(b)).Next()
	return err == nil || !errors.Is(err, tar.ErrHeader) // more would be needed
}

func zero(b []byte) bool { return len(bytes.TrimLeft(b, "\x00")) == 0 }

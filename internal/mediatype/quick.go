package mediatype

import (
	"bytes"
	"encoding/binary"
	"strings"
)

// octets is the type of content that is neither text nor a known format.
const octets = "application/octet-stream"

// quick returns what the library answers for head, which is not empty and at
// most HeadSize long, without parameters, wherever that follows from a few
// comparisons; where it does not, it returns "". The library asks some 200
// detectors in turn. Here each of them is either ruled out by bytes that it
// needs, or the answer is left to the library.
func quick(head []byte) string {
	if embedded(head) {
		return ""
	}
	if label := magic(head); label != "" {
		return label
	}
	for _, s := range starts[head[0]] {
		if has(head, s) {
			return ""
		}
	}
	switch head[0] | 0x20 {
	case 'b', 'c', 'd', 'm', 'r':
		for _, s := range startsFold {
			if hasFold(head, s) {
				return ""
			}
		}
	}
	if len(head) >= 8 && head[2] == '\r' && head[3] == '\n' && (head[1] < ' ' || (head[0]|head[1]) >= 0x80) {
		// Compiled Python: since 3.3 a version, CR LF and two flags.
		if (head[1] == 0x0d || head[1] == 0x0e) && binary.LittleEndian.Uint32(head[4:]) <= 3 {
			return "application/x-bytecode.python"
		}
		return ""
	}
	if audio(head) {
		return ""
	}
	if isText(head) {
		return text(head)
	}
	if head[0] == 'x' || head[0] == '<' { // zlib, FrameMaker
		return ""
	}
	return octets
}

// magic returns the type of the commonest binary formats, or "".
func magic(head []byte) string {
	switch head[0] {
	case 0x89:
		if has(head, "\x89PNG\r\n\x1a\n") && still(head[8:]) {
			return "image/png"
		}
	case 0xff:
		if has(head, "\xff\xd8\xff") {
			return "image/jpeg"
		}
	case 'G':
		if has(head, "GIF87a") || has(head, "GIF89a") {
			return "image/gif"
		}
	case 0x1f:
		if has(head, "\x1f\x8b") {
			return "application/gzip"
		}
	case 'T':
		if has(head, "TZif") && len(head) >= 44 && binary.BigEndian.Uint32(head[36:]) != 0 &&
			(head[4] == 0 || head[4] == '2' || head[4] == '3') {
			return "application/tzif"
		}
	case 0x7f:
		if has(head, "\x7fELF") {
			return elf(head)
		}
	}
	return ""
}

// still reports whether the chunks of a PNG file have no animation in them.
func still(chunks []byte) bool {
	for len(chunks) >= 8 && string(chunks[4:8]) != "IDAT" {
		size := int64(binary.BigEndian.Uint32(chunks))
		if string(chunks[4:8]) == "acTL" || size > 1<<31 {
			return false
		}
		chunks = chunks[min(size+12, int64(len(chunks))):]
	}
	return true
}

// elf names an ELF file by its kind, a 16-bit number of either byte order.
func elf(head []byte) string {
	if len(head) > 17 && (head[16] == 0 || head[17] == 0) {
		switch head[16] | head[17] {
		case 1:
			return "application/x-object"
		case 2:
			return "application/x-executable"
		case 3:
			return "application/x-sharedlib"
		case 4:
			return "application/x-coredump"
		}
	}
	return "application/x-elf"
}

// embedded reports whether head may be of a format whose mark is not at its
// very start.
func embedded(head []byte) bool {
	if bytes.Contains(head[:min(len(head), 1024)], []byte("%PDF-")) {
		return true
	}
	if len(head) < 12 {
		return false
	}
	switch string(head[4:8]) {
	case "jP  ", "jP2 ", // JPEG 2000
		"moov", "mdat", "free", "skip", "pnot", // QuickTime
		"Stan": // Microsoft Access: Standard Jet DB, Standard ACE DB
		return true
	}
	if len(head) < 20 {
		return false
	}
	if n := head[1] - 0x80; head[0] == '0' && n <= 4 && head[2+n] == 6 { // PKCS #7, n bytes of a length before its type
		return true
	}
	if len(head) < 24 {
		return false
	}
	switch string(head[20:24]) {
	case "GPAT", "GIMP", "4500": // GIMP, MARC
		return true
	}
	if len(head) >= 36 && head[34] == 'L' && head[35] == 'P' && head[9] == 0 { // Embedded OpenType
		return true
	}
	if len(head) < 68 {
		return false
	}
	return string(head[60:68]) == "BOOKMOBI" ||
		head[12]|head[13]|head[30]|head[31] == 0 && head[2] <= 12 && head[3] <= 31 && head[28] <= 1 || // dBASE
		len(head) >= 132 && string(head[128:132]) == "DICM" ||
		len(head) >= 512 && octal(head[148:156])
}

// octal reports whether b may be the checksum of a tar header.
func octal(b []byte) bool {
	b = bytes.Trim(b, " \x00")
	for _, c := range b {
		if c == 0 {
			break
		}
		if c < '0' || c > '7' {
			return false
		}
	}
	return len(b) > 0
}

// audio reports whether the header of an MPEG audio frame of layer III may be
// where the library searches for it.
func audio(head []byte) bool {
	for b := head[:min(len(head), 2052)]; ; {
		i := bytes.IndexByte(b, 0xff)
		if i < 0 || i+3 >= len(b) {
			return false
		}
		if b[i+1]&0xe6 == 0xe2 && b[i+2]>>4 != 0 && b[i+2]>>4 != 15 && b[i+2]>>2&3 != 3 && b[i+3]&3 != 2 {
			return true
		}
		b = b[i+1:]
	}
}

// isText reports whether head, which has no byte order mark, has none of the
// control bytes that the WHATWG's MIME Sniffing Standard calls binary.
func isText(head []byte) bool {
	if bytes.IndexByte(head[:min(len(head), 512)], 0) >= 0 || bytes.IndexByte(head, 0x0b) >= 0 {
		return false
	}
	good, b := uint64(0x80*ones), head
	for ; len(b) >= 32; b = b[32:] {
		good &= noControl(binary.LittleEndian.Uint64(b)) & noControl(binary.LittleEndian.Uint64(b[8:])) &
			noControl(binary.LittleEndian.Uint64(b[16:])) & noControl(binary.LittleEndian.Uint64(b[24:]))
	}
	if good != 0x80*ones {
		b = head // there may be ESC, which is allowed
	}
	for _, c := range b {
		if c < ' ' && (c < '\t' || c > '\r') && c != 0x1b {
			return false
		}
	}
	return true
}

const ones = 0x0101010101010101

// noControl sets the highest bit of each byte of x that is not below space, or
// is between tab and carriage return; the other bits mean nothing. No sum or
// difference carries into the next byte.
func noControl(x uint64) uint64 {
	low := x & (0x7f * ones)
	space, upToCR, tab := low+(0x80-' ')*ones, (0x80+'\r')*ones-low, low+(0x80-'\t')*ones
	return (space|upToCR)&tab | x
}

func has(head []byte, start string) bool {
	return len(head) >= len(start) && string(head[:len(start)]) == start
}

func hasFold(head []byte, start string) bool {
	return len(head) >= len(start) && strings.EqualFold(string(head[:len(start)]), start)
}

// starts has, by first byte, how the formats begin that are the library's to
// tell: binary ones, byte order marks, and texts that say what they are. A
// start may be shorter than what the library asks for; what matters is that
// none is missing. It is made of constants, which costs nothing when the
// program starts.
var starts = [256][]string{
	0x00: {"\x00"},
	0x02: {"\x02\t\x99"},
	0x03: {"\x03\t\x99"},
	0x1a: {"\x1aE\xdf\xa3"},
	' ':  {"  0\nSECTION", "  0\r\nSECTION"},
	'!':  {"!<arch>"},
	'"':  {"\"\xb5/\xfd"},
	'#':  {"#!AMR", "#EXTM3U", "#?RADIANCE", "#\xb5/\xfd"},
	'$':  {"$\xb5/\xfd"},
	'%':  {"%FDF", "%!PS-Adobe-", "%\xb5/\xfd"},
	'&':  {"&\xb5/\xfd"},
	'\'': {"'\xb5/\xfd"},
	'(':  {"(\xb5/\xfd"},
	'-':  {"-----BEGIN PKCS7"},
	'.':  {".snd", ".RMF"},
	'/':  {"/* XPM */"},
	'0':  {"0&\xb2", "0\nSECTION", "0\r\nSECTION", "07070"},
	'1':  {"1\n", "1\r\n"},
	'7':  {"7z\xbc\xaf"},
	'8':  {"8BPS"},
	'A':  {"AT&TFORM", "AC1", "AC2"},
	'B':  {"BZh", "BM", "BPG\xfb", "BUFR"},
	'C':  {"CWS", "Cr24", "Creative Voice", "Content-T"},
	'D':  {"Date: "},
	'F':  {"FWS", "FLV", "FORM", "From: ", "Forward to"},
	'G':  {"GRIB"},
	'H':  {"HSP"},
	'I':  {"II", "ID3", "ISc(", "ITSF", "ITOLITLS"},
	'L':  {"L\x00", "LZIP"},
	'M':  {"MM\x00*", "MZ", "MThd", "MAC ", "MPCK", "MSCF", "M<\xb2"},
	'N':  {"NES\x1a", "N#! rnews"},
	'O':  {"OggS", "OTTO"},
	'P':  {"PK", "PAR1", "P1\n", "P2\n", "P3\n", "P4\n", "P5\n", "P6\n", "P7\n", "P*M\x18", "Pipe to"},
	'Q':  {"Q*M\x18"},
	'R':  {"Rar!", "RIFF", "R*M\x18", "Received: ", "Relay-Version: "},
	'S':  {"SQLite f", "SIMPLE", "S*M\x18", "Subject: "},
	'T':  {"T*M\x18", "To: "},
	'U':  {"U*M\x18"},
	'V':  {"V*M\x18"},
	'W':  {"W*M\x18", "WARC/1.", "WEBVTT"},
	'X':  {"X*M\x18"},
	'Y':  {"Y*M\x18"},
	'Z':  {"ZWS", "Z*M\x18"},
	'[':  {"[*M\x18"},
	'\\': {"\\*M\x18"},
	']':  {"]*M\x18"},
	'^':  {"^*M\x18"},
	'_':  {"_*M\x18"},
	'd':  {"drpm", "d8:announce"},
	'f':  {"fLaC"},
	'g':  {"gimp xcf", "glTF"},
	'i':  {"icns"},
	't':  {"ttcf"},
	'w':  {"wOFF", "wOF2"},
	'x':  {"xar!"},
	'{':  {`{\rtf`},
	0x89: {"\x89PNG"},
	0xa1: {"\xa1\xb2"},
	0xc7: {"\xc7\x71"},
	0xca: {"\xca\xfe\xba\xbe"},
	0xce: {"\xce\xfa\xed\xfe"},
	0xcf: {"\xcf\xfa\xed\xfe"},
	0xd0: {"\xd0\xcf\x11\xe0"},
	0xd4: {"\xd4\xc3\xb2\xa1"},
	0xd9: {"\xd9\xd9\xf7"},
	0xe4: {"\xe4\x52\x5c\x7b"},
	0xed: {"\xed\xab\xee\xdb"},
	0xef: {"\xef\xbb\xbf"},
	0xfd: {"\xfd7zXZ"},
	0xfe: {"\xfe\xed\xfa", "\xfe\xff"},
	0xff: {"\xff"},
}

// startsFold are starts in which the case of letters does not matter.
var startsFold = [...]string{"BEGIN:V", "CC: ", "Delivered-To: ", "Message-ID: ", "Return-Path: "}

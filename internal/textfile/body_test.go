package textfile_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/conduit-mcp/conduit-mcp/internal/longtest"
	"github.com/conduit-mcp/conduit-mcp/internal/textfile"
	"github.com/conduit-mcp/conduit-mcp/registry"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

var (
	_ registry.Body = (*textfile.Body)(nil)
	_ registry.Body = (*textfile.Base64)(nil)
)

// quoted is s in so many layers of JSON strings, without the outer quotes.
func quoted(t *testing.T, s string, layers int) string {
	t.Helper()
	for range layers {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(s); err != nil {
			t.Fatal(err)
		}
		s = strings.TrimSuffix(b.String(), "\n")
	}
	// Each layer but the first stands in the quotes of the one before.
	return s[1 : len(s)-1]
}

func TestSettledSizesAreThoseOfTheText(t *testing.T) {
	tricky := "quote \" slash \\ tab\t nul \x00 <&> \u2028\u2029 \x7f\n"
	all := samples()
	all["tricky"] = tricky
	all["large and tricky"] = strings.Repeat(tricky+"日😀", 40_000)
	all["large and broken"] = strings.Repeat("\xe6\x97a", 300_001)
	for name, data := range all {
		for _, number := range []int64{0, 9} {
			text := open(t, data)
			p, err := text.Bytes(int64(len(data)/7), -1)
			if err != nil {
				t.Fatal(err)
			}
			want, wantLossy, err := text.String(t.Context(), p, number)
			if err != nil {
				t.Fatal(err)
			}
			b, err := text.Settle(t.Context(), p, number)
			if err != nil {
				t.Fatal(err)
			}
			if b.Size() != int64(len(want)) || b.Lossy() != wantLossy {
				t.Errorf("%s: Size %d, lossy %t; want %d, %t", name, b.Size(), b.Lossy(), len(want), wantLossy)
			}
			inner := len(quoted(t, want, 1))
			outer := len(quoted(t, want, 2)) - len(quoted(t, "", 2)) // without the inner quotes
			if b.EscapedSize(1) != int64(inner) || b.EscapedSize(2) != int64(outer) {
				t.Errorf("%s: EscapedSize %d and %d, want %d and %d", name, b.EscapedSize(1), b.EscapedSize(2), inner, outer)
			}
			for range 2 { // a text that stands in two places is written twice
				var got strings.Builder
				if n, err := b.WriteTo(&got); err != nil || n != b.Size() || got.String() != want {
					t.Errorf("%s: wrote %d bytes of %d, %v", name, n, b.Size(), err)
				}
			}
		}
	}
}

func TestSHA256OnlyOfTheWholeFile(t *testing.T) {
	data := "\ufeffcaf\xe9\n" + strings.Repeat("日本", 100_000)
	text := open(t, data)
	whole, err := text.Settle(t.Context(), textfile.Part{To: text.Size()}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if want := sha256.Sum256([]byte(data)); !bytes.Equal(whole.SHA256(), want[:]) {
		t.Errorf("SHA256 = %x, want %x, of the file's bytes", whole.SHA256(), want)
	}
	part, err := text.Settle(t.Context(), textfile.Part{From: 3, To: text.Size()}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if part.SHA256() != nil {
		t.Errorf("a part has SHA256 %x", part.SHA256())
	}
}

// settled returns a Body over a real file that then gets other content.
func settled(t *testing.T, before, after string) *textfile.Body {
	t.Helper()
	name := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(name, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	text, err := textfile.New(f, int64(len(before)), "notes.txt")
	if err != nil {
		t.Fatal(err)
	}
	b, err := text.Settle(t.Context(), textfile.Part{To: text.Size()}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(after), 0o600); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestFileThatChangesUnderWay(t *testing.T) {
	long := strings.Repeat("0123456789\n", 100_000)
	broken := strings.Repeat("\xff", len(long))
	for _, c := range []struct {
		what, before, after string
		fails               bool
	}{
		{"shorter", long, long[:700_000], true},
		{"empty", long, "", true},
		{"of the same length, more bytes when decoded", long, broken, true},
		{"of the same length, fewer bytes when decoded", broken, long, true},
		{"longer: what was appended is left out", long, long + "more", false},
		{"other text of the same length", long, strings.ToUpper(strings.ReplaceAll(long, "0", "x")), false},
	} {
		b := settled(t, c.before, c.after)
		var got bytes.Buffer
		n, err := b.WriteTo(&got)
		if n != int64(got.Len()) || n > b.Size() || !utf8.Valid(got.Bytes()) {
			t.Errorf("%s: WriteTo says %d, wrote %d of %d bytes, valid %t", c.what, n, got.Len(), b.Size(), utf8.Valid(got.Bytes()))
		}
		if code, _ := fault.Of(err); (err != nil) != c.fails || c.fails && code != fault.FSReadFailed {
			t.Errorf("%s: %v, want failure %t", c.what, err, c.fails)
		}
		if err == nil && n != b.Size() {
			t.Errorf("%s: %d bytes of %d without an error", c.what, n, b.Size())
		}
	}
}

// A closed pipe refuses everything.
func TestWritersErrorIsKept(t *testing.T) {
	gone := errors.New("gone")
	r, w := io.Pipe()
	r.CloseWithError(gone)
	data := strings.Repeat("a", 400_000)
	b, err := open(t, data).Settle(t.Context(), textfile.Part{To: 400_000}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.WriteTo(w); !errors.Is(err, gone) {
		t.Errorf("text: %v, want that of the writer", err)
	}
	if _, err := textfile.NewBase64(strings.NewReader(data), 0, 400_000, "f").WriteTo(w); !errors.Is(err, gone) {
		t.Errorf("base64: %v, want that of the writer", err)
	}
}

func TestBase64(t *testing.T) {
	data := make([]byte, 800_000)
	for i := range data {
		data[i] = byte(i * i >> 7)
	}
	for _, c := range [][2]int64{{0, 0}, {0, 1}, {5, 7}, {1, 4}, {0, 800_000}, {3, 262_144}, {799_999, 800_000}} {
		b := textfile.NewBase64(bytes.NewReader(data), c[0], c[1], "f")
		want := base64.StdEncoding.EncodeToString(data[c[0]:c[1]])
		if b.Size() != int64(len(want)) || b.EscapedSize(2) != b.Size() {
			t.Errorf("%v: sizes %d and %d, want %d", c, b.Size(), b.EscapedSize(2), len(want))
		}
		for range 2 {
			var got strings.Builder
			if n, err := b.WriteTo(&got); err != nil || n != b.Size() || got.String() != want {
				t.Errorf("%v: wrote %d bytes, %v", c, n, err)
			}
		}
	}
	short := textfile.NewBase64(bytes.NewReader(data[:300_000]), 0, 800_000, "f")
	n, err := short.WriteTo(io.Discard)
	if code, _ := fault.Of(err); code != fault.FSReadFailed || n >= short.Size() {
		t.Errorf("a file that shrank: %d bytes, %v", n, err)
	}
}

func TestCloseClosesTheFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for what, body := range map[string]func(*os.File) io.Closer{
		"base64": func(f *os.File) io.Closer { return textfile.NewBase64(f, 0, 4, "f") },
		"text": func(f *os.File) io.Closer {
			text, err := textfile.New(f, 4, "f")
			if err != nil {
				t.Fatal(err)
			}
			b, err := text.Settle(t.Context(), textfile.Part{To: 4}, 0)
			if err != nil {
				t.Fatal(err)
			}
			return b
		},
		"memory": nil,
	} {
		if body == nil {
			if err := textfile.NewBase64(strings.NewReader("text"), 0, 4, "f").Close(); err != nil {
				t.Errorf("%s: Close: %v", what, err)
			}
			continue
		}
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := body(f).Close(); err != nil {
			t.Errorf("%s: Close: %v", what, err)
		}
		if _, err := f.Stat(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s: the file is still open (%v)", what, err)
		}
	}
}

// big returns an open file of size bytes of text.
func big(t testing.TB, size int) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "big.txt"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	block := bytes.Repeat([]byte("func name(a int) string { return \"übung\" }\n"), 1<<14)
	for n := 0; n < size; n += len(block) {
		if _, err := f.Write(block[:min(len(block), size-n)]); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func TestMemoryDoesNotGrowWithTheFile(t *testing.T) {
	const allowed = 8 << 20
	size := int64(longtest.Count(20, 50)) << 20
	f := big(t, int(size))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	text, err := textfile.New(f, size, "big.txt")
	if err != nil {
		t.Fatal(err)
	}
	b, err := text.Settle(t.Context(), textfile.Part{To: size}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.WriteTo(io.Discard); err != nil {
		t.Fatal(err)
	}
	if _, err := textfile.NewBase64(f, 0, size, "big.txt").WriteTo(io.Discard); err != nil {
		t.Fatal(err)
	}
	if _, err := text.Lines(t.Context(), 900_000, -2); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	// Everything ever allocated, not what is left: the peak cannot be more.
	if n := after.TotalAlloc - before.TotalAlloc; n > allowed {
		t.Errorf("%d bytes were allocated for a file of %d, want at most %d", n, size, allowed)
	}
}

func BenchmarkReadText50MB(b *testing.B) {
	const size = 50 << 20
	text, err := textfile.New(big(b, size), size, "big.txt")
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(size)
	b.ReportAllocs()
	b.Run("settle", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			if _, err := text.Settle(b.Context(), textfile.Part{To: size}, 0); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("write", func(b *testing.B) {
		b.SetBytes(size)
		body, err := text.Settle(b.Context(), textfile.Part{To: size}, 0)
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if _, err := body.WriteTo(io.Discard); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("last lines", func(b *testing.B) {
		for b.Loop() {
			if _, err := text.Lines(b.Context(), -100, 0); err != nil {
				b.Fatal(err)
			}
		}
	})
}

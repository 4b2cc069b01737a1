package zipfile

import (
	"archive/zip"
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// sample is a zip behind something else.
func sample(t testing.TB) []byte {
	t.Helper()
	var out bytes.Buffer
	out.WriteString("#!/bin/sh\n")
	z := zip.NewWriter(&out)
	z.SetOffset(int64(out.Len()))
	for i := range 4 {
		w, err := z.CreateHeader(&zip.FileHeader{Name: fmt.Sprintf("f%d", i), Method: zip.Deflate, Comment: "c", Extra: []byte{0xfe, 0xca, 2, 0, 1, 2}})
		must(t, err)
		_, err = w.Write(bytes.Repeat([]byte{byte(i)}, 1000*i))
		must(t, err)
	}
	must(t, z.Close())
	return out.Bytes()
}

// Records take places and sizes of any width, and give them back.
func TestRecordsOfAnyWidth(t *testing.T) {
	raw := sample(t)
	d, err := Read(bytes.NewReader(raw), int64(len(raw)), 4)
	must(t, err)
	const wide = math.MaxUint32 + 5
	for i := range d.Entries {
		e := &d.Entries[i]
		for _, at := range []int64{7, math.MaxUint32 - 1, math.MaxUint32, wide} {
			for _, size := range []int64{e.Size, wide} {
				for _, csize := range []int64{e.Compressed, wide + 1} {
					got := Entry{rec: located(e.rec, size, csize, at)}
					must(t, got.parse(0))
					if got.Begin != at || got.Size != size || got.Compressed != csize || got.Name != e.Name || string(got.Comment()) != string(e.Comment()) {
						t.Errorf("%s: at %d, %d of %d, want %d, %d of %d", got.Name, got.Begin, got.Compressed, got.Size, at, csize, size)
					}
					back := Entry{rec: moved(&got, e.Begin-d.base)}
					if err := back.parse(d.base); err != nil || back.Begin != e.Begin {
						t.Errorf("%s: back at %d, %v", back.Name, back.Begin, err)
					}
				}
			}
		}
	}
}

// Nothing changed makes the same bytes, and at most as many entries are read as
// were asked for.
func TestVerbatim(t *testing.T) {
	raw := sample(t)
	path := filepath.Join(t.TempDir(), "a.zip")
	must(t, os.WriteFile(path, raw, 0o600))
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	if _, err := Read(f, int64(len(raw)), 3); err != ErrTooMany {
		t.Errorf("%v, want ErrTooMany", err)
	}
	d, err := Read(f, int64(len(raw)), 4)
	must(t, err)
	var items []Item
	for i := range d.Entries {
		items = append(items, Item{Old: &d.Entries[i], Verbatim: &d.Entries[i]})
	}
	to, err := os.Create(path + ".new")
	must(t, err)
	defer to.Close()
	r := Rewriter{From: f, Present: d, Comment: d.Comment, To: to}
	size, err := r.Write(t.Context(), items)
	must(t, err)
	have, err := os.ReadFile(path + ".new")
	must(t, err)
	if !bytes.Equal(have, raw) || size != int64(len(raw)) {
		t.Errorf("%d bytes, want the %d as they were", len(have), len(raw))
	}
	r.To = Discard
	if size, err := r.Write(t.Context(), items); err != nil || size != int64(len(raw)) {
		t.Errorf("counted %d, %v", size, err)
	}
}

package walk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// What the system tells is what package os tells, of every kind of entry and of
// more than fit into one answer.
func TestReadDirAgreesWithOS(t *testing.T) {
	dir := t.TempDir()
	for i := range 3000 {
		must(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%05d-%s", i, strings.Repeat("n", i%200))), nil, 0o600))
	}
	must(t, os.Mkdir(filepath.Join(dir, "dir"), 0o700))
	must(t, os.Symlink("nowhere", filepath.Join(dir, "link")))
	must(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "not\xffutf8"), nil, 0o600))
	f, err := os.Open(dir)
	must(t, err)
	defer f.Close()
	got, err := readDir(t.Context(), int(f.Fd()))
	must(t, err)
	slices.SortFunc(got, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	read, err := os.ReadDir(dir)
	must(t, err)
	var want []Entry
	for _, e := range read {
		want = append(want, Entry{e.Name(), e.Type()})
		if kind, err := typeOf(int(f.Fd()), e.Name()); err != nil || kind != e.Type() {
			t.Errorf("%s is %v, %v; want %v", e.Name(), kind, err, e.Type())
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d entries, want %d", len(got), len(want))
	}
	if _, err := readDir(t.Context(), int(must1(os.Open("/dev/null")).Fd())); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("of a file: %v", err)
	}
}

func must1(f *os.File, err error) *os.File {
	if err != nil {
		panic(err)
	}
	return f
}

func record(kind byte, name string) []byte {
	b := make([]byte, (nameAt+len(name)+1+7)&^7)
	binary.NativeEndian.PutUint16(b[lengthAt:], uint16(len(b)))
	b[typeAt] = kind
	copy(b[nameAt:], name)
	return b
}

func TestEntriesOfUnknownType(t *testing.T) {
	b := slices.Concat(record(unix.DT_DIR, "."), record(unix.DT_UNKNOWN, "a"), record(unix.DT_UNKNOWN, "gone"), record(unix.DT_REG, "b"))
	lookup := func(name string) (fs.FileMode, error) {
		if name == "gone" {
			return 0, unix.ENOENT
		}
		return fs.ModeDir, nil
	}
	list, err := appendEntries(nil, string(b), lookup)
	if err != nil || !slices.Equal(list, []Entry{{"a", fs.ModeDir}, {"b", 0}}) {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := appendEntries(nil, string(b), func(string) (fs.FileMode, error) { return 0, unix.EACCES }); !errors.Is(err, unix.EACCES) {
		t.Errorf("err = %v", err)
	}
	if list, err := appendEntries(nil, string(b[:len(b)-3]), lookup); err != nil || len(list) != 1 {
		t.Errorf("cut short: %v, %v", list, err)
	}
}

package zipws

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
)

// backupName is the nth backup of the archive called base: a.bak.zip,
// a.bak.2.zip, a.bak.3.zip.
func backupName(base string, n int) string {
	ext := filepath.Ext(base)
	stem := strings.TrimSuffix(base, ext)
	if stem == "" {
		stem, ext = base, ""
	}
	if n == 1 {
		return stem + ".bak" + ext
	}
	return fmt.Sprintf("%s.bak.%d%s", stem, n, ext)
}

// rotate makes room for a backup. Where one is missing, those after it stay.
func (w *syncRun) rotate() error {
	last := 1
	for ; last < backups; last++ {
		if _, err := w.dir.Lstat(backupName(w.base, last)); errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	for n := last; n > 1; n-- {
		w.m.step("rotate backup")
		err := w.dir.Rename(backupName(w.base, n-1), backupName(w.base, n))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// backUp gives the archive a second name, or makes a copy of it where the file
// system has no such thing.
func (w *syncRun) backUp() error {
	name := backupName(w.base, 1)
	w.m.step("back up")
	if !w.m.unlinked {
		if err := w.dir.Link(w.base, name); err == nil || errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	temp := w.Sync.Temps[1]
	f, err := w.dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	w.m.step("copy backup")
	if _, err := w.archive.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if _, err := io.Copy(f, w.archive); err != nil {
		return err
	}
	atomicfile.CopyOwner(f, w.archive)
	if err := f.Chmod(w.was.Mode().Perm()); err != nil && runtime.GOOS != "windows" {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	w.dir.Chtimes(temp, w.was.ModTime(), w.was.ModTime())
	w.m.step("place backup")
	return w.dir.Rename(temp, name)
}

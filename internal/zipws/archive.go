package zipws

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"runtime"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/conduit-mcp/conduit-mcp/internal/codec"
	"github.com/conduit-mcp/conduit-mcp/internal/entryname"
	"github.com/conduit-mcp/conduit-mcp/internal/parallel"
	"github.com/conduit-mcp/conduit-mcp/internal/zipfile"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
)

// readDirectory reads the directory of a zip of which no two entries overlap.
func readDirectory(r io.ReaderAt, size int64) (*zipfile.Directory, error) {
	d, err := zipfile.Read(r, size, math.MaxInt)
	if err != nil {
		return nil, err
	}
	if e, _ := d.Overlap(); e != nil {
		return nil, fault.New(ZipInvalid, "the entry %s overlaps what follows it, as in archives made to fill disks, or the archive is damaged", entryname.Shown(e.Name))
	}
	return d, nil
}

// check judges the entries before anything is unpacked. What is merely odd is
// told in warnings. said is what bounds the size.
func check(d *zipfile.Directory, s Settings, said string) (warnings []string, err error) {
	if int64(len(d.Entries)) > s.MaxFiles {
		return nil, fault.New(ZipBomb, "the archive has %d entries, more than CONDUIT_ZIP_MAX_FILE_COUNT (%d)", len(d.Entries), s.MaxFiles)
	}
	var total int64
	kinds := make(map[string]bool, len(d.Entries)) // whether it is a directory
	folded := make(map[string]string, len(d.Entries))
	links, twice, backslashes := 0, 0, 0
	for i := range d.Entries {
		e := &d.Entries[i]
		bad := func(why string) error {
			code := ZipInvalid
			if entryname.Escapes(e.Name) {
				code = PathTraversal
			}
			return fault.New(code, "the archive has an entry whose name %s: %q; nothing was unpacked", why, entryname.Shown(string(e.RawName())))
		}
		if e.Name == "" && e.IsDir() {
			continue // the top itself
		}
		if why := entryname.Bad(e.Name); why != "" {
			return nil, bad(why)
		}
		if bytes.IndexByte(e.RawName(), '\\') >= 0 {
			backslashes++
		}
		switch {
		case e.Flags&zipfile.FlagEncrypted != 0:
			return nil, fault.New(Encrypted, "%s is encrypted, and encrypted archives are not opened; decrypt the archive first", entryname.Shown(e.Name))
		case e.Mode&fs.ModeIrregular != 0:
			return nil, fault.New(ZipInvalid, "the archive has a device, FIFO or socket: %s; nothing was unpacked", entryname.Shown(e.Name))
		case e.Size >= ratioFrom && e.Size/maxRatio > e.Compressed:
			return nil, fault.New(ZipBomb, "%s unpacks to %d bytes from %d, more than %d times as much, as in archives made to fill disks", entryname.Shown(e.Name), e.Size, e.Compressed, maxRatio)
		case e.Hidden:
			twice++
			continue
		case e.IsLink():
			links++
		}
		if total += e.Size; total > s.MaxSize {
			return nil, fault.New(ZipBomb, "the archive unpacks to more than %s (%d bytes)", said, s.MaxSize)
		}
		kinds[e.Name] = e.IsDir()
		fold := strings.ToLower(norm.NFC.String(e.Name))
		if other, ok := folded[fold]; ok && len(warnings) < 20 {
			warnings = append(warnings, "The names "+entryname.Shown(other)+" and "+entryname.Shown(e.Name)+" are one on systems that ignore case or normalize Unicode.")
		}
		folded[fold] = e.Name
	}
	for name := range kinds {
		for i := strings.LastIndexByte(name, '/'); i > 0; i = strings.LastIndexByte(name[:i], '/') {
			if dir, ok := kinds[name[:i]]; ok && !dir {
				return nil, fault.New(ZipInvalid, "the archive has the entry %s inside %s, which is no directory in it; nothing was unpacked", entryname.Shown(name), entryname.Shown(name[:i]))
			}
		}
	}
	if backslashes > 0 {
		warnings = append(warnings, plural(backslashes, "name has a backslash", "names have backslashes")+", which stand for slashes in the workspace.")
	}
	if twice > 0 {
		warnings = append(warnings, plural(twice, "entry has", "entries have")+" the name of a later one, which counts.")
	}
	if links > 0 && !s.Links {
		warnings = append(warnings, plural(links, "symbolic link is", "symbolic links are")+" left out of the workspace and kept in the archive (CONDUIT_ZIP_ALLOW_SYMLINKS).")
	}
	return warnings, nil
}

// invalid is why the file at path is no zip that can be opened.
func invalid(path string, err error) error {
	if coded := new(fault.Error); errors.As(err, &coded) {
		return err
	}
	return fault.Hide(ZipInvalid, err, "%s is not a valid zip archive; it is damaged or truncated", path)
}

// intact reads all of the archive f; the error says that something in it is not
// what its directory d says.
func intact(ctx context.Context, d *zipfile.Directory, f io.ReaderAt) error {
	work := make(chan *zipfile.Entry, len(d.Entries))
	for i := range d.Entries {
		work <- &d.Entries[i]
	}
	close(work)
	group, ctx := parallel.WithContext(ctx)
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() error {
			buf := make([]byte, 256<<10)
			for e := range work {
				if err := ctx.Err(); err != nil {
					return err
				}
				c, err := e.Open(f)
				if code, _ := Of(err); code == UnsupportedFormat {
					continue
				}
				if err != nil {
					return err
				}
				_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, codec.WithContext(ctx, c), buf)
				c.Close()
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

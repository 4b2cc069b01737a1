package patch

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/conduit-mcp/conduit-mcp/internal/atomicfile"
	"github.com/conduit-mcp/conduit-mcp/internal/etag"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// A node is a path that the patch mentions.
type node struct {
	at      place.Place
	link    bool        // the name is a symbolic link to it
	was, is version     // before, and as far as the plan has come
	info    fs.FileInfo // before; nil where there was nothing
	leaves  bool        // some step deletes it or renames it
	made    bool        // a step has put it there
	x       *bool       // whether it becomes executable; nil leaves that
	tag     string      // etag before, where it was needed
	now     string      // etag after
	steps   []*Step
	failed  bool // a step that mentions it has
}

// A version is a file at some time. Its text is that of before the patch until
// a step changes it, and then read only where it is needed.
type version struct {
	exists bool
	text   *string // nil while it is not read
	of     *node   // the file that it came from; nil for a new one
}

// Lock keeps others from the files that a patch names until unlock is called; see
// [atomicfile.Writer.Lock]. Names that cannot be used are left to [NewPlan].
func Lock(ctx context.Context, w *atomicfile.Writer, files []*File, base place.Place) (held context.Context, unlock func(), err error) {
	p := &Plan{o: Options{Base: base}}
	var places []place.Place
	for _, f := range files {
		for _, name := range []string{f.Old, f.New} {
			if at, err := p.place(name); err == nil {
				places = append(places, at)
			}
		}
	}
	return w.Lock(ctx, places...)
}

// node returns the node that name leads to.
func (p *Plan) node(name string, s *Step) (*node, error) {
	at, err := p.place(name)
	if err != nil {
		return nil, err
	}
	n := p.nodes[at.Abs]
	if n == nil {
		entry, err := at.Entry()
		if err != nil {
			return nil, err
		}
		n = &node{at: at, link: entry.Abs != at.Abs}
		fi, err := at.Stat()
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		case fi.IsDir():
			return nil, fault.New(fault.FSIsDirectory, "%s is a directory; a patch changes files", name)
		default:
			if err := place.Ordinary(at.Abs, fi.Mode()); err != nil {
				return nil, err
			}
			n.info, n.was = fi, version{exists: true, of: n}
			n.is = n.was
		}
		p.nodes[at.Abs] = n
		p.order = append(p.order, n)
	}
	n.steps = append(n.steps, s)
	return n, nil
}

// place resolves a name of the patch, which is not a parameter that the path
// guard has seen.
func (p *Plan) place(name string) (place.Place, error) {
	local := filepath.FromSlash(name)
	switch {
	case !filepath.IsLocal(local) || filepath.Clean(local) == ".":
		return place.Place{}, fault.New(fault.FSBadPathInput, "the patch names %q; names are relative to base_path, without \"..\" and not absolute", fault.ClipTo(name, repeated))
	case inGit(local):
		return place.Place{}, fault.New(fault.FSAccessDenied, "%s lies in the .git directory, which patches do not change", name)
	}
	at, err := p.o.Base.Guard.Resolve(filepath.Join(p.o.Base.Abs, local))
	if err != nil {
		return at, err
	}
	if below, err := filepath.Rel(p.o.Base.Abs, at.Abs); err != nil || inGit(below) {
		return place.Place{}, fault.New(fault.FSAccessDenied, "%s leads into a .git directory, which patches do not change", name)
	}
	return at, nil
}

// inGit reports whether an element of a path is, or may be for some file
// system, that of git's own directory.
func inGit(path string) bool {
	for e := range strings.FieldsFuncSeq(path, func(c rune) bool { return c == '/' || c == '\\' }) {
		e, _, _ = strings.Cut(e, ":") // streams of NTFS
		e = strings.Map(func(r rune) rune {
			switch {
			case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
				return -1 // ignored in names by HFS+
			}
			return r
		}, strings.TrimRight(e, " ."))
		if strings.EqualFold(e, ".git") || strings.EqualFold(e, "git~1") {
			return true
		}
	}
	return false
}

// text reads v where it is not read yet.
func (p *Plan) text(ctx context.Context, v *version) (string, error) {
	if v.text == nil {
		if v.of.was.text == nil {
			text, err := p.load(ctx, v.of)
			if err != nil {
				return "", err
			}
			v.of.was.text = &text
		}
		v.text = v.of.was.text
	}
	return *v.text, nil
}

// load reads the file of n.
func (p *Plan) load(ctx context.Context, n *node) (string, error) {
	f, fi, err := n.at.OpenFileOnly()
	if err != nil {
		return "", err
	}
	defer f.Close()
	if fi.Size() > p.o.MaxBytes {
		return "", fault.New(fault.LimitExceeded, "%s has %d bytes; a file to be patched may have at most %d (CONDUIT_MAX_FILE_READ_BYTES)", n.at.Abs, fi.Size(), p.o.MaxBytes)
	}
	var b strings.Builder
	b.Grow(int(fi.Size()))
	size, err := io.Copy(&b, io.LimitReader(f, p.o.MaxBytes+1))
	if err != nil {
		return "", fault.Hide(fault.FSReadFailed, err, "%s could not be read to its end", n.at.Abs)
	}
	if p.read += size; size > p.o.MaxBytes || p.read > filesAtOnce*p.o.MaxBytes {
		return "", fault.New(fault.LimitExceeded, "the files of the patch have more than %d bytes together (%d times CONDUIT_MAX_FILE_READ_BYTES); patch them in several calls", filesAtOnce*p.o.MaxBytes, filesAtOnce)
	}
	return b.String(), ctx.Err()
}

// filesAtOnce is how many files of the largest size a patch may change.
const filesAtOnce = 4

// match refuses a file that has not the etag asked for.
func (p *Plan) match(ctx context.Context, n *node) error {
	have, err := p.etag(ctx, n)
	if err == nil && have != p.o.IfMatch {
		return fault.New(fault.PreconditionFailed, "%s has changed: its etag is %s, not the if_match given; read it again before patching", n.at.Abs, have)
	}
	return err
}

// etag is that of the file as it was.
func (p *Plan) etag(ctx context.Context, n *node) (string, error) {
	if n.tag == "" {
		text, err := p.text(ctx, &n.was)
		if err != nil {
			return "", err
		}
		if n.tag, err = tagOf(ctx, text); err != nil {
			return "", err
		}
	}
	return n.tag, nil
}

func tagOf(ctx context.Context, text string) (string, error) {
	sum, err := etag.Sum(ctx, strings.NewReader(text))
	if err != nil {
		return "", err
	}
	return etag.Of(sum), nil
}

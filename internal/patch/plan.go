package patch

import (
	"context"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/conduit-mcp/conduit-mcp/internal/filetree"
	"github.com/conduit-mcp/conduit-mcp/internal/panics"
	"github.com/conduit-mcp/conduit-mcp/internal/textedit"
	"github.com/conduit-mcp/conduit-mcp/registry/fault"
	"github.com/conduit-mcp/conduit-mcp/registry/place"
)

// Options say how a patch is carried out.
type Options struct {
	Base     place.Place // directory that the names of the patch are relative to
	MaxBytes int64       // of the largest file, and of a fourth of all together
	IfMatch  string      // where not empty, the etag that the one file of the patch must have
	Together bool        // all files or none
}

// A Step is one file of a patch being carried out.
type Step struct {
	*File
	Keep    filetree.Keeper // where not nil, keeps what is destroyed
	Notes   []string        // sentences on what a reader should know
	Diff    string          // what was really changed, fit for git apply
	Added   int             // lines
	Removed int
	ETag    string // of the resulting file; empty where it was not read
	Err     error  // why the file is left as it was

	at, from *node // the file that results or is deleted; and that it is made of
	moved    bool
}

// A Plan is a patch whose hunks have found their places, before anything is
// written.
type Plan struct {
	Steps []*Step // one for each file of the patch, in its order

	o     Options
	nodes map[string]*node
	order []*node // as the patch mentions them
	read  int64   // bytes of files held
	seen  int64   // bytes gone through for hunks
}

// NewPlan finds out what files comes to below o.Base. What fails for a file is
// in its Step, with the code of its cause: ERR_PRECONDITION_FAILED where the
// content is not what the patch expects, ERR_FS_NOT_FOUND,
// ERR_FS_ALREADY_EXISTS and so on. The steps for one file, and those that a
// rename joins, succeed or fail together. The error is that of the whole call.
func NewPlan(ctx context.Context, files []*File, o Options) (*Plan, error) {
	fi, err := o.Base.Stat()
	if err != nil {
		return nil, err
	}
	if !fi.IsDir() {
		return nil, fault.New(fault.FSIsFile, "%s is a file; base_path is the directory that the names in the patch are relative to", o.Base.Abs)
	}
	if o.IfMatch != "" && len(files) != 1 {
		return nil, fault.New(fault.InvalidParameter, "if_match is the etag of one file, but the patch changes %d; leave it out, or give each file's patch in a call of its own", len(files))
	}
	p := &Plan{o: o, nodes: map[string]*node{}}
	for _, f := range files {
		s := &Step{File: f, Notes: f.Notes}
		p.Steps = append(p.Steps, s)
		s.Err = p.open(s)
	}
	for _, s := range p.Steps {
		if s.Err == nil {
			s.Err = panics.Try(func() error { return p.work(ctx, s) })
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	if err := p.settle(ctx); err != nil {
		return nil, err
	}
	p.spread()
	return p, nil
}

// open finds the nodes of a step.
func (p *Plan) open(s *Step) (err error) {
	if s.Binary {
		return fault.New(fault.InvalidParameter, "%s: the patch is binary; only changes of text lines can be applied", s.Name())
	}
	for _, mode := range []uint32{s.OldMode, s.NewMode} {
		if mode != 0 && mode&0o170000 != 0o100000 {
			return fault.New(fault.InvalidParameter, "%s: the patch is about a symbolic link or submodule (mode %06o); only regular files can be patched", s.Name(), mode)
		}
	}
	if s.Action == Create && slices.ContainsFunc(s.Hunks, func(h *Hunk) bool { return len(h.side('+')) > 0 }) {
		return fault.New(fault.InvalidParameter, "%s: the patch creates the file, yet has lines of it that exist (with a space or -); begin each with +, or name the old file after ---", s.Name())
	}
	if s.at, err = p.node(s.Name(), s); err != nil {
		return err
	}
	if s.Action == Rename || s.Action == Copy {
		if s.from, err = p.node(s.Old, s); err != nil {
			return err
		}
	} else if s.Action != Create {
		s.from = s.at
	}
	gone := s.Action == Rename || s.Action == Delete
	if gone && s.from.link {
		return fault.New(fault.FSOperation, "%s is a symbolic link; name the file itself, or use write with delete or move for the link", s.Old)
	}
	if gone {
		s.from.leaves = true
	}
	return nil
}

// work carries a step out on the versions of its nodes.
func (p *Plan) work(ctx context.Context, s *Step) error {
	if s.Action == Modify && !s.at.is.exists && startsEmpty(s.File) {
		f := *s.File
		f.Action, f.Old = Create, ""
		s.File, s.from = &f, nil
	}
	if s.from != s.at && (s.at.link || s.at.made || s.at.is.exists && !s.at.leaves) {
		return fault.New(fault.FSAlreadyExists, "%s exists already, but the patch makes it anew; give a patch that modifies it, or delete it first", s.New)
	}
	if s.from == nil {
		if p.o.IfMatch != "" {
			return fault.New(fault.PreconditionFailed, "%s does not exist, so it has no etag that if_match could name; leave if_match out to create it", s.New)
		}
		applied, err := Apply(ctx, "", s.File)
		if err != nil {
			return err
		}
		p.become(s, version{exists: true, text: new(applied.Text())}, applied)
		return nil
	}
	before := &s.from.is
	if s.Action == Rename || s.Action == Copy { // git means the file as it was
		before = &s.from.was
	}
	if !before.exists || s.Action == Rename && !s.from.is.exists {
		return fault.New(fault.FSNotFound, "no such file: %s. Names in the patch are relative to %s", s.Old, p.o.Base.Abs)
	}
	if p.o.IfMatch != "" {
		if err := p.match(ctx, s.from); err != nil {
			return err
		}
	}
	after := *before
	var applied *Applied
	if len(s.Hunks) > 0 || s.Action == Delete || s.Action == Copy {
		text, err := p.text(ctx, before)
		if err != nil {
			return err
		}
		after.text = before.text
		if s.Action == Copy {
			after.of = nil // a file of its own
		}
		if len(s.Hunks) > 0 {
			if p.seen += int64(len(text)); p.seen > passes*p.o.MaxBytes {
				return fault.New(fault.LimitExceeded, "the patch has too many parts for files as large as %s; give all hunks of a file after one header", s.Name())
			}
			if applied, text, err = applyTo(ctx, s.File, text); err != nil {
				return err
			}
			if len(applied.Splices) > 0 {
				after.text = &text
			}
		}
	}
	if s.Action == Delete && *after.text != "" {
		return fault.New(fault.PreconditionFailed, "%s: the patch deletes the file, but it has lines that the patch does not remove; read it again, and remove every line or use write with delete", s.Old)
	}
	p.become(s, after, applied)
	return nil
}

// become has s leave its file as v.
func (p *Plan) become(s *Step, v version, applied *Applied) {
	if s.Action == Delete {
		v = version{}
	}
	if s.Action == Rename && !s.from.made {
		s.from.is = version{}
	}
	s.at.is = v
	s.at.made = s.at.made || s.from != s.at
	switch {
	case s.Action == Delete:
	case s.NewMode != 0 && s.NewMode != s.OldMode:
		s.at.x = new(s.NewMode&0o111 != 0)
	case s.Action == Copy:
		s.at.x = new(s.from.info.Mode()&0o100 != 0)
	}
	hunks := ""
	if applied != nil {
		hunks = applied.Diff()
		s.Added, s.Removed = applied.Changed()
		s.Notes = append(s.Notes[:len(s.Notes):len(s.Notes)], applied.Notes...)
	}
	if hunks != "" || s.Action != Modify || s.at.x != nil {
		s.Diff = s.Header(hunks != "") + hunks
	}
}

// startsEmpty reports whether f makes sense for a file that does not exist.
func startsEmpty(f *File) bool {
	return len(f.Hunks) == 1 && f.Hunks[0].OldStart == 0 && len(f.Hunks[0].side('+')) == 0
}

// applyTo applies the hunks of f to a file's bytes and returns the new ones.
func applyTo(ctx context.Context, f *File, old string) (*Applied, string, error) {
	wide := strings.HasPrefix(old, "\xff\xfe") || strings.HasPrefix(old, "\xfe\xff")
	if !wide && strings.Contains(old[:min(len(old), binaryHead)], "\x00") {
		return nil, "", fault.New(fault.InvalidParameter, "%s is a binary file (it has NUL bytes); only text can be patched", f.Old)
	}
	var doc *textedit.Doc
	if !utf8.ValidString(old) {
		var err error
		if doc, err = textedit.Parse([]byte(old), ""); err != nil {
			return nil, "", of(f, err)
		}
	}
	if doc == nil || doc.Charset() == "" {
		// In UTF-8 a byte order mark is part of the first line, as in git.
		a, err := Apply(ctx, old, f)
		if err != nil {
			return nil, "", err
		}
		if doc != nil {
			for _, s := range a.Splices {
				if strings.ContainsFunc(s.New, func(r rune) bool { return r >= utf8.RuneSelf }) {
					return nil, "", fault.New(fault.InvalidParameter, "%s is not valid UTF-8, so the characters beyond ASCII that the patch adds cannot be written in its charset; use edit with apply and name the charset", f.Name())
				}
			}
		}
		return a, a.Text(), nil
	}
	a, err := Apply(ctx, doc.Text(), f)
	if err != nil {
		return nil, "", err
	}
	b, err := doc.Apply(a.Splices)
	if err != nil {
		return nil, "", of(f, err)
	}
	return a, string(b), nil
}

// binaryHead is how far into a file a NUL byte makes it binary, as for git.
const binaryHead = 8000

// of names the file that a coded error is about.
func of(f *File, err error) error {
	if coded := new(fault.Error); errors.As(err, &coded) {
		return fault.Hide(coded.Code, err, "%s: %s", f.Name(), coded.Message)
	}
	return err
}

// passes is how often a file of the largest size may be gone through: a file
// may have several parts in a patch.
const passes = 40

// settle decides which renames are moves, and reads what the others need.
func (p *Plan) settle(ctx context.Context) error {
	for _, s := range p.Steps {
		if s.Err != nil || s.Action != Rename {
			continue
		}
		if s.moved = !s.at.was.exists && !s.from.is.exists && s.at.is.of == s.from; !s.moved {
			_, err := p.text(ctx, &s.at.is)
			if s.Err = err; ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
	return nil
}

// spread makes the steps that hang together fail together: those that mention
// one path, and with Together all.
func (p *Plan) spread() {
	var failed []*Step
	for _, s := range p.Steps {
		if s.Err != nil {
			failed = append(failed, s)
		}
	}
	if len(failed) > 0 && p.o.Together {
		p.fail(p.Steps, failed[0])
	}
	for ; len(failed) > 0; failed = failed[1:] {
		for _, n := range failed[0].nodes() {
			if !n.failed {
				n.failed = true
				failed = append(failed, p.fail(n.steps, failed[0])...)
			}
		}
	}
}

// fail makes those of steps fail that were well but for with.
func (p *Plan) fail(steps []*Step, with *Step) (failed []*Step) {
	for _, s := range steps {
		if s.Err == nil {
			s.Err = fault.New(fault.PreconditionFailed, "%s was left as it was, since the part of the patch for %s failed", s.Name(), with.Name())
			failed = append(failed, s)
		}
	}
	return failed
}

// nodes returns the nodes that s mentions.
func (s *Step) nodes() []*node {
	var list []*node
	for _, n := range []*node{s.at, s.from} {
		if n != nil {
			list = append(list, n)
		}
	}
	return list
}

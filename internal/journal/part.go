package journal

import (
	"github.com/conduit-mcp/conduit-mcp/internal/fileinfo"
)

// A Part is what one entry of a call changes. It is kept whole or not at all,
// and told so in the entry's result. It is a [filetree.Keeper].
type Part struct {
	c *Change
	n int

	// Guarded by c.mu.
	bytes   int64
	blobs   []string
	void    bool
	touched int // steps, kept or not
	live    int // steps recorded
}

// Part begins another part of c.
func (c *Change) Part() *Part {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.parts++
	return &Part{c: c, n: c.parts}
}

// A Mark is what a result says of the journal. Results embed it.
type Mark struct {
	ChangeID string `json:"change_id,omitempty"` // what edit.undo takes to undo it
	Undo     *bool  `json:"undo,omitempty"`      // false where it cannot be undone
}

// Mark tells whether what p changed can be undone. It is empty where p changed
// nothing or the journal is switched off.
func (p *Part) Mark() Mark {
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	switch {
	case p.c.j.off || p.touched == 0:
		return Mark{}
	case p.void || p.c.broken || p.live == 0:
		return Mark{Undo: new(bool)}
	}
	return Mark{ChangeID: p.c.id}
}

// spoil gives up the part: it will not be undone.
func (p *Part) spoil() {
	c := p.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.void {
		return
	}
	p.void = true
	c.bytes -= p.bytes
	c.live -= p.live
	if !c.begun {
		return
	}
	c.pending = append(c.pending, encode(&line{Part: p.n, Void: true})...)
	c.write() // before what it speaks of is gone
	for _, name := range p.blobs {
		c.dir.Remove(name)
	}
	p.blobs = nil
}

// Expect records what the next step leaves; see [atomicfile.Keeper].
func (p *Part) Expect(abs string, left *fileinfo.Info, sum []byte) (cancel func()) {
	is := nothing
	if left != nil {
		is = stateOf(*left)
		is.Sum = sum
		if is.Kind == directory && sum != nil {
			is.Kind = tree
		}
	}
	return p.step(&line{Path: text(abs), Left: &is})
}

// Move records that the next step moves from to to; see [filetree.Keeper].
func (p *Part) Move(from, to string, moved fileinfo.Info) (cancel func()) {
	is := stateOf(moved)
	return p.step(&line{Path: text(from), To: text(to), Left: &is})
}

// step records l once what was kept is durable.
func (p *Part) step(l *line) (cancel func()) {
	c := p.c
	if c.j.off {
		return func() {}
	}
	c.flush()
	c.mu.Lock()
	defer c.mu.Unlock()
	p.touched++
	c.touched++
	if p.void || !c.begin() {
		return p.uncount
	}
	l.Part = p.n
	c.pending = append(c.pending, encode(l)...)
	c.write()
	p.live++
	c.live++
	at := string(l.Path)
	forget := func() {}
	if l.To != "" {
		delete(c.known, at)
		delete(c.known, string(l.To))
		at = string(l.To)
	} else {
		k := c.known[at]
		if k == nil {
			k = &knowledge{had: nothing}
			c.known[at] = k
		}
		before := k.left
		k.left = l.Left
		forget = func() { k.left = before }
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		p.touched--
		c.touched--
		if p.void || c.broken || !c.begun {
			return
		}
		c.pending = append(c.pending, encode(&line{Part: p.n, Path: text(at), Cancel: true})...)
		c.write()
		p.live--
		c.live--
		forget()
	}
}

// uncount takes back a step that was not recorded.
func (p *Part) uncount() {
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	p.touched--
	p.c.touched--
}

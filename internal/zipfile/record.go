package zipfile

import (
	"bytes"
	"math"
)

// describe finds name, times and extra fields.
func (e *created) describe() {
	e.date, e.clock = DOSTime(e.modified)
	times := TimeExtra(e.modified)
	if e.Old == nil {
		name := e.New.Name
		if e.New.Mode.IsDir() {
			name += "/"
		}
		e.name, e.local, e.central = []byte(name), times, times
		for _, c := range e.name {
			if c >= 0x80 {
				e.flags = FlagUTF8
			}
		}
		return
	}
	e.name, e.flags = e.Old.RawName(), e.Old.Flags&FlagUTF8
	e.central = renewed(e.Old.Extra(), times)
	e.local = e.central
	// The local header may have other fields; where it is not as expected, those
	// of the directory stand in.
	if p := e.w.present(e.Old); p != nil {
		if h, err := p.header(e.w.From); err == nil && bytes.Equal(h.name, e.name) {
			e.local = renewed(h.extra, times)
		}
	}
}

// renewed is an extra field without sizes, whose times are replaced where it has
// some.
func renewed(extra, times []byte) []byte {
	var list []byte
	timed := false
	for tag, f := range fields(extra) {
		switch tag {
		case extraZip64:
		case extraExtended, extraNTFS, extraUnix:
			timed = true
		default:
			list = appendField(list, tag, f)
		}
	}
	if timed {
		list = append(list, times...)
	}
	return list
}

func (e *created) version() uint16 {
	if e.big {
		return 45
	}
	return 20
}

func (e *created) localHeader(method uint16) []byte {
	extra := e.local
	size, csize := uint32(e.size), uint32(e.csize)
	if e.big {
		extra = appendField(nil, extraZip64, le.AppendUint64(le.AppendUint64(nil, uint64(e.size)), uint64(e.csize)))
		extra = append(extra, e.local...)
		size, csize = math.MaxUint32, math.MaxUint32
	}
	h := append(make([]byte, 0, localLen+len(e.name)+len(extra)), localSign...)
	h = le.AppendUint16(h, e.version())
	h = le.AppendUint16(h, e.flags)
	h = le.AppendUint16(h, method)
	h = le.AppendUint16(h, e.clock)
	h = le.AppendUint16(h, e.date)
	h = le.AppendUint32(h, e.sum.Sum32())
	h = le.AppendUint32(h, csize)
	h = le.AppendUint32(h, size)
	h = le.AppendUint16(h, uint16(len(e.name)))
	h = le.AppendUint16(h, uint16(len(extra)))
	return append(append(h, e.name...), extra...)
}

// record makes the record of the directory. What is not about the content is as
// it was.
func (e *created) record(method uint16) []byte {
	var comment []byte
	creator, disk := uint16(byUnix<<8|20), uint32(0) // internal attributes and first disk
	attributes := unixMode(e.New.Mode) << 16
	if e.New.Mode.IsDir() {
		attributes |= 0x10
	}
	if e.Old != nil {
		comment = e.Old.Comment()
		creator = le.Uint16(e.Old.rec[4:])
		disk = le.Uint32(e.Old.rec[34:])
		if e.link == e.Old.IsLink() {
			attributes = le.Uint32(e.Old.rec[38:])
		}
	}
	r := append(make([]byte, 0, entryLen+len(e.name)+len(e.central)+len(comment)+32), entrySign...)
	r = le.AppendUint16(r, creator)
	r = le.AppendUint16(r, e.version())
	r = le.AppendUint16(r, e.flags)
	r = le.AppendUint16(r, method)
	r = le.AppendUint16(r, e.clock)
	r = le.AppendUint16(r, e.date)
	r = le.AppendUint32(r, e.sum.Sum32())
	r = le.AppendUint32(r, 0)
	r = le.AppendUint32(r, 0)
	r = le.AppendUint16(r, uint16(len(e.name)))
	r = le.AppendUint16(r, uint16(len(e.central)))
	r = le.AppendUint16(r, uint16(len(comment)))
	r = le.AppendUint32(r, disk)
	r = le.AppendUint32(r, attributes)
	r = le.AppendUint32(r, 0)
	r = append(append(append(r, e.name...), e.central...), comment...)
	return located(r, e.size, e.csize, e.begin-e.w.Present.base)
}

// permitted is a record with the permissions that the item asks for.
func (i *Item) permitted(rec []byte) []byte {
	if i.Mode == nil {
		return rec
	}
	const unixType = 0o100000
	r := bytes.Clone(rec)
	attributes := le.Uint32(r[38:])
	mode := attributes >> 16
	if byUnixOrMac(r) && mode != 0 {
		mode &^= 0o777
	} else {
		r[5], mode = byUnix, unixType
	}
	le.PutUint32(r[38:], attributes&0xffff|(mode|uint32(i.Mode.Perm()))<<16)
	return r
}

// moved is the record of e for another place, otherwise as it was.
func moved(e *Entry, at int64) []byte {
	if was := le.Uint32(e.rec[entryOffset:]); was != math.MaxUint32 && at < math.MaxUint32 {
		if int64(was) == at {
			return e.rec
		}
		r := bytes.Clone(e.rec)
		le.PutUint32(r[entryOffset:], uint32(at))
		return r
	}
	return located(e.rec, e.Size, e.Compressed, at)
}

// located is a record with these sizes and this place, in 64 bits where they do
// not fit 32.
func located(rec []byte, size, csize, at int64) []byte {
	name := int(le.Uint16(rec[28:]))
	extra := rec[entryLen+name : entryLen+name+int(le.Uint16(rec[30:]))]
	r := bytes.Clone(rec[:entryLen+name])
	var wide []byte
	put := func(offset int, v int64) {
		if v >= math.MaxUint32 {
			wide = le.AppendUint64(wide, uint64(v))
			v = math.MaxUint32
		}
		le.PutUint32(r[offset:], uint32(v))
	}
	put(24, size)
	put(20, csize)
	put(entryOffset, at)
	var list []byte
	if wide != nil {
		list = appendField(list, extraZip64, wide)
		le.PutUint16(r[6:], max(le.Uint16(r[6:]), 45))
	}
	for tag, f := range fields(extra) {
		if tag != extraZip64 {
			list = appendField(list, tag, f)
		}
	}
	le.PutUint16(r[30:], uint16(len(list)))
	return append(append(r, list...), rec[entryLen+name+len(extra):]...)
}

package pack

import (
	"context"
	"errors"
	"io"
)

// Visit calls f with the content of each file and link that wanted names, in
// the order in which the archive has them: a stream is read through once,
// however many are wanted. An error of f, or of reading, ends it; f may read as
// much as it likes of the content.
func (a *Archive) Visit(ctx context.Context, wanted func(Entry) bool, f func(Entry, io.Reader) error) error {
	if a.format == Zip {
		for _, e := range a.list {
			if e.IsDir() || !wanted(e) {
				continue
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := a.visit(ctx, e, f); err != nil {
				return err
			}
		}
		return nil
	}
	left := 0
	by := map[int][]Entry{} // several where hard links name one member
	for _, e := range a.list {
		if l := a.by[e.Name]; !e.IsDir() && l.nth > 0 && wanted(e) {
			by[l.nth] = append(by[l.nth], e)
			left++
		}
	}
	if left == 0 {
		return nil
	}
	nth := 0
	err := eachMember(ctx, a.r, a.size, a.format, func(m *member) error {
		nth++
		for i, e := range by[nth] {
			if i > 0 { // the stream has gone past it
				if err := a.visit(ctx, e, f); err != nil {
					return err
				}
				continue
			}
			c, err := m.open()
			if err == nil {
				err = errors.Join(f(e, c), c.Close())
			}
			if err != nil {
				return err
			}
		}
		if left -= len(by[nth]); left == 0 {
			return errStop
		}
		return nil
	})
	return err
}

func (a *Archive) visit(ctx context.Context, e Entry, f func(Entry, io.Reader) error) error {
	c, _, err := a.OpenMember(ctx, e.Name)
	if err != nil {
		return err
	}
	defer c.Close()
	return f(e, c)
}

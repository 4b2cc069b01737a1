package crew

// A Limit bounds how many goroutines work at a time on one job that divides
// itself. Whoever waits does not count, so the parts of a part may take its
// turn.
type Limit struct{ working chan struct{} }

// NewLimit returns a Limit of n workers, at least one; the caller is the first.
func NewLimit(n int) *Limit {
	l := &Limit{make(chan struct{}, max(n, 1))}
	l.working <- struct{}{}
	return l
}

// Go runs f for g: in a goroutine of its own while fewer than n work, otherwise
// at once in that of the caller.
func (l *Limit) Go(g *Group, f func() error) {
	select {
	case l.working <- struct{}{}:
		g.Go(func() error {
			defer func() { <-l.working }()
			return f()
		})
	default:
		g.Do(f)
	}
}

// Wait is g.Wait for a worker.
func (l *Limit) Wait(g *Group) error {
	<-l.working
	err := g.Wait()
	l.working <- struct{}{}
	return err
}

// Package filelock locks files between processes. A lock belongs to the open
// file: two handles of one file exclude each other within a process too, and
// the system gives it back when the process ends, however it ends. Where the
// system has no locks all of them succeed.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// A Mode says who else may hold a lock.
type Mode bool

const (
	Exclusive Mode = false // nobody
	Shared    Mode = true  // those who share it
)

// ErrLocked is the error of a lock that somebody else has.
var ErrLocked = errors.New("locked by another process")

// TryLock locks f until it is closed or unlocked. The error is [ErrLocked] where
// somebody else has it, else that of a file system that cannot lock.
func TryLock(f *os.File, m Mode) error { return tryLock(f, m) }

// Unlock gives the lock of f back.
func Unlock(f *os.File) error { return unlock(f) }

// Lock is [TryLock] that waits until the lock is free or ctx is done, whose
// error it then returns.
func Lock(ctx context.Context, f *os.File, m Mode) error {
	return retry(ctx, func() error { return tryLock(f, m) })
}

// Open opens the file called name in root, made with mode 0600 where it is
// missing, and locks it until it is closed. Who holds it exclusively may remove
// it: what Open returns had that name when it was locked. The error is
// [ErrLocked] where somebody else has the lock, or that of opening.
func Open(root *os.Root, name string, m Mode) (*os.File, error) {
	for {
		f, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		if err = tryLock(f, m); err == nil {
			mine, merr := f.Stat()
			now, nerr := root.Lstat(name)
			switch {
			case merr == nil && nerr == nil && os.SameFile(mine, now):
				return f, nil
			case nerr == nil && !now.Mode().IsRegular():
				err = fmt.Errorf("%s is not a regular file", name)
			default: // who had it before has removed it
				err = merr
			}
		}
		f.Close()
		if err != nil {
			return nil, err
		}
	}
}

// OpenWait is [Open] that waits until the lock is free or ctx is done, whose
// error it then returns. It tries at least once.
func OpenWait(ctx context.Context, root *os.Root, name string, m Mode) (f *os.File, err error) {
	err = retry(ctx, func() error {
		f, err = Open(root, name, m)
		return err
	})
	return f, err
}

const (
	shortestPause = 100 * time.Microsecond
	longestPause  = 20 * time.Millisecond
)

// retry calls try until its error is not ErrLocked.
func retry(ctx context.Context, try func() error) error {
	for pause := shortestPause; ; pause = min(2*pause, longestPause) {
		if err := try(); !errors.Is(err, ErrLocked) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

//go:build !unix

package optest

import "errors"

func mkfifo(string) error { return errors.New("no FIFOs here") }

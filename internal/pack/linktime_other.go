//go:build !linux && !darwin

package pack

import (
	"errors"
	"os"
	"time"
)

// setLinkTime gives the symbolic link called name in dir a modification time.
func setLinkTime(*os.Root, string, time.Time) error { return errors.ErrUnsupported }

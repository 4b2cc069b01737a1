//go:build !linux && !darwin && !windows

package sysinfo

import (
	"errors"
	"os"
)

func spaceOf(*os.File) (space, error) { return space{}, errors.ErrUnsupported }

//go:build !linux

package stdio

import "io"

func widen(io.Writer) {}

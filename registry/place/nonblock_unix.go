//go:build unix

package place

import "syscall"

// Nonblock is a flag of package os that keeps the opening of a FIFO from waiting
// for its other end, where there are FIFOs. Opening anything else with it is
// cheaper too: package os need not set it to learn whether it can wait.
const Nonblock = syscall.O_NONBLOCK

//go:build !unix

package place

const nonblock = 0

//go:build !unix

package cmd

import "os"

// takeStdout hands out the process's stdout and stderr and lets the variables of
// package os point at the null device.
func takeStdout() (stdout, stderr *os.File, err error) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, nil, err
	}
	stdout, stderr = os.Stdout, os.Stderr
	os.Stdout, os.Stderr = null, null
	return stdout, stderr, nil
}

func isTTY(*os.File) bool { return true }

// Package longtest tells tests that repeat themselves how often: seldom in make
// test, often in make test-long.
package longtest

import "os"

// Count returns many where LONG_TESTS is set in the environment, few elsewhere.
func Count(few, many int) int {
	if os.Getenv("LONG_TESTS") != "" {
		return many
	}
	return few
}

// Package atomicfile writes files that land whole or not at all.
package atomicfile

import (
	"crypto/rand"
	"strings"
)

const (
	tempPrefix = ".conduit-"
	tempSuffix = ".tmp"
	tempRandom = 12
)

// TempName returns a new name for a temporary file: ".conduit-", 12 random
// letters, ".tmp".
func TempName() string {
	return tempPrefix + strings.Map(letter, rand.Text()[:tempRandom]) + tempSuffix
}

// letter maps the digits of rand.Text to letters that it does not use twice.
func letter(c rune) rune {
	if c >= '2' && c <= '7' {
		return 'a' + c - '2'
	}
	return c
}

// IsTemp reports whether name has the form of our temporary files. Listings,
// searches, copies and archives leave them out.
func IsTemp(name string) bool {
	rest, ok := strings.CutPrefix(name, tempPrefix)
	if !ok {
		return false
	}
	random, ok := strings.CutSuffix(rest, tempSuffix)
	if !ok || len(random) != tempRandom {
		return false
	}
	for _, c := range []byte(random) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z') {
			return false
		}
	}
	return true
}

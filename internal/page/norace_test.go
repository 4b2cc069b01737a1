//go:build !race

package page

// scale is how many times smaller the hostile pages are than they could be, up
// to 20 MB, so that all of them take seconds.
const scale = 4

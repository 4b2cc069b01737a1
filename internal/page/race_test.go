//go:build race

package page

// scale is how many times smaller the hostile pages are under the race
// detector, which makes everything slower.
const scale = 20

//go:build !race

package page

// scale is how many times smaller the hostile pages are than they could be: at
// their full size, up to 20 MB, they take 25 seconds together.
const scale = 4

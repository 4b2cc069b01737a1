// Package dirfd calls the system relative to the descriptor of an open
// directory. Unlike the functions of golang.org/x/sys/unix these leave nothing
// behind for the garbage collector, which counts where they run once a file.
// It is for Linux; elsewhere it is empty.
package dirfd

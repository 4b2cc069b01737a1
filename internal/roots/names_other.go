//go:build !windows

package roots

func badForSystem(string) error { return nil }

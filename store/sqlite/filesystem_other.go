//go:build !linux && !darwin

package sqlite

// networkOf returns "": this package cannot tell network file systems from others on this operating system.
func networkOf(string) (string, error) { return "", nil }

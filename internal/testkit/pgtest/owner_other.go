//go:build !unix

package pgtest

import "os/exec"

// give does nothing: the server runs as the user of this program.
func give(string) error { return nil }

// asOwner does nothing.
func asOwner(*exec.Cmd) {}

//go:build !unix

package main

import "os/exec"

// ownGroup does nothing: Ctrl-C reaches the command, and its server is started again for the next call.
func ownGroup(*exec.Cmd) {}

// killGroup does nothing: there is no group.
func killGroup(*exec.Cmd) {}

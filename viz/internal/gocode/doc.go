// Package gocode writes a conversation as Go code: a file with one function that builds it again, for a test to begin with.
//
//	err := gocode.Write(os.Stdout, d)
package gocode

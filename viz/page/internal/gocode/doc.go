// Package gocode writes a conversation as Go code: a file with one function to build the conversation, as the start of
// a test.
//
//	err := gocode.Write(os.Stdout, d)
package gocode

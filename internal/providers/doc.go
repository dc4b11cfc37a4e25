// Package providers holds the tests that are the same for every provider: what happens when an API fails, and that a
// conversation goes on from any of them to any other. It is a module of its own because it needs the SDKs of all of
// them.
package providers

// Package providers holds the tests common to all providers: failures of an API, and continuing a conversation of any
// of them with any other. It is a module of its own because it needs the SDKs of all of them.
package providers

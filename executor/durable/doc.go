// Package durable runs agents in a way that survives the end of a process.
package durable

package store

import "testing"

// LeaveOut sets the least number of nodes for which a conversation is loaded in part, for one test.
func LeaveOut(t testing.TB, least int) {
	before := minLeftOut
	minLeftOut = least
	t.Cleanup(func() { minLeftOut = before })
}

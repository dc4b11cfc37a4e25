// Package storetest has the test suites for drivers of package store, with a case for each rule of the interfaces.
//
//	func TestDriver(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) store.Driver { return open(t) })
//	}
//
//	func TestRuns(t *testing.T) {
//		storetest.RunRuns(t, func(t *testing.T) store.Runs { return open(t) })
//	}
package storetest

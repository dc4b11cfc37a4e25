// Package storetest has the test suites for drivers of package store, with a case for each rule of the interfaces.
//
//	func TestDriver(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) store.Driver { return open(t) })
//	}
//
//	func TestReopened(t *testing.T) {
//		path := filepath.Join(t.TempDir(), "store.db")
//		storetest.RunReopened(t, func(t *testing.T) store.Driver { return openAt(t, path) })
//	}
//
//	func TestTransactor(t *testing.T) {
//		storetest.RunTransactor(t, func(t *testing.T) store.Transactor { return open(t) })
//	}
package storetest

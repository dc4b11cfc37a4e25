// Package storefaults tests what store/sqlite keeps when the power fails, and when the disk returns errors. It runs
// SQLite on a simulated disk, which needs the driver github.com/ncruces/go-sqlite3, and so it is a module of its own.
package storefaults

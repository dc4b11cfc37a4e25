// Package storefaults tests the durability of store/sqlite, and of durable runs on it, against power failures and disk
// errors. It runs SQLite on a simulated disk. This needs the driver github.com/ncruces/go-sqlite3, and so it is a module of
// its own, and its tests need the build tag disk: compiling the driver takes half a minute.
package storefaults

// Package jsonx reads and rebuilds JSON objects member by member, with every value byte for byte as it was written.
//
//   - [Members], [Take] and [TakeText] split an object into its members; [Object] and [With] build one from members.
//   - [Text] and [Quote] convert between a JSON string and a Go string.
//   - Package write, below this one, appends JSON to a buffer.
//
// Package content is written with package write and is imported here: values are a content.JSON.
package jsonx

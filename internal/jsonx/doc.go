// Package jsonx reads and rebuilds JSON objects member by member, with every value byte for byte as it was written.
//
//   - [Read] returns a [Reader] for a text of a known form. Its error names the path of the member and the reason.
//   - [Members], [Take] and [TakeText] split an object of any form into its members; [Object] and [With] build one from
//     members.
//   - [Text] and [Quote] convert between a JSON string and a Go string.
//   - Package write, below this one, appends JSON to a buffer.
//
// Package content is written with package write and is imported here: values are a content.JSON.
package jsonx

//go:build countstatements

package growthtest

import "unsafe"

// counterBlob is rtcov.CovCounterBlob of the standard library.
type counterBlob struct {
	Counters *uint32
	Len      uint64
}

// counterList returns the counters of all instrumented packages. Package runtime/coverage does not give them to a test.
//
//go:linkname counterList internal/coverage/cfile.getCovCounterList
func counterList() []counterBlob

func init() {
	snapshot = func() (counters []uint32) {
		// A copy, because this package is instrumented too: a loop over the counters would count itself, and hide what is measured.
		for _, blob := range counterList() {
			counters = append(counters, unsafe.Slice(blob.Counters, blob.Len)...)
		}
		return counters
	}
}

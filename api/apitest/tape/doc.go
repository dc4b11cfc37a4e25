// Package tape records the HTTP traffic between a test and a real API, without its secrets, and plays it back without
// the network.
//
// The smallest whole program:
//
//	func TestWeather(t *testing.T) {
//		recording := tape.New(t, "testdata/weather.json", nil)
//		// … run a provider with recording.Client() …
//	}
//
// "PLAIT_RECORD=1 go test" records the tape. Without the variable the tape is played.
//
// # Concurrency
//
// A [Tape] is safe for concurrent use.
//
// # Errors
//
// A request without a recording on the tape fails with [ErrMissing]. [Tape.Close] returns it again, and reports unused
// recordings with [ErrUnused]. An error in reading, writing or recording a tape is [ErrUnusable].
package tape

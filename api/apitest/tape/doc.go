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
// A request that is not on the tape fails with [ErrMissing]. [Tape.Close] returns it again, and reports recordings that
// were not requested with [ErrUnused]. A tape that cannot be read, written or recorded is [ErrUnusable].
package tape

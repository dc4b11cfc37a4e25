package roundtrip

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"iter"

	"github.com/plait-dev/plait/api"
)

// ErrNotJSON is in the chain of a Decoder's error about an event that is not JSON. If it is the last one, the stream was
// cut off inside it.
var ErrNotJSON = errors.New("an event of the stream is not JSON")

// Decoder assembles a streamed response.
type Decoder interface {
	// Take decodes the next event, and returns the events to yield. Nothing is taken after an error.
	Take(data []byte) ([]api.Event, error)
	// Ended reports that the response is complete. Nothing more is read then.
	Ended() bool
	// End returns the last events of a response that has not ended before its stream. The argument is why the stream
	// broke off; nil if it ended, or if that is not known.
	End(broken error) ([]api.Event, error)
}

// Streamed yields the events of a response from those of its stream, as [Events] yields them.
func Streamed(events iter.Seq2[[]byte, error], d Decoder) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		// The error of the connection, or of an event that is not JSON. It means a cut unless another event follows.
		var broken error
		for data, err := range events {
			if broken != nil {
				yield(nil, broken)
				return
			}

			var out []api.Event
			if err == nil {
				out, err = d.Take(data)
			}
			var ours *api.Error
			if err != nil && (errors.Is(err, ErrNotJSON) || !errors.As(err, &ours)) {
				broken, err = err, nil
			}
			if !give(yield, out, err) || d.Ended() {
				return
			}
		}

		out, err := d.End(broken)
		give(yield, out, err)
	}
}

// give yields events and then the error, if there is one, and reports whether to continue.
func give(yield func(api.Event, error) bool, events []api.Event, err error) bool {
	for _, e := range events {
		if !yield(e, nil) {
			return false
		}
	}
	if err != nil {
		yield(nil, err)
	}
	return err == nil
}

// maxEvent limits a line of a stream, in bytes: a picture is one line.
const maxEvent = 256 << 20

// Events yields the data of each server-sent event that has some, until the body ends or "[DONE]" comes. The last event
// counts without the empty line at its end. Comments and other fields are ignored, as in the standard. Unlike there, a
// line that begins a JSON value is an error of the server without "data:", up to the end of the body.
func Events(body io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		lines := bufio.NewScanner(body)
		lines.Buffer(nil, maxEvent)
		lines.Split(splitLines())

		var data []byte
		bare := false // data is an error without "data:"
		for more := true; more; {
			more = lines.Scan()
			line := lines.Bytes()
			value, isData := bytes.CutPrefix(line, []byte("data:"))
			switch {
			case bare && more:
				data = append(append(data, '\n'), line...)
			case isData && data != nil:
				data = append(append(data, '\n'), bytes.TrimPrefix(value, []byte(" "))...)
			case isData:
				data = append(data, bytes.TrimPrefix(value, []byte(" "))...)
			case data == nil && len(line) > 0 && (line[0] == '{' || line[0] == '['):
				bare, data = true, append(data, line...)
			}

			// An event ends with an empty line, or with the body. If the body breaks off, the event is not complete.
			if more && (bare || len(line) > 0) || !more && lines.Err() != nil {
				continue
			}
			if text := bytes.TrimSpace(data); string(text) == "[DONE]" || len(text) > 0 && !yield(data, nil) {
				return
			}
			data = nil
		}

		if err := lines.Err(); err != nil {
			yield(nil, err)
		}
	}
}

// splitLines is bufio.ScanLines in linear time: it does not search again what it has searched of a line that arrives in
// pieces.
func splitLines() bufio.SplitFunc {
	searched := 0
	return func(data []byte, atEOF bool) (advance int, line []byte, err error) {
		end := bytes.IndexByte(data[searched:], '\n')
		if end >= 0 {
			end += searched
			searched = 0
			return end + 1, bytes.TrimSuffix(data[:end], []byte("\r")), nil
		}
		if !atEOF || len(data) == 0 {
			searched = len(data)
			return 0, nil, nil
		}
		searched = 0
		return len(data), bytes.TrimSuffix(data, []byte("\r")), nil
	}
}

package gemini

import (
	"bufio"
	"bytes"
	"io"
	"iter"
)

// sse is one server-sent event.
type sse struct {
	// The lines of data, joined by line breaks.
	data []byte
	// The stream ends with this event, without the blank line after it.
	last bool
}

// sseOf yields the server-sent events of a stream, except those without data. As in the standard, comments and other
// fields are ignored. Unlike there, a line beginning a JSON value starts an error without "data:", up to the end of the
// stream.
func sseOf(body io.Reader) iter.Seq2[sse, error] {
	return func(yield func(sse, error) bool) {
		lines := bufio.NewReaderSize(body, 16<<10)
		var data []byte
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil && err != io.EOF {
				yield(sse{}, err)
				return
			}

			// The last line may lack its line break.
			end := err == io.EOF
			line = bytes.TrimRight(line, "\r\n")

			switch value, ok := bytes.CutPrefix(line, []byte("data:")); {
			case ok:
				// Several data lines of one event are joined by line breaks, as the standard has it.
				if data != nil {
					data = append(data, '\n')
				}
				data = append(data, bytes.TrimPrefix(value, []byte(" "))...)
			case len(data) == 0 && len(line) > 0 && (line[0] == '{' || line[0] == '['):
				// A bare error has no blank line at its end.
				rest, err := io.ReadAll(lines)
				if err != nil {
					yield(sse{}, err)
					return
				}
				yield(sse{data: append(append(line, '\n'), rest...), last: true}, nil)
				return
			}

			if (len(line) == 0 || end) && len(data) > 0 {
				if !yield(sse{data, end}, nil) {
					return
				}
				data = nil
			}

			if end {
				return
			}
		}
	}
}

package dialect_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/plait-dev/plait/api/dialect"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/memo"
	"github.com/stretchr/testify/require"
)

// TestWhatIsRememberedTakesTheSpaceOfTheRequests measures the heap before and after conversations are encoded, once as a whole and once
// turn by turn.
func TestWhatIsRememberedTakesTheSpaceOfTheRequests(t *testing.T) {
	for name, test := range map[string]struct {
		every    int // messages for each request
		maxShare float64
	}{
		"one request":            {every: 100, maxShare: 1.1},
		"a request at each turn": {every: 2, maxShare: 1.3},
	} {
		t.Run(name, func(t *testing.T) {
			e := &dialect.Encoding{Append: func(dst []byte, m content.Message, _ int) []byte {
				return m.Blocks.Append(fmt.Appendf(dst, `{"role":%q,"content":`, m.Role))
			}}
			var all [][]content.Message
			for i := range 100 {
				var messages []content.Message
				for j := range 50 {
					messages = append(messages,
						user(text(fmt.Sprintf("%d %d %s", i, j, strings.Repeat("question ", 60)))),
						assistant(text(fmt.Sprintf("%d %d %s", i, j, strings.Repeat("answer ", 80)))))
				}
				all = append(all, messages)
			}

			before, sent := heap(), 0
			for _, messages := range all {
				for n := test.every; n <= len(messages); n += test.every {
					items := e.Encode(messages[:n]).Items()
					for i := range items {
						if n == len(messages) {
							sent += len(items[i])
						}
					}
				}
			}
			remembered := heap() - before
			require.LessOrEqual(t, float64(remembered)/float64(sent), test.maxShare, "%d bytes are sent, %d are remembered", sent, remembered)
			require.Greater(t, remembered, sent/2, "they are remembered")

			for _, messages := range all {
				for _, m := range messages {
					memo.OfBlocks(m.Blocks).Clear()
				}
			}
			require.Less(t, heap()-before, sent/20, "what is remembered can be let go")
			runtime.KeepAlive(all)
		})
	}
}

// TestShortConversationDoesNotRetainTheLongOne lets a conversation go on for a hundred megabytes, drops what came, and keeps the
// beginning, which was sent before.
func TestShortConversationDoesNotRetainTheLongOne(t *testing.T) {
	e := strange()
	short := []content.Message{user(text("Hi"))}
	for range 20 {
		short = append(short, assistant(text("x")), user(text("y")))
	}
	e.Encode(short)
	before := heap()
	long := append([]content.Message(nil), short...)
	for range 100 {
		long = append(long, assistant(text(strings.Repeat("x", 200_000))), user(text(strings.Repeat("y", 200_000))))
		e.Encode(long)
	}
	require.Greater(t, heap()-before, 60<<20, "it was remembered")
	runtime.KeepAlive(long)
	require.Less(t, heap()-before, 10<<20)
	runtime.KeepAlive(short)
}

func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

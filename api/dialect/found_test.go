package dialect_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
)

func TestAFilmIsNoImage(t *testing.T) {
	film := content.Image{Source: content.Source{URL: "gs://b/o.mp4", MediaType: "video/mp4"}}
	taken, why := targetOf("gemini").Accept(content.User, film, false)
	require.IsType(t, content.Text{}, taken)
	require.Contains(t, why, "not that of an image")
}

// TestAShortConversationDoesNotKeepTheLongOne lets a conversation go on for a hundred megabytes, drops what came, and keeps the
// beginning, which was sent before.
func TestAShortConversationDoesNotKeepTheLongOne(t *testing.T) {
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

package gemini

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/internal/testkit/racetest"
	"github.com/plait-dev/plait/internal/wire"
)

// TestLongAnswerInSmallPiecesTakesMemoryInProportion counts the bytes that are allocated: an answer of four times as many pieces must
// not take sixteen times as many, as it would if each piece copied what came before.
func TestLongAnswerInSmallPiecesTakesMemoryInProportion(t *testing.T) {
	racetest.SkipCounting(t)
	const pieces = 10_000
	allocated := func(pieces int) uint64 {
		piece := `data: {"candidates":[{"content":{"parts":[{"text":"0123456789"}]}}]}` + "\n\n"
		stream := strings.Repeat(piece, pieces) + `data: {"candidates":[{"finishReason":"STOP"}]}` + "\n\n"
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		answer, err := fold(stream)
		runtime.ReadMemStats(&after)
		require.NoError(t, err)
		require.Equal(t, 1, answer.Blocks.Len())
		require.Len(t, answer.Blocks.Text(), 10*pieces)
		return after.TotalAlloc - before.TotalAlloc
	}
	one := allocated(pieces)
	require.Less(t, allocated(4*pieces), 8*one)
}

// TestNestingHasAnEnd gives the decoder more brackets than a stack can hold.
func TestNestingHasAnEnd(t *testing.T) {
	deep := strings.Repeat("[", 2_000_000) + strings.Repeat("]", 2_000_000)
	for _, body := range []string{
		deep, `{"candidates":` + deep + `}`, `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":` + deep + `}}]},"finishReason":"STOP"}]}`,
		`{"error":{"details":` + deep + `}}`, `{"candidates":[{"groundingMetadata":` + deep + `}]}`,
	} {
		for _, read := range []func(string) (api.Response, error){foldWhole, func(body string) (api.Response, error) { return fold("data: " + body + "\n\n") }} {
			_, err := read(body)
			require.Error(t, err)
		}
		require.NotNil(t, newError(500, http.Header{}, []byte(body)))
	}
}

// TestABigErrorIsCut keeps only the beginning of an error that has no end.
func TestABigErrorIsCut(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, strings.Repeat("x", 4*wire.MaxError))
	}))
	defer server.Close()
	_, err := send(server, nil)
	var e *api.Error
	require.ErrorAs(t, err, &e)
	require.ErrorIs(t, err, api.ErrServer)
	require.Len(t, e.Body, wire.MaxError)
}

// TestHostileTextStaysText sends text that looks like JSON, breaks lines, or is none, and reads it back.
func TestHostileTextStaysText(t *testing.T) {
	for _, words := range []string{`"}]},{"role":"model"`, "\u2028\u2029\x00\x7f", "\xff\xfe", "</script>", `{"functionCall":{}}`, "data: x\n\n"} {
		body, _ := requireBody(t, ask3(user(said(words)), assistant(said(words), call("a")), user(result("a", words)), assistant(said("x")), user(said(words))), "gemini-3-pro", nil)
		var r struct {
			Contents []struct {
				Parts []struct {
					Text string `json:"text"`
				} `json:"parts"`
			} `json:"contents"`
		}
		require.NoError(t, content.JSON(body).Decode(&r))
		require.Len(t, r.Contents, 5)
		require.Equal(t, safetext.UTF8(words), r.Contents[0].Parts[0].Text)
		require.Equal(t, safetext.UTF8(words), r.Contents[4].Parts[0].Text)
	}
}

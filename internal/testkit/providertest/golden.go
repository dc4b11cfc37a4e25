package providertest

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plait-dev/plait/internal/testkit/goldentest"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
)

// requireWritten requires text to equal the golden file. Look at the difference before using -update.
func requireWritten(t *testing.T, file, text string) {
	t.Helper()
	// The JSON decoder picks one of two phrases at random, to keep programs from depending on its texts.
	text = strings.ReplaceAll(text, "unable to", "cannot")

	golden := filepath.Join("testdata", file)
	if *goldentest.Update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(golden, []byte(text), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	requireLines(t, file, strings.Split(string(want), "\n"), strings.Split(text, "\n"))
}

// requireLines fails at the first different line. A diff of the whole files would be too long to read.
func requireLines(t *testing.T, file string, want, got []string) {
	t.Helper()
	name := ""
	for i := range max(len(want), len(got)) {
		line := func(lines []string) string {
			if i < len(lines) {
				return lines[i]
			}
			return "(the end)"
		}

		// Such a line has the name of the case, for the failure of a line below it.
		if strings.HasPrefix(line(want), "-- ") {
			name = line(want)
		}
		require.Equal(t, line(want), line(got), "testdata/%s:%d, in %q: run with -update if the change is meant", file,
			i+1, name)
	}
}

// Case is a request with its body in a golden file.
type Case struct {
	Name    string
	Model   string // "" for the test's own model
	Request api.Request
}

// RequireBodies requires a golden file with the body of each case and the notes on it, or the error.
func RequireBodies(t *testing.T, file string, cases []Case, body func(c Case) ([]byte, []api.RepairNote, error)) {
	t.Helper()
	var b strings.Builder
	for _, c := range cases {
		fmt.Fprintf(&b, "-- %s --\n", c.Name)
		made, notes, err := body(c)
		if err != nil {
			fmt.Fprintf(&b, "error: %v\n", err)
			continue
		}
		b.Write(made)
		b.WriteByte('\n')
		for _, note := range notes {
			fmt.Fprintf(&b, "%s\n", note)
		}
	}
	requireWritten(t, file, b.String())
}

// Reply is a response with its events in a golden file.
type Reply struct {
	Name   string
	Status int // defaults to 200
	Header map[string]string
	Body   string
}

// RequireEvents requires a golden file with the head of a request and the events of a provider for each reply. Connect
// returns the provider for a URL.
func RequireEvents(t *testing.T, file string, replies []Reply, connect func(url string) api.Provider) {
	t.Helper()
	tape := make([]Exchange, len(replies))
	for i, r := range replies {
		tape[i].Response.Status, tape[i].Response.Body, tape[i].Response.Headers = r.Status, r.Body, r.Header
		if r.Status == 0 {
			tape[i].Response.Status = http.StatusOK
		}
	}
	player := Play(t, tape...)
	provider := connect(player.URL)

	var b strings.Builder
	for _, r := range replies {
		fmt.Fprintf(&b, "-- %s --\n", r.Name)
		hello := content.Message{Role: content.User, Blocks: content.Words("Hello")}
		for event, err := range provider.Stream(t.Context(), api.Request{Messages: []content.Message{hello}}) {
			if err != nil {
				b.WriteString(failure(err))
			} else {
				b.WriteString(shown(event))
			}
		}
	}

	// The file has the head of one request only, so all must be equal.
	for _, head := range player.heads[1:] {
		require.Equal(t, player.heads[0], head, "all requests but for their bodies are alike")
	}
	requireWritten(t, file, player.heads[0]+b.String())
}

// shown returns an event on one line.
func shown(event api.Event) string {
	// The latency is another one in each run.
	finish := func(word string, f api.Finish) string {
		f.Latency = 0
		return fmt.Sprintf("%s %+v\n", word, f)
	}

	switch e := event.(type) {
	case api.Delta:
		return fmt.Sprintf("delta %d %s %q %q\n", e.Index, e.Kind, e.Tool, e.Text)
	case api.BlockEnd:
		list, err := content.Of(e.Block)
		if err != nil {
			return fmt.Sprintf("block %d %v\n", e.Index, err)
		}
		return fmt.Sprintf("block %d %s\n", e.Index, list.Append(nil))
	case api.Finish:
		return finish("finish", e)
	case api.Cut:
		return finish("cut", e.Finish)
	}
	return fmt.Sprintf("%T %+v\n", event, event)
}

// failure returns an error with all its fields.
func failure(err error) string {
	var e *api.Error
	if !errors.As(err, &e) {
		return fmt.Sprintf("error %v\n", err)
	}
	return fmt.Sprintf("error %v\n  kind %q, API %q, status %d, type %q, message %q\n  request %q, retry after %v, body of %d bytes, cause %v\n",
		err, e.Kind, e.API, e.Status, e.Type, e.Message, e.RequestID, e.RetryAfter, len(e.Body), e.Err)
}

package crashtest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// at returns events, one second after the other.
func at(events ...event) (h history) {
	for i, e := range events {
		e.at = time.Unix(int64(i), 0)
		h = append(h, e)
	}
	return h
}

func TestHistoryShowsFaults(t *testing.T) {
	start := event{process: "p1", kind: started, key: "r/c/1"}
	accept := event{process: "p1", kind: accepted, key: "r/c/1", detail: "sum"}
	other := event{process: "p2", kind: accepted, key: "r/c/1", detail: "other"}
	consume := event{process: "p1", kind: consumed, key: "r/c"}

	claim := event{process: "p1", kind: claimed, key: "r/c/1"}
	hold := event{process: "p1", kind: held, key: "r/c/1"}

	require.Empty(t, at(claim, hold, start, start, accept, accept, consume).faults())
	overtaken := at(claim, hold, other, event{}, event{}, start)
	require.Empty(t, overtaken.faults(), "it had a lease when it was checked")
	require.Equal(t, 1, overtaken.overtaken())
	for want, h := range map[string]history{
		"started after acceptance": at(claim, other, hold, start),
		"accepted twice":           at(accept, other),
		"consumed twice":           at(consume, consume),
	} {
		require.Len(t, h.faults(), 1, want)
		require.Contains(t, h.faults()[0], want)
	}
}

func TestHistoryMeasuresStalls(t *testing.T) {
	first, second := event{process: "p1", kind: claimed, key: "r/c/1"}, event{process: "p2", kind: claimed, key: "r/c/1"}
	killed, accept := event{process: "p1", kind: lost}, event{process: "p1", kind: accepted, key: "r/c/1"}

	require.Equal(t, []time.Duration{3 * time.Second}, at(first, killed, event{}, event{}, second).stalls())
	require.Empty(t, at(first, second, killed).stalls(), "it had passed on before")
	require.Empty(t, at(first, accept, killed, second).stalls(), "it was done")
}

func TestEventsAreReadAsTheyAreWritten(t *testing.T) {
	e := event{at: time.Unix(1, 2), process: "p1", kind: claimed, key: "r/c/1", detail: "3"}
	read, err := parseEvent(e.String())
	require.NoError(t, err)
	require.Equal(t, e, read)
	_, err = parseEvent("half")
	require.Error(t, err)
}

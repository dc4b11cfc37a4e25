package dag_test

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

// repeated is a conversation in which two Sources have given the same ids.
func repeated() dag.DAG {
	at := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	d := dag.New().WithSource(node.Counting(at)).User("one").Assistant("two")
	return d.WithSource(node.Counting(at)).User("three").Assistant("four")
}

func TestARepeatedIDIsNotSaved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.json")
	good := dag.New().User("good")
	require.NoError(t, good.Save(path))
	require.ErrorIs(t, repeated().Save(path), dag.ErrDuplicateID)
	loaded, err := dag.Load(path)
	require.NoError(t, err)
	require.True(t, dag.Equal(good, loaded))

	var out bytes.Buffer
	require.ErrorIs(t, repeated().Write(&out), dag.ErrDuplicateID)
	require.Zero(t, out.Len())

	j, err := dag.OpenJournal(filepath.Join(t.TempDir(), "j"), nil)
	require.NoError(t, err)
	defer j.Close()
	require.ErrorIs(t, j.Append(repeated()), dag.ErrDuplicateID)
}

func TestARepeatedIDIsDrawnAndFoundOnce(t *testing.T) {
	require.NotPanics(t, func() { _ = repeated().String() })
	seen := map[dag.Finding]int{}
	for _, f := range repeated().Validate() {
		seen[f]++
	}
	require.NotEmpty(t, seen)
	for f, times := range seen {
		require.Equal(t, 1, times, f.String())
	}
}

package dag_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

func TestJournalOfManyHeadsWritesTheHeadsThatChanged(t *testing.T) {
	const forks = 300
	path := filepath.Join(t.TempDir(), "many.plait")
	j, err := dag.OpenJournal(path, &dag.JournalOptions{NoSync: true})
	require.NoError(t, err)
	defer j.Close()

	d := counting().User("Start")
	start := d.Head()
	for range forks {
		d, _, err = d.AppendTo([]*node.Node{start}, node.Message{Role: content.Assistant, Blocks: content.Words("fork")})
		require.NoError(t, err)
		require.NoError(t, j.Append(d))
	}
	// A head in the middle goes on, another one leaves.
	heads := d.Heads()
	d, _, err = d.AppendTo(heads[7:8], node.Message{Role: content.User, Blocks: content.Words("on")})
	require.NoError(t, err)
	require.NoError(t, j.Append(d))
	heads = d.Heads()
	d = d.WithHeads(append(heads[:100:100], heads[101:]...)...)
	require.NoError(t, j.Append(d))

	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Less(t, len(text), 1000*forks, "each append writes what is new")

	loaded, err := dag.Load(path)
	require.NoError(t, err)
	require.Equal(t, ids(d.Heads()), ids(loaded.Heads()))

	// What is kept has to be there.
	bad := strings.Replace(string(text), `"keep":[9,0]`, `"keep":[9,9]`, 1)
	require.False(t, string(text) == bad, "there is such a line")
	require.NoError(t, os.WriteFile(path+".bad", []byte(bad), 0o600))
	_, err = dag.Load(path + ".bad")
	require.ErrorIs(t, err, dag.ErrHeads)
}

package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/bench/internal/corpus"
	"github.com/plait-dev/plait/bench/internal/pair"
	"github.com/plait-dev/plait/dag"
)

func TestShortJournalStaysShort(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	first := corpus.New(1).Conversation(10)
	j, err := openSteady(path, first)
	require.NoError(t, err)

	// 100 appends fit. So these are 100, 100 and 50.
	s := &pair.Sample{N: 250}
	s.Resume()
	require.NoError(t, j.appendAll(s, "more"))
	require.NoError(t, j.Close())

	d, err := dag.Load(path)
	require.NoError(t, err)
	require.Equal(t, len(first.Nodes())+50, len(d.Nodes()))
}

func TestBaselineWritesTheBytesOfAnAppend(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, err := openSteady(path, corpus.New(1).Conversation(10))
	require.NoError(t, err)
	step := j.DAG().User("more")
	require.NoError(t, j.Append(step))
	require.NoError(t, j.Close())

	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(text[j.size:]), string(journalLines(step, j.size)))
}

func TestFolderIsRemovedIfVariantsCannotBeBuilt(t *testing.T) {
	wrong := errors.New("wrong")
	var folder string
	_, err := inFolder(func(dir string) ([]pair.Variant, error) {
		folder = dir
		return nil, wrong
	})()
	require.ErrorIs(t, err, wrong)
	require.NoDirExists(t, folder)
}

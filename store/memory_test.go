package store_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/uuid"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
	"github.com/stretchr/testify/require"
)

func TestMemoryRefusesAnAppendToAMovedHead(t *testing.T) {
	ctx, d := context.Background(), store.Memory()
	line := []byte("{}")
	r := store.Record{ID: node.ID(uuid.New()), Line: line, Sum: store.SumOf(line)}
	step := store.Append{Conversation: "c", Head: "main", Records: []store.Record{r}, To: []node.ID{r.ID}}

	head, err := d.Append(ctx, step)
	require.NoError(t, err)
	require.EqualValues(t, 1, head.Version)

	_, err = d.Append(ctx, step)
	require.ErrorIs(t, err, store.ErrMoved)
	var conflict *store.ConflictError
	require.True(t, errors.As(err, &conflict))
	require.Equal(t, head, conflict.Current)
}

package node_test

import (
	"errors"
	"testing"

	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

const savedID = `"id":"01941f29-7c00-7000-8000-000000000001","time":"2025-01-01T00:00:00Z","body":{"text":"x"}`

func parseOne(line string) (*node.Node, error) {
	return node.Parse([]byte(line), func(node.ID) *node.Node { return nil })
}

func TestANodeWithoutParentsOrKindIsRefused(t *testing.T) {
	_, err := parseOne(`{` + savedID + `,"kind":"system","parents":[]}`)
	require.NoError(t, err, "an empty array is a root")
	for field, line := range map[string]string{
		"parents": `{` + savedID + `,"kind":"system","qarents":["01941f29-7c00-7000-8000-000000000000"]}`,
		"kind":    `{` + savedID + `,"parents":[]}`,
	} {
		_, err := parseOne(line)
		require.ErrorIs(t, err, node.ErrParse)
		var at *node.FieldError
		require.ErrorAs(t, err, &at)
		require.Equal(t, field, at.Field)
		require.ErrorContains(t, err, field+": it is missing")
	}
}

func TestTextOfAFileCannotDriveATerminal(t *testing.T) {
	n, err := parseOne(`{` + savedID + `,"parents":[],"kind":"\u001b[2J\u202ex"}`)
	require.NoError(t, err)
	require.Equal(t, `\x1b[2J\u202ex 00000001`, n.String())
	e := &node.FieldError{ID: "\x1b]0;a", Field: "b\nc", Err: errors.New("d\re")}
	require.Equal(t, `node \x1b]0;a: b\nc: d\re`, e.Error())
	e = &node.FieldError{ID: "a'b", Field: "Größe/日本", Err: errors.New(`it is "x"`)}
	require.Equal(t, `node a'b: Größe/日本: it is "x"`, e.Error())
}

package dag_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	goccyV1 "github.com/goccy/go-json"
	goccy "github.com/goccy/go-json/v2"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// encoders are the JSON packages that programs use.
var encoders = map[string]struct {
	marshal   func(v any) ([]byte, error)
	unmarshal func(data []byte, v any) error
}{
	"encoding/json": {json.Marshal, json.Unmarshal},
	"goccy":         {goccyV1.Marshal, goccyV1.Unmarshal},
	"goccy v2": {
		func(v any) ([]byte, error) { return goccy.Marshal(v) },
		func(data []byte, v any) error { return goccy.Unmarshal(data, v) },
	},
}

func TestConversationInsideAnyValueSurvivesJSON(t *testing.T) {
	type record struct {
		Name    string
		Value   dag.DAG
		Pointer *dag.DAG
		None    *dag.DAG
		Empty   dag.DAG
		List    []dag.DAG
		ByName  map[string]dag.DAG
	}
	d := read(t, foreign(t)).WithRef("kept")
	rich := sample(t)
	before := record{
		Name: "n", Value: d, Pointer: &rich, List: []dag.DAG{rich, {}}, ByName: map[string]dag.DAG{"a": rich},
	}

	for name, using := range encoders {
		t.Run(name, func(t *testing.T) {
			data, err := using.marshal(before)
			require.NoError(t, err)
			require.True(t, json.Valid(data))
			require.NotContains(t, string(data), "\n")
			var after record
			require.NoError(t, using.unmarshal(data, &after))

			require.Nil(t, after.None)
			require.Zero(t, after.Empty.Len())
			require.Zero(t, after.List[1].Len())
			sameConversation(t, d, after.Value)
			for _, got := range []dag.DAG{*after.Pointer, after.List[0], after.ByName["a"]} {
				sameConversation(t, rich, got)
			}
		})
	}
}

// sameConversation checks that got is d, apart from the spaces in its nodes.
func sameConversation(t testing.TB, d, got dag.DAG) {
	t.Helper()
	require.True(t, dag.Equal(d, got))
	require.Equal(t, d.Verify().String(), got.Verify().String())
	require.Equal(t, d.Metadata().Len(), got.Metadata().Len())
	require.Equal(t, d.Created(), got.Created())
	require.Equal(t, ids(d.WithChildren()), ids(got.WithChildren()))

	names := func(d dag.DAG) (names []string) {
		for _, r := range d.Refs() {
			names = append(names, r.Name)
		}
		return names
	}
	require.Equal(t, names(d), names(got))
}

func TestMarshalWritesTheSavedFormWithoutLineBreaks(t *testing.T) {
	d := counting().System("<&> \u2028").User("Hi.").Assistant("Yes?")
	data, err := d.MarshalJSON()
	require.NoError(t, err)
	require.Equal(t, strings.ReplaceAll(written(t, d), "\n", ""), string(data))

	// JSON of others loses its spaces, and the checksum is that of the line without them.
	d = sample(t)
	require.Contains(t, written(t, d), `"citations": [ ]`)
	data, err = d.MarshalJSON()
	require.NoError(t, err)
	require.Contains(t, string(data), `"citations":[]`)
	again := read(t, string(data))
	require.Equal(t, d.Verify().String(), again.Verify().String())
	require.Equal(t, string(data), strings.ReplaceAll(written(t, again), "\n", ""), "the bytes are kept if no encoder changes them")

	// A wrong checksum stays wrong.
	changed := read(t, strings.Replace(written(t, d), `"citations": [ ]`, `"citations": [7]`, 1))
	data, err = changed.MarshalJSON()
	require.NoError(t, err)
	require.False(t, changed.Verify().OK())
	require.Equal(t, changed.Verify().String(), read(t, string(data)).Verify().String())
}

func TestBrokenConversationIsNotMarshaled(t *testing.T) {
	for name, using := range encoders {
		t.Run(name, func(t *testing.T) {
			_, err := using.marshal(map[string]any{"d": dag.New().User("")})
			require.ErrorIs(t, err, dag.ErrEmpty)

			_, err = using.marshal(repeated())
			require.ErrorIs(t, err, dag.ErrDuplicateID)
		})
	}
}

func TestBrokenJSONLeavesTheConversationUnchanged(t *testing.T) {
	const cycle = `{"format":"plait","version":1,"nodes":[{"id":"019b7ca9-8c88-7000-8000-000000000001",
		"parents":["019b7ca9-8c88-7000-8000-000000000001"],"kind":"message","time":"2026-01-02T03:04:05Z","body":{}}]}`
	for data, want := range map[string]error{
		`{}`: dag.ErrFormat, `[]`: dag.ErrFormat, `7`: dag.ErrFormat, `"plait"`: dag.ErrFormat,
		`{"format":"plait","version":2,"nodes":[]}`: dag.ErrVersion, cycle: node.ErrParent,
	} {
		d := dag.New().User("kept")
		err := json.Unmarshal([]byte(data), &d)
		var load *dag.LoadError
		require.ErrorAs(t, err, &load, data)
		require.ErrorIs(t, err, want, data)
		require.Equal(t, 1, d.Len())
	}

	d := dag.New().User("kept")
	require.NoError(t, json.Unmarshal([]byte("null"), &d), "null changes nothing, as everywhere in encoding/json")
	require.Equal(t, 1, d.Len())
}

func TestUnmarshaledConversationGetsItsToolsAgain(t *testing.T) {
	data, err := json.Marshal(dag.New().Tools(declared("f", "")).User("Go."))
	require.NoError(t, err)
	var d dag.DAG
	require.NoError(t, json.Unmarshal(data, &d))

	_, bound := d.Tool("f")
	require.False(t, bound)
	again := d.Tools(declared("f", ""))
	_, bound = again.Tool("f")
	require.True(t, bound)
	require.Equal(t, d.Len(), again.Len(), "the tool is declared already")
}

// throughJSON checks that encoding/json takes what Read takes, and that what loads survives both directions.
func throughJSON(t *testing.T, data []byte, d dag.DAG, readErr error) {
	t.Helper()
	if json.Valid(data) {
		var loaded dag.DAG
		err := json.Unmarshal(data, &loaded)
		if string(bytes.TrimSpace(data)) != "null" {
			require.Equal(t, readErr == nil, err == nil, "%v, %v", readErr, err)
		}
	}
	if readErr != nil {
		return
	}

	saved, err := json.Marshal(d)
	require.NoError(t, err)
	var again dag.DAG
	require.NoError(t, json.Unmarshal(saved, &again))
	require.True(t, dag.Equal(d, again))
	require.Equal(t, ids(d.WithChildren()), ids(again.WithChildren()))
}

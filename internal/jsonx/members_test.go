package jsonx

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
)

func TestMembersAreThoseOfAnObjectInOrder(t *testing.T) {
	for _, c := range []struct {
		object content.JSON
		want   []Member
	}{
		{`{}`, nil},
		{" {\t}\r\n", nil},
		{`{"b": 1,"a":"x"}`, []Member{{"b", "1"}, {"a", `"x"`}}},
		{`{"a":{"b":[1,"]}"],"c":"\"}"} , "d\u0020":null}`, []Member{{"a", `{"b":[1,"]}"],"c":"\"}"}`}, {"d ", "null"}}},
		{`{"a":1,"b":2}, and more`, []Member{{"a", "1"}, {"b", "2"}}},
	} {
		got, err := Members(c.object)
		require.NoError(t, err, c.object)
		require.Equal(t, c.want, got, c.object)
	}
	for bad, says := range map[content.JSON]string{
		"": "EOF", "[]": "not valid JSON: not an object", "7": "not valid JSON: not an object", `{"a":1`: "EOF", `{"a"`: "EOF", `{"a":`: "EOF",
		`{7:1}`: "object member name must be a string", `{"a":1,"a":2}`: `duplicate object member name "a"`,
	} {
		_, err := Members(bad)
		require.ErrorContains(t, err, says, bad)
	}
}

func TestMembersAreTakenAndMerged(t *testing.T) {
	list := []Member{{"a", "1"}, {"b", `"x"`}, {"c", "[]"}}
	value, rest := Take(list, "b")
	require.Equal(t, content.JSON(`"x"`), value)
	require.Equal(t, content.JSON(`{"a":1,"c":[]}`), Object(rest))
	require.Equal(t, content.JSON(`{"a":1,"b":"x","c":[]}`), Object(list), "what it was taken from is as it was")

	value, rest = Take(list, "d")
	require.Empty(t, value)
	require.Equal(t, list, rest)

	said, rest, ok := TakeText(list, "b")
	require.True(t, ok)
	require.Equal(t, "x", said)
	require.Len(t, rest, 2)
	said, rest, ok = TakeText(list, "a")
	require.False(t, ok, "it is no text")
	require.Empty(t, said)
	require.Equal(t, list, rest)

	require.Equal(t, content.JSON(`{"a":1,"b":"x","c":[],"d":2}`), Object(With(list, []Member{{"a", "9"}, {"d", "2"}})))
	require.Equal(t, list, With(list, nil))

	// Room behind the list belongs to its owner.
	roomy := append(make([]Member, 0, 8), list...)
	require.Len(t, With(roomy, []Member{{"d", "2"}}), 4)
	require.Equal(t, Member{}, roomy[:4][3])
	_, rest = Take(roomy, "a")
	require.Equal(t, content.JSON(`{"b":"x","c":[]}`), Object(rest))
	require.Equal(t, list, roomy, "what it was taken from is as it was")
}

func TestTextIsAStringAsItWasMeant(t *testing.T) {
	for j, want := range map[content.JSON]string{
		`""`: "", `"a"`: "a", `"\\"`: `\`, `"\\\\"`: `\\`, `"\""`: `"`, `"a\nb"`: "a\nb", `"\u00e9"`: "é", `"é"`: "é", `"\ud800"`: "\ufffd", "\"\xff\"": "\ufffd",
	} {
		got, ok := Text(j)
		require.True(t, ok, j)
		require.Equal(t, want, got, j)
	}
	for _, bad := range []content.JSON{"", `"`, "7", "null", `"a`, `"a"b"`, "\"\n\"", `["a"]`} {
		_, ok := Text(bad)
		require.False(t, ok, bad)
	}
}

func TestItemsAreThoseOfAList(t *testing.T) {
	items, err := Items(` [ 1, {"a" : "]"},[] ] `)
	require.NoError(t, err)
	require.Equal(t, []content.JSON{"1", `{"a" : "]"}`, "[]"}, items)
	require.Equal(t, content.JSON(`[1,{"a" : "]"},[]]`), Array(items))
	require.Equal(t, content.JSON("[]"), Array(nil))

	items, err = Items("null")
	require.NoError(t, err)
	require.Empty(t, items)
	for _, bad := range []content.JSON{"", "{}", "7", "[", "[1,]"} {
		_, err := Items(bad)
		require.Error(t, err, bad)
	}
}

func TestMapKeepsTheBytesIfNothingChanges(t *testing.T) {
	same := func(j content.JSON) content.JSON { return j }
	object := func(to func(content.JSON) content.JSON) func(Member) content.JSON {
		return func(m Member) content.JSON { return to(m.Value) }
	}
	for _, j := range []content.JSON{` {"a" : 1} `, " [ 1 ,2] ", "7", "", "{", "[]", "{}"} {
		require.Equal(t, j, MapMembers(j, object(same)))
		require.Equal(t, j, MapItems(j, same))
	}

	null := func(content.JSON) content.JSON { return "null" }
	require.Equal(t, content.JSON(`{"a":null,"b":null}`), MapMembers(`{"a" : 1, "b":null}`, object(null)))
	require.Equal(t, content.JSON(`[null,null]`), MapItems(`[ 1, null ]`, null))
}

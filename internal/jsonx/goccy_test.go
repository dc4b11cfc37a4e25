package jsonx_test

import (
	"bytes"
	stdjson "encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-json"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/stretchr/testify/require"
)

// decoded has a field of each form that our decoders rely on.
type decoded struct {
	ID      string             `json:"id"`
	Parents []string           `json:"parents"`
	Time    time.Time          `json:"time"`
	Body    stdjson.RawMessage `json:"body"`
	Count   int                `json:"count"`
	Part    float64            `json:"part"`
	Flag    bool               `json:"flag"`
	Next    *decoded           `json:"next"`
	Names   map[string]int     `json:"names"`
	Any     any                `json:"any"`
}

// documents are texts at the edges of the grammar, valid and not. Mutations start from them.
var documents = strings.Fields(`
	null true false nul truee 0 -0 1 -1 01 1. .5 1.5 1e5 1E+5 1e-5 1e 1e+ -  +1 0x10 1e400 -1e400 9223372036854775807 9223372036854775808
	"" "a" "\u0041" "\ud83d\ude00" "\ud83d" "\ude00\ud83d" "\u12" "\x" "\n" "\/" "é" "東京" "` + "\x7f" + `" "` + "\xff" + `" "` + "\xed\xa0\x80" + `" "` + "\x01" + `" "a 'a'
	[] [1] [1,2] [1,] [,1] [1,,2] [ [[]] [[[[1]]]] ] [1]] [true,null,"x",{}] {} {"a":1} {"a":1,} {"a"} {"a":} {:1} {a:1} {'a':1} {"a":1,"a":2}
	{"A":1,"a":2} {"":0} {"a":{"b":{"c":[]}}} } {"a":1}} {"a":1}x //x /**/1 [1]//x
	{"id":"1","parents":["a","b"],"time":"2026-01-02T03:04:05Z","body":{"text":"x"},"count":3,"part":1.5,"flag":true,"next":{"id":"2"},"names":{"a":1},"any":[1,"x",null]}
	{"id":null,"parents":null,"time":null,"body":null,"next":null,"names":null,"any":null} {"id":1} {"parents":{}} {"time":"x"} {"count":1.5} {"count":"1"}
	{"count":1e2} {"part":"1"} {"flag":1} {"next":[]} {"names":[]} {"names":{"a":"b"}} {"ID":"x"} {"Id":"x"} {"\u0069d":"x"} {"id":"x","unknown":[{}]} {"body":[1,2}
	{"body":{"a":1]} {"next":{"next":{"next":{"id":"deep"}}}}`)

// TestGoccyReadsAndWritesAsTheStandardLibrary compares the two on documents and on mutations of them. They must
// accept the same texts, read the same values and write them as the same bytes. After an error a value may be filled
// in part: our code drops it. PLAIT_SEED repeats the mutations of a seed, PLAIT_LONG makes more.
func TestGoccyReadsAndWritesAsTheStandardLibrary(t *testing.T) {
	rounds := seedtest.Rounds(10_000, 500_000)
	accepted := 0
	for _, text := range documents {
		accepted += compare(t, []byte(text))
	}
	require.Greater(t, accepted, 40)

	random := rand.New(rand.NewPCG(seedtest.First(t), 0))
	for range rounds {
		accepted += compare(t, mutated(random))
	}
	require.Greater(t, accepted, rounds/20, "mutations that nobody accepts test nothing")
}

// FuzzGoccyReadsAndWritesAsTheStandardLibrary does the same with texts of the fuzzer.
func FuzzGoccyReadsAndWritesAsTheStandardLibrary(f *testing.F) {
	for _, text := range documents {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) { compare(t, text) })
}

// mutated returns a document with a few bytes removed, repeated or replaced, or with a part of another one inside.
func mutated(random *rand.Rand) []byte {
	text := []byte(documents[random.IntN(len(documents))])
	for range 1 + random.IntN(3) {
		at := random.IntN(len(text) + 1)
		switch other := documents[random.IntN(len(documents))]; random.IntN(5) {
		case 0:
			text = append(text[:at:at], text[min(at+1+random.IntN(4), len(text)):]...)
		case 1:
			text = append(append(text[:at:at], other...), text[at:]...)
		case 2:
			text = append(append(text[:at:at], " \t\n\r\"\\{}[]:,0-.eEu\x00\xff"[random.IntN(20)]), text[at:]...)
		case 3:
			text = append(append(text[:at:at], text[at/2:]...), text[at:]...)
		default:
			if at < len(text) {
				text = bytes.Clone(text)
				text[at] = byte(random.Uint32())
			}
		}
	}
	return text
}

// compare decodes text into a value of each form and encodes it again, with both libraries. It returns how many forms
// accepted it.
func compare(t *testing.T, text []byte) (accepted int) {
	t.Helper()
	for _, fresh := range []func() any{
		func() any { return new(any) }, func() any { return new(decoded) }, func() any { return new(stdjson.RawMessage) },
		func() any { return new(map[string]any) }, func() any { return new([]stdjson.RawMessage) },
	} {
		ours, theirs := fresh(), fresh()
		err := json.Unmarshal(bytes.Clone(text), ours)
		want := stdjson.Unmarshal(text, theirs)
		if (err == nil) != (want == nil) {
			t.Fatalf("%T of %q: goccy says %v, encoding/json %v", ours, text, err, want)
		}
		if err != nil {
			continue
		}
		accepted++
		if !reflect.DeepEqual(ours, theirs) {
			t.Fatalf("%T of %q: goccy reads %#v, encoding/json %#v", ours, text, ours, theirs)
		}

		written, err := json.Marshal(ours)
		require.NoError(t, err)
		wantWritten, err := stdjson.Marshal(theirs)
		require.NoError(t, err)
		if !bytes.Equal(written, wantWritten) {
			t.Fatalf("%T of %q: goccy writes %s, encoding/json %s", ours, text, written, wantWritten)
		}
	}
	return accepted
}

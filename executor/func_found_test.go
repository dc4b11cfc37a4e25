package executor_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/executor"
)

// errOf is what a tool says against being declared.
func errOf(t executor.Tool) error { return t.(interface{ Err() error }).Err() }

func bind(schema string) executor.Tool {
	return executor.Bind(content.Tool{Name: "t", Schema: content.JSON(schema)},
		func(context.Context, executor.Call) (executor.Result, error) { return executor.Result{}, nil })
}

func TestSchemaThatNeverEndsIsTheToolsErr(t *testing.T) {
	double := ""
	for i := range 22 {
		double += fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	for schema, says := range map[string]string{
		`{"type":"object","allOf":[{"$ref":"#"}]}`: "refers to itself",
		`{"type":"object","$ref":"#"}`:             "refers to itself",
		`{"$ref":"#/$defs/a%20b","$defs":{"a b":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a%20b"}}}}`:       "refers to itself",
		`{"$ref":"#x","$defs":{"a":{"$anchor":"x","if":{"$ref":"#x"}}}}`:                                                       "refers to itself",
		`{"$dynamicAnchor":"x","oneOf":[{"$dynamicRef":"#x"}]}`:                                                                "refers to itself",
		`{"properties":{"p":{"$id":"https://a.example/p","dependentSchemas":{"k":{"$ref":"p"}}}},"$id":"https://a.example/r"}`: "refers to itself",
		`{"$ref":"#/$defs/d0","$defs":{` + double + `"d22":{}}}`:                                                               "more than 10000",
	} {
		require.ErrorContains(t, errOf(bind(schema)), says, schema)
	}
	for _, schema := range []string{
		`{"type":"object","properties":{"next":{"$ref":"#"}}}`,
		`{"type":"object","properties":{"all":{"type":"array","items":{"anyOf":[{"$ref":"#"},{"type":"string"}]}}}}`,
		`{"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}],"$defs":{"a":{"type":"object"}}}`,
		`{"$id":"https://a.example/r","allOf":[{"$ref":"b"}],"$defs":{"b":{"$id":"b","properties":{"x":{"$ref":"r"}}}}}`,
	} {
		tool := bind(schema)
		require.NoError(t, errOf(tool), schema)
		_, err := tool.Call(t.Context(), executor.Call{Name: "t", Input: "{}"})
		require.NoError(t, err, schema)
	}
}

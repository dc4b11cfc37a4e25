package executor_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

// errOf is what a tool says against being declared.
func errOf(t executor.Tool) error { return t.(interface{ Err() error }).Err() }

func bind(schema string) executor.Tool {
	return executor.NewTool(content.Tool{Name: "t", Schema: content.JSON(schema)},
		func(context.Context, executor.Call) (executor.Result, error) { return executor.Result{}, nil })
}

func TestSchemaThatNeverEndsIsTheToolsErr(t *testing.T) {
	require.ErrorContains(t, errOf(bind(`{"type":"object","allOf":[{"$ref":"#"}]}`)), "refers to itself")
	tool := bind(`{"type":"object","properties":{"next":{"$ref":"#"}}}`)
	require.NoError(t, errOf(tool))
	_, err := tool.Call(t.Context(), executor.Call{Name: "t", Input: "{}"})
	require.NoError(t, err)
}

func TestNullIsNoArguments(t *testing.T) {
	require.Equal(t, content.JSON("{}"), apitest.Use("t", nil).Input)
	tool := executor.Func("t", "", func(context.Context, struct{}) (string, error) { return "done", nil })
	r, err := tool.Call(t.Context(), executor.Call{Name: "t", Input: " null "})
	require.NoError(t, err)
	require.Equal(t, content.Words("done"), r.Content)
	d, err := executor.ExecuteTools(t.Context(), dag.New().Tools(tool).User("Go.").Assistant("", content.ToolUse{ID: "1", Name: "t", Input: "null"}))
	require.NoError(t, err)
	require.False(t, results(t, d)[0].IsError)
}

func TestResultThatIsNotUTF8IsRepaired(t *testing.T) {
	r, err := executor.ResultOf(struct{ Name string }{"a\xffb"})
	require.NoError(t, err)
	require.Equal(t, content.Words("{\"Name\":\"a\uFFFDb\"}"), r.Content)
}

func TestResultsInOtherShapes(t *testing.T) {
	for _, v := range []any{&executor.Result{Content: content.Words("a")}, []content.Text{{Text: "a"}}} {
		r, err := executor.ResultOf(v)
		require.NoError(t, err)
		require.Equal(t, content.Words("a"), r.Content)
	}
	_, err := executor.ResultOf([]byte("a"))
	require.ErrorContains(t, err, "[]byte")
}

func TestTimeoutOfNoToolIsItsErr(t *testing.T) {
	require.ErrorIs(t, dag.New().Tools(executor.WithTimeout(nil, 1)).Err(), content.ErrTool)
}

type (
	shade    string
	unlisted string
	buried   struct{ X int }
)

func (*shade) Enum() []any   { return []any{"dark", "light"} }
func (unlisted) Enum() []any { panic("no values") }

func TestTypeThatCannotBeDecodedIsTheToolsErr(t *testing.T) {
	for says, tool := range map[string]executor.Tool{
		"field E of": definition[struct{ E error }](),
		"field B of": definition[struct {
			A int
			B int `json:"A"`
		}](),
		"option string": definition[struct {
			N int `json:"n,string"`
		}](),
		`json:"-,"`: definition[struct {
			N int `json:"-,"` //lint:ignore SA5008 it is what is refused
		}](),
		"unexported struct": definition[struct{ *buried }](),
		"no values":         definition[struct{ B unlisted }](),
		"of its own": definition[struct {
			time.Time
			X int
		}](),
	} {
		require.ErrorContains(t, errOf(tool), says)
	}
	require.Contains(t, string(definition[struct{ S shade }]().Definition().Schema), `["dark","light"]`)
	require.Contains(t, string(definition[struct {
		S string `enum:"a, b"`
	}]().Definition().Schema), `["a","b"]`)
}

func TestLargeIntegerIsCalledInteger(t *testing.T) {
	_, err := bind(`{"type":"object","properties":{"s":{"type":"string"}}}`).Call(t.Context(), executor.Call{Input: `{"s":18446744073709551615}`})
	require.ErrorContains(t, err, "is integer")
}

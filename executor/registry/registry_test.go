package registry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/registry"
	"github.com/plait-dev/plait/internal/testkit/tooltest"
)

type sumArgs struct {
	A int `json:"a"`
	B int `json:"b"`
}

func adder(ran *atomic.Int64) executor.Tool {
	return executor.Func("add", "Adds two numbers.", func(_ context.Context, in sumArgs) (int, error) {
		ran.Add(1)
		return in.A + in.B, nil
	})
}

// untimed is rec without how long it took, which must be something that can be.
func untimed(t testing.TB, rec registry.Record) registry.Record {
	t.Helper()
	require.GreaterOrEqual(t, rec.Latency, time.Duration(0))
	require.Equal(t, rec.Success, rec.Error == "")
	if !rec.Success {
		require.Empty(t, rec.Output)
	}
	rec.Latency = 0
	return rec
}

func TestRegistryTakesEachNameOnce(t *testing.T) {
	r := tooltest.Registry(t, tooltest.Returning("a", ""), tooltest.Returning("b", ""))
	for _, twice := range [][]executor.Tool{
		{tooltest.Returning("a", "")}, {tooltest.Returning("c", ""), tooltest.Returning("b", "")}, {tooltest.Returning("d", ""), tooltest.Returning("d", "")},
	} {
		err := r.Register(twice...)
		require.ErrorContains(t, err, "tool already registered: ")
		require.ErrorContains(t, err, "tool already registered: "+twice[len(twice)-1].Definition().Name)
	}
	require.Len(t, r.Tools(), 2, "of a list that is refused nothing is taken")
	require.NoError(t, r.Register(tooltest.Returning("A", ""), tooltest.Returning("c", "")), "case counts")
	require.NoError(t, r.Register())
}

// odd is a tool of a program's own.
type odd struct {
	definition func() content.Tool
	executor.Tool
}

func (o *odd) Definition() content.Tool { return o.definition() }
func (o *odd) Unwrap() executor.Tool    { return o.Tool }

func TestRegistryRefusesToolsThatCannotBeCalled(t *testing.T) {
	recursive := executor.Func("loop", "", func(context.Context, struct{ C chan int }) (string, error) { return "", nil })
	server := content.Tool{Name: "search", Extra: content.Extra{API: "anthropic", JSON: `{"type":"web_search"}`}}
	panicking := &odd{definition: func() content.Tool { panic("no definition") }}
	hidden := &odd{Tool: recursive, definition: func() content.Tool { return tooltest.Returning("loop", "").Definition() }}
	for name, refused := range map[string]struct {
		tool executor.Tool
		says string
	}{
		"nil":               {nil, "tool 1 is nil"},
		"a nil pointer":     {(*odd)(nil), "tool 1 panicked in its Definition method"},
		"one that panics":   {panicking, "no definition"},
		"no schema":         {recursive, "loop"},
		"broken and hidden": {hidden, "loop"},
		"no function":       {executor.NewTool(content.Tool{Name: "x", Schema: `{"type":"object"}`}, nil), "its function is nil"},
		"a broken name":     {tooltest.Returning("rm -rf\n", ""), `the name "rm -rf\n" does not match`},
		"no type":           {executor.WithTimeout(nil, 1), "tool is nil"},
		"a server's tool":   {&odd{definition: func() content.Tool { return server }}, "search: the provider runs it itself"},
	} {
		t.Run(name, func(t *testing.T) {
			r := tooltest.Registry(t)
			err := r.Register(tooltest.Returning("fine", ""), refused.tool)
			require.ErrorIs(t, err, content.ErrTool)
			require.ErrorContains(t, err, refused.says)
			require.Empty(t, r.Tools())
			require.Empty(t, r.Definitions())
		})
	}
}

func TestRegistryReturnsItsToolsInOrder(t *testing.T) {
	tools := []executor.Tool{tooltest.Returning("z", ""), tooltest.Returning("a", ""), tooltest.Returning("m", "")}
	r := tooltest.Registry(t, tools[0])
	require.NoError(t, r.Register(tools[1:]...))
	for i := range tools {
		require.Equal(t, tools[i].Definition(), r.Tools()[i].Definition())
		require.Equal(t, tools[i].Definition(), r.Definitions()[i])
		require.Same(t, tools[i], r.Tools()[i])
	}
	clear(r.Tools())
	clear(r.Definitions())
	require.Equal(t, "z", r.Definitions()[0].Name, "what is handed out is a copy")
	require.NotNil(t, r.Tools()[0])
	require.NoError(t, dag.New().Tools(r.Tools()...).Err())
	var empty registry.Registry
	require.Empty(t, empty.Tools())
	require.Empty(t, empty.Definitions())
}

func TestToolThatIsNotRegisteredIsBlockedAndLogged(t *testing.T) { // C1
	var ran atomic.Int64
	for _, name := range []string{"rm_rf", "", "ADD", " add", "add ", "ad", "add\x00"} {
		var lines bytes.Buffer
		r := tooltest.Registry(t, adder(&ran))
		r.Log = slog.New(slog.NewJSONHandler(&lines, nil))
		rec := r.Execute(t.Context(), name, map[string]any{"a": 1, "b": "SECRET"})
		require.Equal(t, registry.Record{Tool: name, Error: rec.Error}, untimed(t, rec))
		printed := strings.ReplaceAll(name, "\x00", `\x00`)
		require.True(t, strings.HasPrefix(rec.Error, "Tool not registered: "+printed+" "), rec.Error)

		var line map[string]any
		require.NoError(t, json.Unmarshal(lines.Bytes(), &line), "one line: %s", lines.String())
		require.Equal(t, "WARN", line["level"])
		require.Equal(t, printed, line["tool"])
		require.NotContains(t, lines.String(), "SECRET")
	}
	require.Zero(t, ran.Load())
}

func TestRegistryLogsToTheDefaultLogger(t *testing.T) {
	var lines bytes.Buffer
	before := slog.Default()
	defer slog.SetDefault(before)
	slog.SetDefault(slog.New(slog.NewTextHandler(&lines, nil)))
	var r registry.Registry
	r.Execute(t.Context(), "rm_rf", nil)
	require.Contains(t, lines.String(), `level=WARN msg="blocked a call of an unregistered tool" tool=rm_rf`)
}

// plainHandler writes a record's words as they are, as simple handlers do.
type plainHandler struct{ b *strings.Builder }

func (h plainHandler) Enabled(context.Context, slog.Level) bool { return true }
func (h plainHandler) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h plainHandler) WithGroup(string) slog.Handler            { return h }
func (h plainHandler) Handle(_ context.Context, r slog.Record) error {
	h.b.WriteString(r.Message)
	r.Attrs(func(a slog.Attr) bool { h.b.WriteString(" " + a.Value.String()); return true })
	return nil
}

func TestHostileNamesAreShownOnOneLine(t *testing.T) {
	for name, want := range map[string]string{
		"x\nlevel=INFO msg=fine":            `x\nlevel=INFO msg=fine`,
		"x\r\x1b[2J\x07":                    `x\r\x1b[2J\a`,
		"\u202egnp.exe":                     `\u202egnp.exe`,
		"a\u2028b\u0085c\u009bd\u00a0e\x7f": `a\u2028b\u0085c\u009bd\u00a0e\x7f`,
		"\xff\xfe":                          `\xff\xfe`,
		"\U000e0041":                        `\U000e0041`,
		"wetter_für_日本":                     "wetter_für_日本",
		`a"b'c\n`:                           `a"b'c\n`,
		strings.Repeat("é", 5000):           strings.Repeat("é", 50) + "… (10000 bytes)",
		strings.Repeat("\x80", 5000):        strings.Repeat(`\x80`, 100) + "… (5000 bytes)",
		strings.Repeat("\n", 1<<20):         strings.Repeat(`\n`, 100) + "… (1048576 bytes)",
	} {
		var said strings.Builder
		r := tooltest.Registry(t)
		r.Log = slog.New(plainHandler{&said})
		rec := r.Execute(t.Context(), name, nil)
		require.Equal(t, name, rec.Tool)
		require.Equal(t, "Tool not registered: "+want+" (only registered tools can be called)", rec.Error)
		require.Equal(t, "blocked a call of an unregistered tool "+want, said.String())
	}
}

func TestTimeoutIsAFailureThatTookThatLong(t *testing.T) { // C2
	sleeping := tooltest.Func("sleep", func(ctx context.Context, _ executor.Call) (any, error) {
		select {
		case <-time.After(time.Minute):
			return "late", nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	deaf := tooltest.Func("deaf", func(context.Context, executor.Call) (any, error) { time.Sleep(time.Minute); return "late", nil })
	for _, c := range []struct {
		name    string
		tool    executor.Tool
		timeout time.Duration
		took    time.Duration
		err     string
	}{
		{"the default", sleeping, 0, 30 * time.Second, "Tool exceeded timeout of 30s."},
		{"the registry's", sleeping, 50 * time.Millisecond, 50 * time.Millisecond, "Tool exceeded timeout of 50ms."},
		{"none", sleeping, -1, time.Minute, ""},
		{"the tool's own is shorter", executor.WithTimeout(sleeping, time.Second), 5 * time.Second, time.Second,
			"Tool exceeded timeout of 1s."},
		{"the tool's own is longer", executor.WithTimeout(sleeping, time.Hour), time.Second, time.Minute, ""},
		{"the tool has none", executor.WithTimeout(sleeping, 0), time.Second, time.Minute, ""},
		{"a tool that does not listen", deaf, 50 * time.Millisecond, 50 * time.Millisecond, "Tool exceeded timeout of 50ms."},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := tooltest.Registry(t, c.tool)
				r.Timeout = c.timeout
				began := time.Now()
				rec := r.Execute(t.Context(), c.tool.Definition().Name, nil)
				require.Equal(t, c.took, rec.Latency)
				require.Equal(t, c.err, rec.Error)
				require.LessOrEqual(t, time.Since(began)-c.took, time.Second, "a deaf tool is left behind")
				untimed(t, rec)
				time.Sleep(time.Hour) // until the deaf tool is back
			})
		})
	}
}

func TestToolThatFailsIsAFailedRecordWithItsText(t *testing.T) { // C3
	r := tooltest.Registry(t,
		tooltest.Func("fails", func(context.Context, executor.Call) (any, error) { return nil, errors.New("disk on fire") }),
		tooltest.Func("silent", func(context.Context, executor.Call) (any, error) { return executor.Result{IsError: true}, nil }),
		tooltest.Func("panics", func(context.Context, executor.Call) (any, error) { panic("oh no") }),
		tooltest.Func("exits", func(context.Context, executor.Call) (any, error) { runtime.Goexit(); return nil, nil }),
		tooltest.Returning("bytes", []byte("x")),
		tooltest.Returning("partial", executor.Result{Content: content.Words("half of it"), IsError: true}),
	)
	for name, says := range map[string]string{
		"fails": "disk on fire", "silent": `Tool "silent" failed without saying why.`, "panics": "oh no", "exits": "exits",
		"bytes": "[]byte", "partial": "half of it",
	} {
		rec := untimed(t, r.Execute(t.Context(), name, nil))
		require.False(t, rec.Success, name)
		require.Contains(t, rec.Error, says)
		require.Equal(t, name, rec.Tool)
	}
}

func TestSuccessHasAnOutputAndNoError(t *testing.T) { // C6
	var ran atomic.Int64
	r := tooltest.Registry(t, adder(&ran), tooltest.Returning("nothing", nil))
	rec := r.Execute(t.Context(), "add", sumArgs{A: 5, B: 3})
	require.Equal(t, registry.Record{Tool: "add", Success: true, Output: "8"}, untimed(t, rec))
	rec = r.Execute(t.Context(), "nothing", nil)
	require.Equal(t, registry.Record{Tool: "nothing", Success: true}, untimed(t, rec))
	require.EqualValues(t, 1, ran.Load())
}

func TestLatencyIsHowLongTheToolRan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := tooltest.Registry(t, tooltest.Func("work", func(context.Context, executor.Call) (any, error) {
			time.Sleep(1234 * time.Millisecond)
			return 1, nil
		}))
		require.Equal(t, 1234*time.Millisecond, r.Execute(t.Context(), "work", nil).Latency)
		require.Zero(t, r.Execute(t.Context(), "work", 5).Latency)
	})
}

type panicking struct{}

func (panicking) MarshalJSON() ([]byte, error) { panic("cannot be written") }

func TestArgumentsComeInAnyForm(t *testing.T) {
	r := tooltest.Registry(t, tooltest.Func("show", func(_ context.Context, call executor.Call) (any, error) { return string(call.Input), nil }))
	var none map[string]any
	for _, c := range []struct {
		args any
		want string
	}{
		{nil, "{}"}, {none, "{}"}, {(*sumArgs)(nil), "{}"}, {content.JSON(""), "{}"}, {"", "{}"}, {" null\n", "{}"},
		{content.JSON(`{"b":2,"a" : 1.0}`), `{"b":2,"a" : 1.0}`},
		{`{"a":"<&>"}`, `{"a":"<&>"}`},
		{map[string]any{"b": 1, "a": "<&>"}, `{"a":"<&>","b":1}`},
		{sumArgs{1, 2}, `{"a":1,"b":2}`},
		{&sumArgs{1, 2}, `{"a":1,"b":2}`},
	} {
		rec := r.Execute(t.Context(), "show", c.args)
		require.Equal(t, registry.Record{Tool: "show", Success: true, Output: c.want}, untimed(t, rec))
	}
}

func TestArgumentsThatAreNoObjectAreAFailure(t *testing.T) { // C5
	var ran atomic.Int64
	r := tooltest.Registry(t, adder(&ran))
	for _, c := range []struct {
		args any
		says string
	}{
		{`{"a":1`, "the arguments are not a JSON object"},
		{"{}{}", "not a JSON object"},
		{content.JSON(`{"a":1,"a":2}`), "not a JSON object"},
		{content.JSON("\x00\x1b"), `not a JSON object`},
		{5, "not a JSON object"},
		{[]any{}, "not a JSON object"},
		{math.NaN(), "the arguments cannot be encoded"},
		{make(chan int), "the arguments cannot be encoded"},
		{panicking{}, "encoding registry_test.panicking panicked: cannot be written"},
		{map[string]any{"a": panicking{}}, "cannot be written"},
		{map[string]any{"a": "1", "b": 2}, "a: must be integer, is string"},
		{nil, "a: is required"},
		{strings.Repeat("[", 1<<20), "not a JSON object"},
	} {
		rec := untimed(t, r.Execute(t.Context(), "add", c.args))
		require.Equal(t, "add", rec.Tool)
		require.Contains(t, rec.Error, c.says)
		require.Less(t, len(rec.Error), 2000)
		require.NotContains(t, rec.Error, "\x1b")
	}
	require.Zero(t, ran.Load())
}

func TestEndedContextIsAFailure(t *testing.T) {
	var ran atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	r := tooltest.Registry(t, adder(&ran), tooltest.Func("leave", func(ctx context.Context, _ executor.Call) (any, error) {
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	}))
	require.Contains(t, untimed(t, r.Execute(ctx, "leave", nil)).Error, "cancelled while the tool was running")
	require.Contains(t, untimed(t, r.Execute(ctx, "add", sumArgs{})).Error, "cancelled before the tool was started")
	require.Zero(t, ran.Load())
	var none context.Context
	require.True(t, r.Execute(none, "add", sumArgs{}).Success, "it does not panic")
}

func TestCallsOfTheChatCompletionsAPIAreExecuted(t *testing.T) {
	r := tooltest.Registry(t, tooltest.Func("show", func(_ context.Context, call executor.Call) (any, error) {
		return fmt.Sprintf("%s %s %d %s", call.Name, call.ID, call.Index, call.Input), nil
	}))
	rec := untimed(t, r.ExecuteCall(t.Context(),
		[]byte(`{"id":"call_1","function":{"name":"show","arguments":"{\"city\": \"London\"}"}}`)))
	require.Equal(t, registry.Record{Tool: "show", Success: true, Output: `show call_1 0 {"city": "London"}`}, rec)
}

func TestCallThatCannotBeReadIsAFailureAndNotExecuted(t *testing.T) { // C5
	var ran atomic.Int64
	var log strings.Builder
	r := tooltest.Registry(t, adder(&ran))
	r.Log = slog.New(plainHandler{&log})
	for call, want := range map[string]registry.Record{
		`{"function":{"name":"add","arguments":"{bad"}}`:  {Tool: "add", Error: "function.arguments are not a JSON object"},
		`{"function":{"name":"add","arguments":"[1,2]"}}`: {Tool: "add", Error: "function.arguments are not a JSON object"},
		`{"function":{"arguments":"{}"}}`:                 {Error: "function.name is missing"},
		`{"function":`:                                    {Error: "EOF"},
		"":                                                {Error: "EOF"},
		`null`:                                            {Error: "function.name is missing"},
	} {
		rec := untimed(t, r.ExecuteCall(t.Context(), []byte(call)))
		require.Equal(t, want.Tool, rec.Tool)
		require.Contains(t, rec.Error, want.Error)
		require.Empty(t, log.String())
	}
	rec := untimed(t, r.ExecuteCall(t.Context(), []byte(`{"function":{"name":"rm_rf","arguments":"{bad"}}`)))
	require.True(t, strings.HasPrefix(rec.Error, "Tool not registered: rm_rf"), "blocked and logged, whatever its arguments")
	require.Contains(t, log.String(), "rm_rf")
	require.Zero(t, ran.Load())
}

func TestRegistryIsSafeForConcurrentUse(t *testing.T) {
	var ran atomic.Int64
	r := tooltest.Registry(t, adder(&ran))
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			require.NoError(t, r.Register(tooltest.Returning(fmt.Sprintf("t%d", i), i)))
			require.True(t, r.Execute(t.Context(), "add", sumArgs{A: i}).Success)
			require.Equal(t, fmt.Sprint(i), r.Execute(t.Context(), fmt.Sprintf("t%d", i), nil).Output)
			r.ExecuteCall(t.Context(), []byte(`{"function":{"name":"add","arguments":{"a":1,"b":2}}}`))
			require.Equal(t, len(r.Tools()) > 0, len(r.Definitions()) > 0)
		})
	}
	group.Wait()
	require.Len(t, r.Tools(), 21)
	require.EqualValues(t, 40, ran.Load())
}

func TestToolCanUseTheRegistryThatRunsIt(t *testing.T) {
	var r registry.Registry
	outer := tooltest.Func("outer", func(ctx context.Context, _ executor.Call) (any, error) {
		if err := r.Register(tooltest.Returning("made", "")); err != nil {
			return nil, err
		}
		return r.Execute(ctx, "inner", nil).Output, nil
	})
	require.NoError(t, r.Register(tooltest.Returning("inner", "from inside"), outer))
	require.Equal(t, "from inside", r.Execute(t.Context(), "outer", nil).Output)
	require.Len(t, r.Tools(), 3)
}

func TestToolThatChangesItsDefinitionIsAFailure(t *testing.T) {
	var asked atomic.Int64
	def := tooltest.Returning("a", "").Definition()
	shifty := &odd{Tool: tooltest.Returning("a", "ran"), definition: func() content.Tool {
		d := def
		switch n := asked.Add(1); {
		case n == 2:
			panic("not again")
		case n > 2:
			d.Name = "b"
		}
		return d
	}}
	r := tooltest.Registry(t, shifty)
	require.Contains(t, untimed(t, r.Execute(t.Context(), "a", nil)).Error, "not again")
	require.Contains(t, untimed(t, r.Execute(t.Context(), "a", nil)).Error, "not found")
}

// fading is a tool that breaks after it was registered.
type fading struct {
	executor.Tool
	err error
}

func (f *fading) Err() error { return f.err }

func TestToolThatBreaksLaterIsAFailure(t *testing.T) {
	f := &fading{Tool: tooltest.Returning("a", "ran")}
	r := tooltest.Registry(t, f)
	require.True(t, r.Execute(t.Context(), "a", nil).Success)
	f.err = errors.New("it is gone")
	require.Contains(t, untimed(t, r.Execute(t.Context(), "a", nil)).Error, "The call has no result: dag: Tools: it is gone")
}

func TestDeferredToolIsAFailure(t *testing.T) {
	r := tooltest.Registry(t, executor.DeferredTool(tooltest.Returning("a", "").Definition()))
	require.Contains(t, untimed(t, r.Execute(t.Context(), "a", nil)).Error, "The call has no result: ")
}

type panickingHandler struct{ slog.Handler }

func (panickingHandler) Handle(context.Context, slog.Record) error { panic("no log") }

func TestLoggerThatPanicsIsAFailureOfTheCall(t *testing.T) {
	r := tooltest.Registry(t)
	r.Log = slog.New(panickingHandler{slog.NewTextHandler(&bytes.Buffer{}, nil)})
	want := registry.Record{Tool: "x\n", Error: `The call of tool "x\n" panicked: no log`}
	require.Equal(t, want, r.Execute(t.Context(), "x\n", nil))
	require.Equal(t, want, r.ExecuteCall(t.Context(), []byte(`{"function":{"name":"x\n"}}`)))
	require.Equal(t, want, r.ExecuteCall(t.Context(), []byte(`{"function":{"name":"x\n","arguments":5}}`)))
}

func BenchmarkRegistryExecute(b *testing.B) {
	r := tooltest.Registry(b, adder(new(atomic.Int64)))
	for b.Loop() {
		if !r.Execute(b.Context(), "add", content.JSON(`{"a":1,"b":2}`)).Success {
			b.Fatal("failed")
		}
	}
}

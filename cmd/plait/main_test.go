package main

import (
	"errors"
	"net/http/httptest"
	"os/exec"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
)

func TestMain(m *testing.M) { testscript.Main(m, map[string]func(){"plait": main}) }

// TestScripts runs what people type. "exits 3 plait …" is exec with the exit code that is to come. $ANTHROPIC is a strict server that calls
// two tools and then answers.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
		},
		Setup: func(env *testscript.Env) error {
			server := httptest.NewServer(apitest.NewAnthropic(
				apitest.AnthropicMessage(content.Text{Text: "I look."}, use("call_1", "Paris"), use("call_2", "Tokyo")),
				apitest.AnthropicMessage(content.Text{Text: "Paris has 18 °C and Tokyo 22 °C."}),
			))
			env.Defer(server.Close)
			env.Setenv("ANTHROPIC", server.URL)
			return nil
		},
	})
}

func use(id, city string) content.ToolUse {
	return content.ToolUse{ID: id, Name: "get_weather", Input: content.JSON(`{"city":"` + city + `"}`)}
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("it exits with %d, not %d", got, want)
	}
}

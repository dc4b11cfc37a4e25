package main

import (
	"errors"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/dag"
)

func TestErrorsNameNoPackageMethodOrType(t *testing.T) {
	names := `(?:^|: )(?:dag|executor|api|content|node|transcript|json|jsontext|FromTranscript): |Go \[\]|Go struct|Go string|struct \{|with Tools`
	talk := question(t)
	for _, format := range importerNames() {
		for _, text := range []string{`{"messages":7}`, `{"messages":[7]}`, `{"messages":[{"role":7}]}`, `{"messages":[{"content":7}]}`, `[]`, `7`, `{`, `{"input":7}`, `{"contents":7}`,
			`{"tools":{}}`, `{"system":7}`, `{"messages":[{"role":"assistant","tool_calls":7}]}`, `{"messages":[],"tools":7}`, ``} {
			_, errs, code := command(text, "import", "--from", format, "-")
			require.Equal(t, exitBad, code, "%s: %s", format, text)
			require.NotRegexp(t, names, errs)
			require.Contains(t, errs, "plait: -: ")
		}
	}
	for _, line := range [][]string{
		{"log", "-"}, {"run", talk, "--provider", "anthropic", "--user-json", "-"}, {"show", talk, "zz"}, {"run", talk, "--provider", "anthropic"}, {"verify", "-"}, {"report", "--prices", "-", talk},
	} {
		_, errs, code := command(`{"a":[7]}`, line...)
		require.Equal(t, exitBad, code, line)
		require.NotRegexp(t, names, errs)
	}
	require.Equal(t, `messages cannot be read: a JSON number does not belong there within "/0/role"`,
		plain(errors.New(`messages cannot be read: json: cannot unmarshal JSON number into Go struct { Role string "json:\"role\"" } within "/0/role"`)))
	require.Equal(t, "the user wrote json: once", plain(errors.New("the user wrote json: once")), "only prefixes go")
}

func TestIdleTimeoutReachesTheProvider(t *testing.T) {
	r := &runner{streams: &streams{}}
	cmd := &cobra.Command{}
	r.endpointFlags(cmd)
	require.NoError(t, cmd.ParseFlags([]string{"--provider", "anthropic", "--model", "m", "--idle-timeout", "90s"}))
	agent, _, err := r.agent(dag.New().User("Hi"))
	require.NoError(t, err)
	require.Equal(t, 90*time.Second, agent.Options.Idle)

	_, errs, code := command("", "run", question(t), "--provider", "anthropic", "--idle-timeout", "-1s")
	require.Equal(t, exitBad, code)
	require.Equal(t, "plait: --idle-timeout -1s is negative\n", errs)
}

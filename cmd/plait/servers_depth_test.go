package main

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMCPProgramThatNestsDeepEndsNotTheCommand(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("SKIPPED: there is no sh")
	}
	deep := `head -c 7000000 /dev/zero | tr '\0' '['; head -c 7000000 /dev/zero | tr '\0' ']'; echo`
	transport, err := program([]string{shell, "-c", deep}, &lastLines{})()
	require.NoError(t, err)
	connection, err := transport.Connect(t.Context())
	require.NoError(t, err)
	defer connection.Close()
	_, err = connection.Read(t.Context())
	require.Error(t, err)
}

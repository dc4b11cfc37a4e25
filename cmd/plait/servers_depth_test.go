package main

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMessagesOfAnMCPProgramAreLimited(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("SKIPPED: there is no sh")
	}
	deep := `printf '{"jsonrpc":"2.0","method":"m","params":{"a":'; head -c 2000 /dev/zero | tr '\0' '['
head -c 2000 /dev/zero | tr '\0' ']'; echo '}}'`
	transport, err := program([]string{shell, "-c", deep}, &lastLines{})()
	require.NoError(t, err)
	connection, err := transport.Connect(t.Context())
	require.NoError(t, err)
	defer connection.Close()
	_, err = connection.Read(t.Context())
	require.NoError(t, err, "what nests too deep is emptied before it is decoded")
}

//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/dag"
)

// readers are the commands that read a FILE or another file, by what they read.
func readers(name string) [][]string {
	return [][]string{
		{"run", name, "--provider", "anthropic", "--model", "claude-test"},
		{"chat", name, "--provider", "anthropic", "--model", "claude-test"},
		{"resume", name, "--results", "r.json"},
		{"import", "--from", "chat", name}, {"log", name}, {"show", name}, {"verify", name},
		{"report", "-", "--prices", name},
	}
}

func TestDevicesDirectoriesAndHugeFilesAreNotRead(t *testing.T) {
	dir := t.TempDir()
	huge := filepath.Join(dir, "huge.json")
	require.NoError(t, os.WriteFile(huge, nil, 0o600))
	require.NoError(t, os.Truncate(huge, maxFile+1))
	journal := filepath.Join(dir, "huge.jsonl")
	require.NoError(t, os.WriteFile(journal, []byte(journalMagic), 0o600))
	require.NoError(t, os.Truncate(journal, maxFile+1))

	for name, reason := range map[string]string{
		"/dev/zero": "is a device", dir: "is a directory", huge: "larger than 1 GiB", journal: "larger than 1 GiB",
	} {
		for _, args := range readers(name) {
			_, errs, code := command("", args...)
			require.Equal(t, exitBad, code, args)
			require.Contains(t, errs, reason, args)
			require.Less(t, len(errs), 500)
		}
	}
}

func TestAnEndlessPipeIsReadUpToTheLimit(t *testing.T) {
	in := &limited{io.NopCloser(strings.NewReader(strings.Repeat(" ", 100))), "pipe", 99}
	_, err := io.Copy(io.Discard, in)
	require.ErrorContains(t, err, "pipe is larger")
	in = &limited{io.NopCloser(strings.NewReader(strings.Repeat(" ", 99))), "pipe", 99}
	_, err = io.Copy(io.Discard, in)
	require.NoError(t, err)
}

// TestReadingEndsWithTheSignal: whoever writes a pipe may keep it open for ever, and so may who never opens it.
func TestReadingEndsWithTheSignal(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	for _, name := range []string{fifo, std} {
		for _, args := range readers(name) {
			if name == std && (args[0] == "chat" || args[0] == "report") {
				continue // standard input has the messages, or is read once
			}
			ctx, end := context.WithCancel(t.Context())
			silent, writer := io.Pipe()
			var out, errs bytes.Buffer
			done := make(chan int, 1)
			go func() { done <- plait(ctx, args, silent, &out, &errs) }()
			end()
			require.Equal(t, exitBad, <-done, args)
			require.Contains(t, errs.String(), "interrupted", args)
			_ = writer.Close()
		}
	}
}

// TestSIGTERMEndsAReader is the same with a program and a real signal.
func TestSIGTERMEndsAReader(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	cmd := exec.Command("plait", "run", fifo, "--provider", "anthropic", "--model", "claude-test")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	require.NoError(t, cmd.Start())

	// The pipe can be opened for writing as soon as the command reads it.
	w, err := os.OpenFile(fifo, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer w.Close()
	_, err = w.WriteString("   ")
	require.NoError(t, err)

	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	var exit *exec.ExitError
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		require.True(t, errors.As(err, &exit), err)
		require.Equal(t, exitBad, exit.ExitCode())
		require.Equal(t, "plait: interrupted\n", errs.String())
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		require.Fail(t, "it goes on reading")
	}
}

// TestAPipeIsReadWhole: to look whether a FILE is a database takes nothing out of a pipe.
func TestAPipeIsReadWhole(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	go func() {
		if w, err := os.OpenFile(fifo, os.O_WRONLY, 0); err == nil {
			_ = dag.New().User("Through a pipe.").Write(w)
			_ = w.Close()
		}
	}()
	out, errs, code := command("", "log", fifo)
	require.Equal(t, exitDone, code, errs)
	require.Contains(t, out, "Through a pipe.")
}

// TestLostOutputIsAnError: /dev/full has no room for any byte.
func TestLostOutputIsAnError(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("SKIPPED: this system has no /dev/full:", err)
	}
	defer full.Close()
	file := filepath.Join(t.TempDir(), "talk.json")
	require.NoError(t, dag.New().User("Hi").Assistant("Hello.").Save(file))

	for _, args := range [][]string{
		{"help"}, {"-h"}, {"run", "-h"}, {"--version"}, {"completion", "bash"}, {"log", file},
		{"verify", file}, {"report", file}, {"render", "--as", "html", file},
	} {
		var errs bytes.Buffer
		require.Equal(t, exitBad, plait(t.Context(), args, strings.NewReader(""), full, &errs), args)
		require.Contains(t, errs.String(), "no space left", args)
	}
}

// TestMCPProgramThatIgnoresSignalsIsKilledSoon: neither it nor its child outlives the command for long.
func TestMCPProgramThatIgnoresSignalsIsKilledSoon(t *testing.T) {
	t.Cleanup(func() { serverGrace = time.Second })
	serverGrace = 50 * time.Millisecond
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("SKIPPED: there is no bash, which knows the ID of a process of its own")
	}
	pids := filepath.Join(t.TempDir(), "pids")
	// The child has the pipes of the program, and ignores the same signals.
	script := `trap "" TERM INT HUP; (echo $BASHPID >>"` + pids + `"; while :; do sleep 1000; done) & echo $$ >>"` + pids + `"; weather-mcp; while :; do sleep 1000; done`
	r := &runner{streams: &streams{err: io.Discard}, mcp: []string{"bash -c '" + script + "'"}}
	require.NoError(t, r.begin(t.Context()))

	began := time.Now()
	require.NoError(t, r.end())
	require.Less(t, time.Since(began), 4*serverGrace+patience/6)
	data, err := os.ReadFile(pids)
	require.NoError(t, err)
	require.Len(t, strings.Fields(string(data)), 2)
	for _, text := range strings.Fields(string(data)) {
		pid, err := strconv.Atoi(text)
		require.NoError(t, err)
		require.Eventually(t, func() bool { return syscall.Kill(pid, 0) != nil || isZombie(pid) }, patience, time.Millisecond)
	}
}

// isZombie reports whether a process has ended, and nobody has waited for it.
func isZombie(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(stat), ") Z ")
}

package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
)

// script is what a script's "run plait …" needs: the command without a process of its own, which takes ten times as long.
// "exec plait …" makes one.
type script struct {
	variables []string // the names of the environment variables
	input     string   // standard input of the next command
}

// inScript is the key of the script in the values of testscript.
type inScript struct{}

func scriptOf(ts *testscript.TestScript) *script { return ts.Value(inScript{}).(*script) }

// variablesOf returns the names of the variables that the scripts of a folder set.
func variablesOf(t *testing.T, folder string) (names []string) {
	files, err := filepath.Glob(filepath.Join(folder, "*.txtar"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, match := range regexp.MustCompile(`(?m)^env (\w+)=`).FindAllStringSubmatch(string(text), -1) {
			names = append(names, match[1])
		}
	}
	return names
}

// begin makes the script of an environment.
func begin(env *testscript.Env, variables []string) {
	s := &script{variables: slices.Clone(variables)}
	for _, v := range env.Vars {
		name, _, _ := strings.Cut(v, "=")
		s.variables = append(s.variables, name)
	}
	env.Values[inScript{}] = s
}

// inProcess guards the environment and the working directory of this process.
var inProcess sync.Mutex

// plait runs a command line as a process of the script does, and returns its exit code.
func (s *script) plait(ts *testscript.TestScript, args []string) int {
	inProcess.Lock()
	defer inProcess.Unlock()
	own := os.Environ()
	here, err := os.Getwd()
	ts.Check(err)
	defer func() {
		setEnvironment(own)
		ts.Check(os.Chdir(here))
	}()

	folder := ts.MkAbs(".")
	vars := []string{"PWD=" + folder}
	for _, name := range s.variables {
		if value := ts.Getenv(name); value != "" {
			vars = append(vars, name+"="+value)
		}
	}
	setEnvironment(vars)
	ts.Check(os.Chdir(folder))
	in := strings.NewReader(s.input)
	s.input = ""
	return plait(context.Background(), args, in, ts.Stdout(), ts.Stderr())
}

func setEnvironment(vars []string) {
	os.Clearenv()
	for _, v := range vars {
		name, value, _ := strings.Cut(v, "=")
		_ = os.Setenv(name, value)
	}
}

func scriptRun(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 0 || args[0] != "plait" {
		ts.Fatalf("usage: run plait ARGUMENT…")
	}
	if code := scriptOf(ts).plait(ts, args[1:]); (code == exitDone) == neg {
		ts.Fatalf("it exits with %d", code)
	}
}

func scriptInput(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: input FILE")
	}
	scriptOf(ts).input = ts.ReadFile(args[0])
}

func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || args[1] != "plait" {
		ts.Fatalf("usage: exits CODE plait ARGUMENT…")
	}
	if code := scriptOf(ts).plait(ts, args[2:]); strconv.Itoa(code) != args[0] {
		ts.Fatalf("it exits with %d, not %s", code, args[0])
	}
}

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/plait-dev/plait/bench/internal/pair"
)

const hello = `package main

import (
	"fmt"
	"os"
)

func main() { fmt.Fprintln(os.Stdout, "hello") }
`

// coldStart compares building an example with building a hello-world, both with an empty build cache.
func coldStart() pair.Case {
	return pair.Case{Name: "cold/build weather", Per: "build", Full: true, Rounds: 1, Variants: inFolder(func(dir string) ([]pair.Variant, error) {
		source := filepath.Join(dir, "hello.go")
		if err := os.WriteFile(source, []byte(hello), 0o644); err != nil {
			return nil, err
		}

		build := func(target string) func(*pair.Sample) error {
			return func(s *pair.Sample) error {
				// A new cache for each build: everything is compiled, the standard library too.
				cache, err := os.MkdirTemp(dir, "cache-")
				if err != nil {
					return err
				}
				cmd := exec.Command("go", "build", "-o", filepath.Join(dir, "out"), target)
				cmd.Env = append(os.Environ(), "GOCACHE="+cache)
				if text, err := cmd.CombinedOutput(); err != nil {
					return fmt.Errorf("%w\n%s", err, text)
				}

				// The time of the go command and the compilers it started, not that of this process.
				s.Set(pair.Cost{Value: float64(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime())})
				return os.RemoveAll(cache)
			}
		}
		return []pair.Variant{
			{Name: "examples/weather", Max: 1, Run: build("./examples/weather"), Close: func() error { return os.RemoveAll(dir) }},
			{Name: "hello-world", Max: 1, Run: build(source)},
		}, nil
	}), Goals: []pair.Goal{{Kind: pair.AtMost, Limit: 2.3}}}
}

// buildCommand builds the command in a folder of its own. It returns the path of the command, and a function to remove
// the folder.
func buildCommand() (string, func() error, error) {
	dir, err := os.MkdirTemp("", "plait-bench-")
	if err != nil {
		return "", nil, err
	}
	path := filepath.Join(dir, "plait")
	if text, err := exec.Command("go", "build", "-o", path, "./cmd/plait").CombinedOutput(); err != nil {
		return "", nil, errors.Join(fmt.Errorf("%w\n%s", err, text), os.RemoveAll(dir))
	}
	return path, func() error { return os.RemoveAll(dir) }, nil
}

// command measures the command: its size, and the time to print its help.
func command() []pair.Case {
	return []pair.Case{
		{Name: "cold/plait size", Unit: "B", Per: "binary", Full: true, Rounds: 1, Variants: func() ([]pair.Variant, error) {
			path, remove, err := buildCommand()
			if err != nil {
				return nil, err
			}

			return []pair.Variant{{Name: "cmd/plait", Close: remove, Run: func(s *pair.Sample) error {
				info, err := os.Stat(path)
				if err != nil {
					return err
				}
				s.Set(pair.Cost{Value: float64(info.Size())})
				return nil
			}}}, nil
		}, Goals: []pair.Goal{{Kind: pair.Value, Limit: 58_000_000}}},

		{Name: "cold/plait -h", Per: "run", Full: true, Variants: func() ([]pair.Variant, error) {
			path, remove, err := buildCommand()
			if err != nil {
				return nil, err
			}

			return []pair.Variant{{Name: "plait -h", Max: 5, Close: remove, Run: func(s *pair.Sample) error {
				sum := 0.0
				for range s.N {
					cmd := exec.Command(path, "-h")
					if err := cmd.Run(); err != nil {
						return err
					}
					sum += float64(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime())
				}
				s.Set(pair.Cost{Value: sum})
				return nil
			}}}, nil
		}, Goals: []pair.Goal{{Kind: pair.Value, Limit: 8e6}}},
	}
}

// Command skills gives an agent folders of instructions, loaded on demand: the system prompt lists each skill in one
// line, and a tool returns its instructions. Unused instructions cost nothing. The skills of this example are in the
// folder skills, one SKILL.md each. The model is scripted.
//
//	go run ./examples/skills
package main

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

//go:embed skills
var embedded embed.FS

func main() {
	skills, err := fs.Sub(embedded, "skills")
	if err == nil {
		err = run(context.Background(), os.Stdout, skills)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Skill is the arguments of the tool.
type Skill struct {
	Name string `json:"name" jsonschema:"the name of the skill, as in the list"`
}

// list returns a line for each skill: its name, and the first line of its instructions.
func list(skills fs.FS) (string, error) {
	files, err := fs.Glob(skills, "*/SKILL.md")
	if err != nil {
		return "", err
	}
	var lines strings.Builder
	for _, file := range files {
		text, err := fs.ReadFile(skills, file)
		if err != nil {
			return "", err
		}
		first, _, _ := bytes.Cut(text, []byte("\n"))
		fmt.Fprintf(&lines, "- %s: %s\n", path.Dir(file), bytes.TrimLeft(first, "# "))
	}
	return lines.String(), nil
}

func run(ctx context.Context, out io.Writer, skills fs.FS) error {
	known, err := list(skills)
	if err != nil {
		return err
	}

	// The name comes from the model. A file system of package fs refuses names leading out of it.
	load := executor.Func("load_skill", "Returns the instructions of a skill.", func(_ context.Context, in Skill) (string, error) {
		text, err := fs.ReadFile(skills, in.Name+"/SKILL.md")
		return string(text), err
	})
	agent := executor.Agent{
		Provider: apitest.NewScript(
			apitest.Call(apitest.Use("load_skill", Skill{"../../secrets"}), apitest.Use("load_skill", Skill{"release-notes"})),
			apitest.Say("Faster: a conversation opens twice as fast."),
		),
		System: "You write for users. Load a skill before a task that it is about:\n" + known,
		Tools:  []dag.Tool{executor.WithEffect(load, executor.EffectReadOnly)},
	}

	d, err := agent.Run(ctx, dag.New().User("Write the release note of: open is 2x faster."))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, d)
	return err
}

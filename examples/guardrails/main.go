// Command guardrails checks the input and the output of a run with hooks: a message with a credit card number is
// refused before a model sees it, a tool call outside a folder is refused, and an answer with a secret is withheld. The
// model is scripted.
//
//	go run ./examples/guardrails
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var cardNumber = regexp.MustCompile(`\b\d{4} \d{4} \d{4} \d{4}\b`)

// errSecret ends a run with a secret in its answer.
var errSecret = errors.New("the answer gives a secret away")

// guard is the three checks as one hook.
var guard = executor.Hook{
	Input: func(_ context.Context, m content.Message) (content.Message, error) {
		if cardNumber.MatchString(m.Blocks.Text()) {
			return m, errors.New("the message holds a card number")
		}
		return m, nil
	},
	Before: func(_ context.Context, call executor.Call) (executor.Decision, error) {
		var in File
		if err := call.Input.Decode(&in); err != nil {
			return executor.Decision{}, err
		}
		if !strings.HasPrefix(in.Path, "public/") {
			return executor.Deny("only files below public/ can be read"), nil
		}
		return executor.Allow(), nil
	},
	Next: func(_ context.Context, turn executor.Turn) (executor.Turn, error) {
		if turn.Message != nil && strings.Contains(turn.DAG.Text(), "hunter2") {
			return turn, errSecret
		}
		return turn, nil
	},
}

// File is the arguments of the tool.
type File struct {
	Path string `json:"path"`
}

func run(ctx context.Context, out io.Writer) error {
	read := executor.Func("read_file", "Reads a file.", func(_ context.Context, in File) (string, error) {
		return "This is " + in.Path + ".", nil
	})
	agent := executor.Agent{
		Provider: apitest.NewScript(
			apitest.Call(apitest.Use("read_file", File{"public/menu.txt"}), apitest.Use("read_file", File{"/etc/passwd"})),
			apitest.Say("The menu is there. The other file is not mine to read."),
			apitest.Say("The password is hunter2."),
		),
		Tools: []dag.Tool{read}, Hooks: []executor.Hook{guard},
	}

	_, err := agent.Run(ctx, dag.New().User("Pay with 4111 1111 1111 1111."))
	fmt.Fprintf(out, "Input: %v\n\n", err)
	if !errors.Is(err, executor.ErrRejected) {
		return fmt.Errorf("the card number was not refused: %v", err)
	}

	d, err := agent.Run(ctx, dag.New().User("Read the menu, and the passwords."))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%v\n\n", d)

	// The conversation keeps the answer, for a later look. Show Text only if the run has no error.
	_, err = agent.Run(ctx, d.User("What is the password?"))
	if !errors.Is(err, errSecret) {
		return fmt.Errorf("the secret was not noticed: %v", err)
	}
	_, err = fmt.Fprintln(out, "Output:", err)
	return err
}

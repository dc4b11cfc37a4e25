// Command approval lets an agent clean up a folder, and asks for approval before a file is deleted: the run pauses, the
// terminal shows the call with its arguments, and the user allows it, denies it with a reason, or edits the arguments.
// The model and the folder are simulated; only names in a map are deleted.
//
//	go run ./examples/approval
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

func main() {
	if err := run(context.Background(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Path is the arguments of delete_file.
type Path struct {
	Path string `json:"path" jsonschema:"the file's name"`
}

// run is the program. It reads the user's decisions from in and prints to out.
func run(ctx context.Context, in io.Reader, out io.Writer) error {
	files := folder{"film.mkv": true, "film-copy.mkv": true, "thesis.odt": true, "old.log": true}
	agent := executor.Agent{
		Provider: apitest.NewScript(model...),
		Strategy: executor.Sequential(), // the folder is not made for several deletions at once
		Hooks:    []executor.Hook{executor.RequireApproval("delete_file")},
	}
	d := dag.New().
		Tools(
			executor.Func("list_files", "Lists the folder.", files.list),
			executor.Func("delete_file", "Deletes a file for good.", files.remove),
		).
		User("Make some room in my folder.")

	answers := bufio.NewScanner(in)
	d, err := agent.Run(ctx, d)
	for errors.Is(err, executor.ErrPaused) {
		var replies []executor.Reply
		for _, p := range d.Pending() {
			replies = append(replies, ask(answers, out, p))
		}
		d, err = agent.Resume(ctx, d, replies...)
	}

	left, _ := files.list(ctx, struct{}{})
	fmt.Fprintf(out, "\n%v\n\nLeft in the folder: %s\n", d, strings.Join(left, ", "))
	return err
}

// ask shows a call and returns the user's decision. At the end of the input it denies the call.
func ask(answers *bufio.Scanner, out io.Writer, p dag.Pending) executor.Reply {
	fmt.Fprintf(out, "\nThe agent wants to run\n\n    %s %s\n\n", visible(p.Call.Name), visible(string(p.Call.Input)))
	for {
		fmt.Fprint(out, "allow, deny [why], or edit {other arguments}? ")
		if !answers.Scan() {
			fmt.Fprintln(out, "\nNo answer: denied.")
			return executor.Declined(p, "nobody was there to approve it")
		}

		word, rest, _ := strings.Cut(strings.TrimSpace(answers.Text()), " ")
		input := content.JSON(strings.TrimSpace(rest))
		switch {
		case word == "allow" && rest == "":
			return executor.Approved(p)
		case word == "deny":
			return executor.Declined(p, strings.TrimSpace(rest))
		case word == "edit" && input.IsObject():
			return executor.ApprovedWith(p, input) // the run checks it against the tool's schema
		}
		fmt.Fprintln(out, `Not understood. An edit looks like this: edit {"path": "some.txt"}`)
	}
}

// visible returns a model's text with escapes for all characters that a terminal would obey or not show. JSON stays the
// same JSON.
func visible(text string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// model holds the responses of the scripted model. One file name is a trick: a terminal that obeys its characters shows
// old.log.
var model = []apitest.Turn{
	apitest.Call(apitest.Use("list_files", nil)),
	apitest.Say("These four can go.").Call(
		apitest.Use("delete_file", Path{"film-copy.mkv"}),
		apitest.Use("delete_file", Path{"thesis.odt"}),
		apitest.Use("delete_file", Path{"film*"}),
		apitest.Use("delete_file", content.JSON("{\"path\":\"film.mkv\u202e\\u001b[9Dold.log\"}")),
	),
	apitest.Say("I made what room I was allowed to."),
}

// folder is the set of file names in it.
type folder map[string]bool

func (f folder) list(context.Context, struct{}) ([]string, error) {
	return slices.Sorted(maps.Keys(f)), nil
}

func (f folder) remove(_ context.Context, in Path) (string, error) {
	if !f[in.Path] {
		return "", fmt.Errorf("there is no file %q", in.Path)
	}
	delete(f, in.Path)
	return "deleted", nil
}

package main

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/describe"
)

// pickArgument is the argument of a command that lets the user choose.
var pickArgument = []string{"?"}

// pick lets the user choose, at a terminal.
func (c *chat) pick(ctx context.Context, title string, choices []choice, free bool) (string, error) {
	if !c.console.editing() {
		return "", errors.New("a choice needs a terminal")
	}
	if len(choices) == 0 && !free {
		return "", errors.New("there is nothing to choose")
	}
	return c.console.ui.pick(ctx, title, choices, free)
}

// pickMessage goes back to a message of the user, and puts it into the editor.
func (c *chat) pickMessage(ctx context.Context) error {
	var choices []choice
	var texts []string
	for _, m := range slices.Backward(c.d.Messages()) {
		if m.Role == content.User && m.Blocks.Text() != "" {
			texts = append(texts, m.Blocks.Text())
			choices = append(choices, choice{strconv.Itoa(len(texts)), describe.Text(m.Blocks)})
		}
	}

	chosen, err := c.pick(ctx, "Go back to, and write anew:", choices, false)
	if err != nil {
		return err
	}
	if err := c.back(ctx, []string{chosen}); err != nil {
		return err
	}
	n, _ := strconv.Atoi(chosen)
	c.console.ui.do(func() { c.console.ui.view.editor.paste(texts[n-1]) })
	return nil
}

// modelChoices returns the models of the conversation and of the price file.
func (c *chat) modelChoices() []choice {
	known := map[string]string{c.model: "of " + c.provider}
	for _, n := range c.d.Nodes() {
		if m, ok := n.Message(); ok && m.Answer.Model != "" && known[m.Answer.Model] == "" {
			known[m.Answer.Model] = "answered in this conversation"
		}
	}
	for name := range c.prices.Prices {
		if known[name] == "" {
			known[name] = "in " + c.pricesFile
		}
	}

	var choices []choice
	for _, name := range slices.Sorted(maps.Keys(known)) {
		choices = append(choices, choice{name, known[name]})
	}
	return choices
}

// resume continues another conversation.
func (c *chat) resume(ctx context.Context, args []string) error {
	if c.file == "" && c.d.Len() > 0 {
		return errors.New("this conversation is not saved: it would be lost")
	}
	if len(args) == 0 || slices.Equal(args, pickArgument) {
		choices, err := c.others(ctx)
		if err != nil {
			return err
		}
		name, err := c.pick(ctx, "Continue:", choices, false)
		if err != nil {
			return err
		}
		args = []string{name}
	}

	// If it cannot be opened, the chat stays where it is.
	file, journal, d, before := c.file, c.journal, c.d, c.before
	c.journal, c.d = nil, dag.DAG{}
	err := c.open(args[0])
	if err == nil {
		_, _, err = c.agent(c.d)
	}
	if err != nil {
		err = errors.Join(err, c.closeJournal())
		c.file, c.journal, c.d, c.before = file, journal, d, before
		return err
	}
	if journal != nil {
		if err := journal.Close(); err != nil {
			return err
		}
	}

	// Calls that are open in this file come from somebody else.
	c.opened.asked.Store(false)
	c.greet()
	return c.resumePause(ctx)
}

// others returns the conversations beside this one: of its database, or in its folder.
func (c *chat) others(ctx context.Context) ([]choice, error) {
	var choices []choice
	if file, key := splitName(c.file); file != "" {
		all, err := c.store(file, false)
		if err != nil {
			return nil, err
		}
		for other, err := range all.Conversations(ctx, "") {
			if err != nil {
				return nil, err
			}
			if other != key {
				choices = append(choices, choice{file + mark + other, ""})
			}
		}
		return choices, nil
	}

	folder := filepath.Dir(c.file)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name := filepath.Join(folder, e.Name())
		suffix := filepath.Ext(name)
		if name != filepath.Clean(c.file) && (suffix == ".json" || suffix == ".jsonl") && !isUnreadable(name, e) {
			choices = append(choices, choice{name, ""})
		}
	}
	return choices, nil
}

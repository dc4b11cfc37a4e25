package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/internal/secret"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/report"
)

// chatCommands are the commands of a chat, in the order of /help. It is a function because /help is one of them.
func chatCommands() []slashCommand {
	return []slashCommand{
		{"/back", "[N | NODE | ?]", "go back N exchanges (1), or to a branch or node", (*chat).back},
		{"/fork", "[NAME]", "name this point, for /back and plait fork", (*chat).fork},
		{"/retry", "", "send the last message again; the response is kept", (*chat).retry},
		{"/model", "[[PROVIDER] MODEL]", "show or change the model; ? lists some", (*chat).changeModel},
		{"/resume", "[FILE | ?]", "continue another conversation", (*chat).resume},
		{"/cost", "", "show the tokens and the cost so far", (*chat).showCost},
		{"/show", "[NODE]", "show the conversation, a branch or a node", (*chat).showNode},
		{"/help", "", "show this list", (*chat).help},
		{"/quit", "", "end the chat", (*chat).quit},
	}
}

// slashCommand is a command of a chat. An error of errQuit ends the chat; others are printed.
type slashCommand struct {
	name, arguments, help string
	do                    func(c *chat, ctx context.Context, args []string) error
}

func (s slashCommand) usage() string { return strings.TrimSpace(s.name + " " + s.arguments) }

// maxArguments returns how many arguments the command may have. Those around "|" exclude each other.
func (s slashCommand) maxArguments() int {
	return len(strings.Fields(s.arguments)) - 2*strings.Count(s.arguments, "|")
}

func commandNames() []string {
	var names []string
	for _, s := range chatCommands() {
		names = append(names, s.name)
	}
	return names
}

// command executes a line beginning with a slash.
func (c *chat) command(ctx context.Context, line string) error {
	fields := strings.Fields(line)
	for _, s := range chatCommands() {
		if s.name != fields[0] {
			continue
		}
		if len(fields)-1 > s.maxArguments() {
			c.screen.note("usage: %s", s.usage())
			return nil
		}

		// Some errors end the chat. Any other error is printed, and the chat continues.
		err := s.do(c, ctx, fields[1:])
		if err == nil || errors.Is(err, errQuit) || errors.Is(err, errInterrupted) || errors.Is(err, errPaused) {
			return err
		}
		c.screen.problem(err)
		return nil
	}

	c.screen.note("%s is no command: /help lists them; // begins a message with a slash", fields[0])
	return nil
}

func (c *chat) quit(context.Context, []string) error { return errQuit }

func (c *chat) help(context.Context, []string) error {
	for _, s := range chatCommands() {
		fmt.Fprintf(c.out, "%-25s %s\n", s.usage(), s.help)
	}
	fmt.Fprintln(c.out, "Ctrl-C stops a response. A line that ends in \\ continues in the next one.")
	if c.console.editing() {
		fmt.Fprint(c.out, "Ctrl-J begins a line. Ctrl-O prints whole results of tools.\n"+
			"Ctrl-R continues another conversation, Ctrl-S changes the model.\n"+
			"Escape, pressed twice, goes back to a message and lets you write it anew.\n")
	}
	return nil
}

// retry runs the model again on the last message. A response to it is kept as a branch.
func (c *chat) retry(ctx context.Context, _ []string) error {
	before := c.d.Back(1)
	if before.Err() != nil {
		return errNoMessage
	}

	// Going back drops the last message and everything after it. If it has a response, the head gets a ref, to keep the
	// response.
	nodes := c.d.Nodes()
	at := slices.IndexFunc(nodes, func(n *node.Node) bool {
		m, ok := n.Message()
		return ok && m.Role == content.User && !before.Contains(n)
	})
	from, left := c.d, ""
	if slices.ContainsFunc(nodes[at:], isResponse) {
		from, left = c.leave()
	}

	c.noteBranch(left)
	return c.respond(ctx, from.AtName(nodes[at].ID().String()))
}

func isResponse(n *node.Node) bool {
	m, ok := n.Message()
	return ok && m.Role == content.Assistant
}

var errNoMessage = errors.New("there is no message yet")

// leave returns the conversation with a ref for its head, and the name of the ref. The head can then move.
func (c *chat) leave() (d dag.DAG, name string) {
	name = branchName(c.d)
	return c.d.WithRef(name), name
}

// noteBranch prints the name of the branch left behind. "" prints nothing.
func (c *chat) noteBranch(name string) {
	if name != "" {
		c.screen.note("what you leave is kept as %s: /back %[1]s returns to it", name)
	}
}

// fork names the head.
func (c *chat) fork(_ context.Context, args []string) error {
	if c.d.Len() == 0 {
		return errNoMessage
	}
	name := branchName(c.d)
	if len(args) > 0 {
		name = args[0]
	}

	if err := c.move(c.d.WithRef(name)); err != nil {
		return err
	}
	c.screen.note("this point is %s: /back %[1]s returns to it", name)
	return nil
}

// branchName returns an unused name for a ref of the head.
func branchName(d dag.DAG) string {
	for n := 1; ; n++ {
		name := fmt.Sprintf("branch-%d", n)
		if !isRef(d, name) {
			return name
		}
	}
}

// back moves the head. A head that would be lost gets a ref.
func (c *chat) back(ctx context.Context, args []string) error {
	if slices.Equal(args, pickArgument) {
		return c.pickMessage(ctx)
	}
	exchanges := 1
	var name string
	if len(args) > 0 {
		// A number counts exchanges, unless it is the name of a ref.
		n, err := strconv.Atoi(args[0])
		if exchanges = n; err != nil || isRef(c.d, args[0]) {
			name = args[0]
		} else if n < 1 {
			return errors.New("go back by at least one exchange, or give a name: /back NAME")
		}
	}

	// Try it once to see whether the head would be lost. If so, name the head and go back again, with the ref.
	from, left := c.d, ""
	to, err := backTo(from, exchanges, name)
	if err != nil {
		return err
	}
	if !reachesHeads(to, from) {
		from, left = c.leave()
		if to, err = backTo(from, exchanges, name); err != nil {
			return err
		}
	}
	if err := c.move(to); err != nil {
		return err
	}

	c.noteBranch(left)
	if text := lastText(to); text != "" {
		c.screen.row("back after: %s", text)
	} else {
		c.screen.note("back at the beginning")
	}
	return nil
}

// backTo returns the conversation at a name, or so many exchanges before its end if the name is "".
func backTo(d dag.DAG, exchanges int, name string) (dag.DAG, error) {
	if name != "" {
		return find(d, name)
	}
	to := d.Back(exchanges)
	if to.Err() != nil {
		return d, fmt.Errorf("the conversation does not have %s", describe.Count(exchanges, "exchange"))
	}
	return to, nil
}

// lastText returns the text of the last message.
func lastText(d dag.DAG) string {
	messages := d.Messages()
	if len(messages) == 0 {
		return ""
	}
	return describe.Text(messages[len(messages)-1].Blocks)
}

// move makes d the conversation.
func (c *chat) move(d dag.DAG) error {
	if err := d.Err(); err != nil {
		return err
	}
	if err := c.keep(d); err != nil {
		return err
	}
	c.d = d
	c.showContext()
	return nil
}

func (c *chat) changeModel(ctx context.Context, args []string) error {
	if slices.Equal(args, pickArgument) {
		name, err := c.pick(ctx, "The model:", c.modelChoices(), true)
		if err != nil {
			return err
		}
		if args = strings.Fields(name); len(args) == 0 || len(args) > 2 {
			return errNoChoice
		}
	}
	if len(args) == 0 {
		fmt.Fprintln(c.out, safetext.Block(strings.TrimSpace(c.provider+" "+c.model+" "+secret.URL(c.baseURL))))
		return nil
	}

	// If the new model cannot be used, the chat keeps the old one.
	before := c.runner
	c.model = args[len(args)-1]
	switch family := providerOf(c.model); {
	case len(args) == 2:
		c.provider = args[0]
	case family != "" && c.baseURL == "" && !strings.HasPrefix(c.provider, family):
		c.provider = family
	}

	// A base URL belongs to one provider.
	if c.provider != before.provider {
		c.baseURL, c.byFile = "", false
	}
	_, d, err := c.agent(c.d)
	if err != nil {
		c.runner = before
		return err
	}
	c.d = d
	c.screen.note("the model is %s of %s", c.model, c.provider)
	c.showStatus()
	return nil
}

func (c *chat) showCost(context.Context, []string) error {
	sum := &report.Costs{Prices: c.prices.Prices}
	for _, n := range everyNode(c.d).WithChildren() {
		if m, ok := n.Message(); ok && m.Role == content.Assistant {
			sum.Add(m.Answer.Model, m.Answer.Usage)
		}
	}

	models, total := sum.List()
	if len(models) != 1 { // the row of a single model is the total
		models = append(models, report.ModelSpending{Model: "total", Spending: total})
	}
	t := reportText{reportOutput: reportOutput{Total: report.Summary{Models: models}}}
	if c.prices.Prices != nil {
		t.Currency = c.prices.Currency
	}
	t.models()
	if _, err := c.out.Write(t.out.Bytes()); err != nil {
		return err
	}

	// The next request costs less if the prompt cache served the last one.
	calls := cachedCalls("", c.d)
	if n := len(calls); n > 0 && calls[n-1].Before != "" {
		figures, why, _ := strings.Cut(calls[n-1].text, ": ")
		fmt.Fprintln(c.out, safetext.Line("last request: "+figures, c.screen.width-1))
		if why != "" {
			fmt.Fprintln(c.out, "  "+safetext.Line(why, c.screen.width-3))
		}
	}
	return nil
}

// showNode prints the conversation or a branch as a graph, or the content of a node.
func (c *chat) showNode(_ context.Context, args []string) error {
	d := c.d
	if len(args) > 0 {
		at, err := find(c.d, args[0])
		if err != nil {
			return err
		}
		// The name of a ref is a branch. Any other name is a node.
		if !isRef(c.d, args[0]) && at.Head() != nil {
			_, err = fmt.Fprintln(c.out, safetext.Block(whole(at.Head())))
			return err
		}
		d = at
	}

	if err := d.WriteLog(c.out, &dag.LogOptions{Width: c.screen.width, Color: colorOf(c.out)}); err != nil || len(args) > 0 {
		return err
	}
	for i, ref := range c.d.Refs() {
		if i == 0 {
			fmt.Fprintln(c.out, "\nbranches:")
		}
		fmt.Fprintln(c.out, "  "+safetext.Line(ref.Name+": "+lastText(c.d.AtName(ref.Name)), c.screen.width-3))
	}
	return nil
}

// isRef reports whether name is the name of a ref.
func isRef(d dag.DAG, name string) bool {
	return slices.ContainsFunc(d.Refs(), func(r dag.Ref) bool { return r.Name == name })
}

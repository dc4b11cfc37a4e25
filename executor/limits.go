package executor

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/node"
)

// Limits end a run. Each has a stop reason of its own, and every call has its result when a run stops.
//
// Sub-agents and other runs inside tools count too, except in CallsPerTurn and Repeats. If a run inside a tool uses up
// a limit of a run around it, it stops with the stop reason of that limit. Its call gets its result, and the run around
// it stops after the results of the message. Pauses, at any depth, change nothing in this.
type Limits struct {
	// Turns is the number of requests. The calls of the last response are executed, and then the run stops with
	// content.StopMaxTurns. Negative is no limit. Defaults to 50, not counting runs inside tools.
	//
	// A run without progress stops earlier, whatever the limit:
	//
	//   - after 2 responses in a row whose calls were cut off at the limit on output tokens, with content.StopMaxTokens
	//   - after 2 empty responses in a row with content.StopPause, with content.StopLoop
	//   - after 10 responses in a row whose calls were all refused (unknown tools, wrong arguments, calls that the
	//     options forbid), with content.StopLoop
	Turns int
	// Calls is the number of tool calls, failed, denied and unknown ones included. Calls beyond it are not executed,
	// and the run stops with content.StopCallLimit. Calls of several runs inside tools that run at the same time count
	// in the order in which their messages arrive. Defaults to no limit.
	Calls int
	// CallsPerTurn is the number of tool calls executed for one message. Calls beyond it get an error result, and the
	// run continues. Defaults to no limit.
	CallsPerTurn int
	// Tokens is the number of tokens, by Usage.Total. Once it is reached, no request is sent and no call is executed,
	// and the run stops with content.StopTokenLimit. Defaults to no limit.
	Tokens int64
	// Cost is how much the run may cost. It needs [Agent.Prices]. Once it is reached, no request is sent and no call is
	// executed, and the run stops with content.StopCostLimit. A model without a price stops the run too, because the
	// cost is then unknown. Tokens in a tool's own Result.Usage do not count, because they name no model. A negative or
	// infinite Cost, or NaN, refuses the run with a [LimitError]. Defaults to no limit.
	Cost float64
	// Time is how long the run may take, without its pauses. Then the request and the tools are cancelled, and the run
	// stops with content.StopTimeLimit. Defaults to no limit.
	Time time.Duration
	// Repeats is how often in a row a model may make the same call with the same arguments, in one response or in
	// several. The order of members in the arguments does not matter. At this count, the model is warned after the
	// results. At twice the count, calls are refused and the run stops with content.StopLoop. A message from a queue
	// resets the count. Defaults to no limit.
	Repeats int
	// Depth is how deep runs inside tools may nest below this one: 1 is a sub-agent without sub-agents of its own.
	// Negative is none at all. A run that would nest deeper is refused. Defaults to 8.
	Depth int
}

func (l Limits) withDefaults() Limits {
	if l.Turns == 0 {
		l.Turns = 50
	}
	if l.Depth == 0 {
		l.Depth = 8
	}
	return l
}

// checkMoney returns an error if the limit on cost or a price is not an amount of money.
func (a Agent) checkMoney() error {
	if !isAmount(a.Limits.Cost) {
		return &LimitError{Field: "Cost", Value: a.Limits.Cost}
	}

	if err := a.Prices.Check(); err != nil {
		return fmt.Errorf("executor: Agent.Prices: %w", err)
	}
	return nil
}

// isAmount reports whether f is finite and not negative.
func isAmount(f float64) bool { return f >= 0 && !math.IsInf(f, 1) }

// Limits on responses in a row that bring a run no further. [Limits.Turns] documents them.
const (
	maxCut     = 2
	maxEmpty   = 2
	maxRefused = 10
)

// stalls counts the responses in a row that bring a run no further.
type stalls struct {
	cut     int // their calls were cut off
	empty   int // the provider's own tools were still running, and nothing arrived
	refused int // all of their calls were refused
}

// add counts a response. It reports whether the run has to stop.
func (s *stalls) add(answer api.Response) (stop bool) {
	count(&s.cut, answer.Stop == content.StopMaxTokens && hasCalls(answer.Blocks))
	return count(&s.empty, answer.Stop == content.StopPause && silent(answer)) >= maxEmpty
}

// refuse counts the calls of a response. It reports whether the run has to stop.
func (s *stalls) refuse(all bool) (stop bool) { return count(&s.refused, all) >= maxRefused }

// count counts what happens in a row.
func count(n *int, again bool) int {
	if *n++; !again {
		*n = 0
	}
	return *n
}

// ledger counts the tokens, the cost, the turns and the calls of a run and of the runs inside its tools. They count in
// the ledgers of the runs around it as well.
type ledger struct {
	limits Limits // as the program set them, without defaults: runs inside tools do not count in the default of Turns
	prices api.Prices
	around *ledger

	mu       sync.Mutex // guards the fields below
	tokens   content.Usage
	tools    content.Usage // the part of tokens used inside tools
	cost     float64       // finite and not negative
	unpriced string        // a used model without a price; "" if all have one
	// partial reports that cost is an estimate, or lacks something other than an unpriced model: usage reported by
	// tools, unknown cost from before a pause, incomplete usage.
	partial bool
	// The turns and the calls, and the part of them inside tools. Once a call was refused for the limit, calls is
	// greater than the limit.
	turns, innerTurns int
	calls, innerCalls int
}

// spend counts the tokens of a request.
func (l *ledger) spend(model string, u content.Usage) {
	l.note(model, u, false)
	for out := l.around; out != nil; out = out.around {
		out.note(model, u, true)
	}
}

func (l *ledger) note(model string, u content.Usage, inTool bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tokens = l.tokens.Plus(u)
	if inTool {
		l.tools = l.tools.Plus(u)
	}
	l.partial = l.partial || u.Incomplete

	// Without prices, only a limit on cost asks for the price of a model.
	if u == (content.Usage{}) || l.prices == nil && l.limits.Cost <= 0 {
		return
	}

	price, known := l.prices.Of(model)
	if !known {
		l.unpriced = model
		return
	}

	// All prices of a free model are 0. A price for one direction only is incomplete.
	if price != (api.Price{}) && (u.Input > 0 && price.Input == 0 || u.Output > 0 && price.Output == 0) {
		l.unpriced = model
	}
	cost, whole := price.Cost(u)
	l.partial = l.partial || !whole
	l.cost = min(max(l.cost+cost, 0), math.MaxFloat64) // a server that miscounts reports negative tokens
}

// toolUsage returns the tokens used inside tools until now.
func (l *ledger) toolUsage() content.Usage {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tools
}

// spentCost returns the known cost of the run, and whether that is the whole cost.
func (l *ledger) spentCost() (cost float64, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cost, l.prices != nil && l.unpriced == "" && !l.partial
}

// reached returns the stop reason and detail for a reached limit on tokens or cost, of this run or one around it. The
// stop reason is "" if there is none.
func (l *ledger) reached() (stop content.Stop, detail string) {
	for at := l; at != nil && stop == ""; at = at.around {
		stop, detail = at.over()
		if stop != "" && at != l && detail == "" {
			detail = textOuterLimit
		}
	}
	return stop, detail
}

func (l *ledger) over() (content.Stop, string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.limits.Tokens > 0 && l.tokens.Total() >= l.limits.Tokens:
		return content.StopTokenLimit, ""
	case l.limits.Cost > 0 && l.unpriced != "":
		return content.StopCostLimit, "the price of " + l.unpriced + " is not known"
	case l.limits.Cost > 0 && l.cost >= l.limits.Cost:
		return content.StopCostLimit, ""
	}
	return "", ""
}

// claimTurn counts a turn of this run, or of one inside its tools. It returns false, and counts nothing, if this run or
// one around it has no turn left. All these ledgers stay locked until the answer is known, so that only one of several
// concurrent runs gets the last turn.
func (l *ledger) claimTurn(inTool bool) bool {
	if l == nil {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.limits.Turns > 0 && l.turns >= l.limits.Turns || !l.around.claimTurn(true) {
		return false
	}

	l.turns++
	if inTool {
		l.innerTurns++
	}
	return true
}

// claimCall is claimTurn for a call, with one difference: a call refused for the limit of this run counts in this run.
// The count then stays above the limit, so that the run stops even if it pauses first.
func (l *ledger) claimCall(inTool bool) bool {
	if l == nil {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	within := l.limits.Calls <= 0 || l.calls < l.limits.Calls

	// A refused call counts only in the run whose limit refused it.
	if within && !l.around.claimCall(true) {
		return false
	}

	l.calls++
	if inTool {
		l.innerCalls++
	}
	return within
}

// used returns the stop reason for a used-up limit on turns or calls, of this run or one around it, or "". outer
// reports that it is a limit of a run around this one.
//
// A limit on calls is used up once a call was refused for it. It has priority, because it stops the run of that call
// anyway.
func (l *ledger) used() (stop content.Stop, outer bool) {
	for at := l; at != nil; at = at.around {
		at.mu.Lock()
		turns, refused := at.limits.Turns > 0 && at.turns >= at.limits.Turns, at.refused()
		at.mu.Unlock()
		switch {
		case refused:
			return content.StopCallLimit, at != l
		case turns && stop == "":
			stop, outer = content.StopMaxTurns, at != l
		}
	}
	return stop, outer
}

// textOuterLimit is the detail of a run that was ended by a limit of a run around it.
const textOuterLimit = "the limit is that of a run around this one"

// outerTurns is textOuterLimit if the run's own limit on turns is not reached, or "".
func (l *ledger) outerTurns() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.limits.Turns > 0 && l.turns >= l.limits.Turns {
		return ""
	}
	return textOuterLimit
}

// outerCalls is textOuterLimit if no call was refused for the run's own limit, or "".
func (l *ledger) outerCalls() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refused() {
		return ""
	}
	return textOuterLimit
}

// refused reports whether a call was refused for the limit on calls of this run. l.mu must be held.
func (l *ledger) refused() bool { return l.limits.Calls > 0 && l.calls > l.limits.Calls }

// inner returns the turns and the calls inside tools.
func (l *ledger) inner() (turns, calls int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.innerTurns, l.innerCalls
}

// repeats counts equal calls in a row.
type repeats struct {
	name, input string
	times       int
	warned      bool // of this call
}

// add counts the calls of a message. It returns a warning for the model, or "", and whether the run has to stop.
func (p *repeats) add(calls []content.ToolUse, limit int) (words string, stop bool) {
	warning := false
	for _, c := range calls {
		input := canonical(c.Input)
		if p.times == 0 || p.name != c.Name || p.input != input {
			*p, warning = repeats{name: c.Name, input: input}, false
		}
		p.times++
		stop = stop || p.times >= 2*limit
		if p.times >= limit && !p.warned {
			p.warned, warning = true, true
		}

		// Further equal calls in the message renew the text, so that it has the full count.
		if warning {
			words = fmt.Sprintf(textRepeated, p.name, p.times)
		}
	}
	return words, stop
}

// canonical returns arguments in a form independent of the order of members and of spaces. It keeps every digit of a
// number, so that two long IDs stay different.
func canonical(input content.JSON) string { return string(orEmpty(input).Canonical()) }

// take counts tokens reported by tools. They name no model, so the known cost becomes partial.
func (l *ledger) take(u content.Usage) {
	if u == (content.Usage{}) {
		return
	}
	for ; l != nil; l = l.around {
		l.mu.Lock()
		l.tokens, l.tools = l.tokens.Plus(u), l.tools.Plus(u)
		l.partial = true
		l.mu.Unlock()
	}
}

// begin restores the ledger after a pause. open is the number of calls still without a result, which were counted
// before. It reports whether a call was refused for the limit on calls. The ledgers of the runs around it count all this
// already.
func (l *ledger) begin(s node.Spent, open int) (refused bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tokens = s.Usage.Plus(s.ToolUsage)
	l.tools, l.cost = s.ToolUsage, s.Cost
	l.partial = s.Run != "" && !s.CostKnown
	l.turns, l.innerTurns = s.Turns+s.InnerTurns, s.InnerTurns
	l.calls, l.innerCalls = s.Calls+open+s.InnerCalls, s.InnerCalls
	return l.refused()
}

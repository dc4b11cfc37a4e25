package providers

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/pattern"
	"github.com/plait-dev/plait/node"
)

// truth is the reference model of one conversation. It knows the messages that there must be, what the seams saw and
// nothing else: a message that is new must be explained by what somebody said, and from then on it may not change.
type truth struct {
	lines            map[int][]*line  // by task: 0 is the conversation itself, any other number that of a sub-agent's call
	said             map[int]line     // the response of a model that is not yet in the conversation
	shown            map[int][]string // the parts of a response that broke off, unless a whole one followed
	queue            []string         // the messages that wait in the queue
	facts            map[int]*fact    // of each call, by its number
	erased           map[string]bool  // the words that may be found nowhere
	merged, redacted bool
	summary          *line // of the compaction
}

// line is a message as it must be.
type line struct {
	role    content.Role
	text    string
	calls   []string // the ID and the number of each call
	results []result
}

type result struct {
	id, text string
	failed   bool
}

// fact is what is known of a tool call.
type fact struct {
	tool    string
	dice    uint64
	ran     int     // how often its tool was called
	may     int     // how often somebody allowed to call it again
	key     string  // its idempotency key
	allowed bool    // by a person, if its tool needs approval
	given   string  // what its tool returned at last, or what came from outside
	fails   bool    // its result may be an error
	any     bool    // its result may have any text: a limit of the run around it may end a sub-agent
	final   *result // its result, once that is in the conversation
}

func newTruth() *truth {
	return &truth{
		lines: map[int][]*line{}, said: map[int]line{}, shown: map[int][]string{}, facts: map[int]*fact{},
		erased: map[string]bool{},
	}
}

// clone returns a copy that shares only messages, which do not change.
func (t *truth) clone() *truth {
	c := *t
	c.lines, c.said, c.shown, c.erased = maps.Clone(t.lines), maps.Clone(t.said), maps.Clone(t.shown), maps.Clone(t.erased)
	c.queue, c.facts = slices.Clone(t.queue), make(map[int]*fact, len(t.facts))
	for task, lines := range c.lines {
		c.lines[task] = slices.Clip(lines)
	}
	for n, f := range t.facts {
		copied := *f
		c.facts[n] = &copied
	}
	return &c
}

// lineOf returns a message as the model sees it.
func lineOf(m content.Message) (l line) {
	l.role = m.Role
	for _, b := range m.Blocks.All() {
		switch b := b.(type) {
		case content.Text:
			l.text += b.Text
		case content.ToolUse:
			l.calls = append(l.calls, b.ID)
		case content.ToolResult:
			l.results = append(l.results, result{b.CallID, b.Content.Text(), b.IsError})
		}
	}
	return l
}

func (l line) equal(o line) bool {
	return l.role == o.role && l.text == o.text && slices.Equal(l.calls, o.calls) && slices.Equal(l.results, o.results)
}

// agree compares a whole conversation with the model, with those of its sub-agents. It returns what is wrong, or "".
func (t *truth) agree(d dag.DAG) string {
	if why := t.agreeTask(0, d.Messages()); why != "" {
		return why
	}
	for _, n := range d.WithChildren() {
		if e, ok := n.Payload().(node.ToolExecution); ok && e.Child.Len() > 0 && !n.Redacted() {
			if task := taskOf(dag.FromNode(n).Messages()); task > 0 {
				if why := t.agreeTask(task, dag.FromNode(n).Messages()); why != "" {
					return fmt.Sprintf("in the sub-agent of call %d: %s", task, why)
				}
			}
		}
	}
	return ""
}

// taskOf returns the number of the call that a sub-agent's conversation belongs to, and 0 for any other conversation.
func taskOf(messages []content.Message) (task int) {
	if len(messages) > 0 {
		_, _ = fmt.Sscanf(messages[0].Blocks.Text(), "task %d", &task)
	}
	return task
}

func (t *truth) agreeTask(task int, got []content.Message) string {
	for i, m := range got {
		l := lineOf(m)
		if lines := t.lines[task]; i < len(lines) {
			if !lines[i].equal(l) {
				return fmt.Sprintf("message %d is %+v instead of %+v", i, l, *lines[i])
			}
			continue
		}
		if why := t.explain(task, l); why != "" {
			return fmt.Sprintf("message %d, %+v: %s", i, l, why)
		}
	}
	if n := len(t.lines[task]); len(got) < n {
		return fmt.Sprintf("there are %d messages instead of %d: %+v is lost", len(got), n, *t.lines[task][n-1])
	}
	return ""
}

// explain adds a new message if it is what was said, and returns why it is not.
func (t *truth) explain(task int, l line) string {
	lines, waiting := t.lines[task], []string(nil)
	if len(lines) > 0 {
		waiting = lines[len(lines)-1].calls
	}
	said, whole := t.said[task]
	switch {
	case len(l.results) > 0:
		return t.explainResults(task, l, waiting)
	case len(waiting) > 0:
		return "the calls before it have no results"
	case l.role == content.User && task > 0 && len(lines) == 0 && l.text == fmt.Sprint("task ", task):
	case l.role == content.User && task == 0 && len(t.queue) > 0 && t.queue[0] == l.text:
		t.queue = t.queue[1:]
	case l.role == content.Assistant && whole && said.equal(l):
		delete(t.said, task)
	case l.role == content.Assistant && !whole && l.calls == nil && slices.Contains(t.shown[task], l.text):
	default:
		return fmt.Sprintf("nobody said it: the model said %+v, and %v waits", said, t.queue)
	}
	delete(t.shown, task)
	t.lines[task] = append(slices.Clip(lines), &l)
	return ""
}

// explainResults checks results. While a tool phase is open, each is a message of its own.
func (t *truth) explainResults(task int, l line, calls []string) string {
	for i, r := range l.results {
		if !slices.Contains(calls, r.id) || len(l.results) > 1 && (len(calls) != len(l.results) || calls[i] != r.id) {
			return fmt.Sprintf("the calls before it are %v", calls)
		}
		if why := t.facts[number(r.id)].explain(r); why != "" {
			return why
		}
	}
	if len(l.results) == len(calls) {
		t.lines[task] = append(slices.Clip(t.lines[task]), &l)
	}
	return ""
}

// explain checks the result of a call.
func (f *fact) explain(r result) string {
	switch {
	case f == nil:
		return "nobody made the call " + r.id
	case f.final != nil && *f.final != r:
		return fmt.Sprintf("the result of %s was %+v", r.id, *f.final)
	case f.final == nil && (r.failed && !f.fails || !r.failed && !f.any && r.text != f.given || r.text == ""):
		return fmt.Sprintf("the tool of %s returned %q (an error may be: %v)", r.id, f.given, f.fails)
	}
	f.final = &r
	return ""
}

// call notes that a tool is called, and returns why it may not be.
func (f *fact) call(key string) string {
	f.ran++
	switch {
	case f.final != nil:
		return fmt.Sprintf("a call is executed whose result is there: %+v", *f.final)
	case f.tool == "ask" && !f.allowed:
		return "a call is executed that nobody approved"
	case f.tool != "read" && f.tool != "once" && f.ran > 1+f.may:
		return "a call of unknown effect is executed again without a word"
	case f.key != "" && f.key != key:
		return fmt.Sprintf("the key of a call was %s and is %s", f.key, key)
	}
	f.key = key
	return ""
}

// mayFail allows every call without a result to end in an error: what comes next may cancel them.
func (t *truth) mayFail() {
	for _, f := range t.facts {
		f.fails = f.fails || f.final == nil
	}
}

// revive makes the model of the last save that of a program which goes on from it. What tools did after that stays done.
func (t *truth) revive(later *truth, since int) string {
	t.said, t.shown, t.queue = map[int]line{}, map[int][]string{}, nil
	there := map[int]bool{}
	for _, lines := range t.lines {
		for _, l := range lines {
			for _, id := range l.calls {
				there[number(id)] = true
			}
		}
	}
	for n, then := range later.facts {
		f := t.facts[n]
		if then.ran > 0 && !there[n] && n > since {
			return fmt.Sprintf("call %d was executed before it was saved", n)
		}
		if f == nil {
			continue
		}
		f.ran, f.may, f.key, f.allowed = then.ran, then.may, then.key, false
		if f.final == nil && f.ran > 0 {
			f.given, f.fails = "", true
		}
	}
	return ""
}

// number returns the number of a call from its ID.
func number(id string) (n int) {
	_, _ = fmt.Sscanf(id, "c%d", &n)
	return n
}

var aWord = pattern.Of(`w\d+x`)

// words returns the words of a message that no other message has, with those of its calls or of their results.
func (t *truth) words(l *line) []string {
	text := l.text
	for _, r := range l.results {
		text += r.text
		for _, inner := range t.lines[number(r.id)] {
			text += strings.Join(t.words(inner), " ")
		}
	}
	for _, id := range l.calls {
		text += argument(number(id))
	}
	return aWord().FindAllString(text, -1)
}

// argument is the word among the arguments of a call.
func argument(n int) string { return fmt.Sprintf("w%dx", 1_000_000+n) }

// erase makes the model forget a message.
func (t *truth) erase(i int) {
	l := *t.lines[0][i]
	for _, w := range t.words(&l) {
		t.erased[w] = true
	}
	if l.text != "" || len(l.calls)+len(l.results) == 0 { // in place of thinking alone
		l.text = node.RedactedText
	}
	l.results = slices.Clone(l.results)
	for k := range l.results {
		l.results[k].text = node.RedactedText
		t.facts[number(l.results[k].id)].final = &l.results[k]
	}
	t.lines[0] = slices.Clone(t.lines[0])
	t.lines[0][i], t.redacted = &l, true
}

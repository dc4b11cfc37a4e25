package dag_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/testkit/goldentest"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An attempt is an operation, the sentinel of its error (nil for an operation at a limit that succeeds) and the error.
type attempt struct {
	name string
	want error
	err  error
}

// later is a source of IDs and times that differ from those of fresh.
func later(years int) node.Source {
	return node.Counting(time.Date(2026+years, 1, 2, 3, 4, 5, 0, time.UTC))
}

// TestEveryErrorHasItsText holds the whole text of errors, and the sentinels in their chains.
func TestEveryErrorHasItsText(t *testing.T) {
	var all strings.Builder
	for _, group := range []struct {
		name string
		rows []attempt
	}{
		{"rewinding and finding", errorsOfFinding(t)},
		{"building", errorsOfBuilding()},
		{"refs", errorsOfRefs()},
		{"tool phases", errorsOfPhases()},
		{"merging", errorsOfMerging(t)},
		{"editing", errorsOfEditing(t)},
		{"documents", errorsOfDocuments(t)},
		{"limits", errorsOfLimits()},
	} {
		all.WriteString("# " + group.name + "\n")
		for _, row := range group.rows {
			if row.want == nil {
				assert.NoError(t, row.err, row.name)
			} else {
				assert.ErrorIs(t, row.err, row.want, row.name)
			}
			all.WriteString(row.name + ": " + errorText(row.err) + "\n")
		}
	}
	goldentest.Require(t, "errors.golden", all.String())
}

// errorText returns the text of err, with one wording for what the JSON package words in one of two ways.
func errorText(err error) string {
	if err == nil {
		return "ok"
	}
	return strings.ReplaceAll(err.Error(), "unable to", "cannot")
}

func errorsOfFinding(t *testing.T) []attempt {
	d := fresh().User("one").Assistant("1").User("two")
	found := func(d dag.DAG, name string) error { _, err := d.Find(name); return err }
	users := func(n int) dag.DAG {
		d := fresh()
		for i := range n {
			d = d.User(fmt.Sprint(i))
		}
		return d
	}
	id := d.Head().ID().String()

	return []attempt{
		{"Back 2 of 2", nil, d.Back(2).Err()},
		{"Back 3 of 2", dag.ErrNoExchange, d.Back(3).Err()},
		{"Back 1 of none", dag.ErrNoExchange, fresh().System("s").Back(1).Err()},
		{"Back past an answer alone", dag.ErrNoExchange, fresh().Assistant("a").Back(1).Err()},
		{"Back past results alone", dag.ErrNoExchange, fresh().ToolResults(result("a", "x")).Back(1).Err()},
		{"At", nil, d.At(d.Head().ID()).Err()},
		{"At an unknown node", dag.ErrForeign, d.At(node.ID{1}).Err()},
		{"At a node after the head", dag.ErrForeign, d.Back(1).At(d.Head().ID()).Err()},
		{"AtRef without refs", dag.ErrNoRef, d.AtRef("main").Err()},
		{"AtRef of another name", dag.ErrNoRef, d.WithRef("main").AtRef("Main").Err()},
		{"AtRef of a hostile name", dag.ErrNoRef, d.AtRef("a\x1b[2J\n\"b\"").Err()},
		{"AtRef of 80 bytes", dag.ErrNoRef, d.AtRef(strings.Repeat("n", 80)).Err()},
		{"AtRef of 81 bytes", dag.ErrNoRef, d.AtRef(strings.Repeat("n", 81)).Err()},
		{"AtName of a ref", nil, d.WithRef("abc").AtName("abc").Err()},
		{"AtName that is neither", dag.ErrNoRef, d.AtName("main").Err()},
		{"AtName that is neither, as a node", dag.ErrPrefix, d.AtName("main").Err()},
		{"AtName of an unknown node", dag.ErrForeign, d.AtName("ffff").Err()},
		{"AtName of several nodes", dag.ErrAmbiguous, d.AtName(id[:13]).Err()},
		{"Find nothing", dag.ErrPrefix, found(d, "")},
		{"Find 3 digits", dag.ErrPrefix, found(d, id[:3])},
		{"Find 4 digits", dag.ErrAmbiguous, found(d, id[:4])},
		{"Find a digest", dag.ErrPrefix, found(d, digestOf(d))},
		{"Find a digest without its tag", dag.ErrPrefix, found(d, digestOf(d)[7:])},
		{"Find the first digits of a digest", dag.ErrForeign, found(d, digestOf(d)[7:15])},
		{"Find a whole id", nil, found(d, id)},
		{"Find an id in upper case", nil, found(d, strings.ToUpper(id))},
		{"Find an id without hyphens", nil, found(d, strings.ReplaceAll(id, "-", ""))},
		{"Find a digit more than an id", dag.ErrPrefix, found(d, id+"0")},
		{"Find the last 3 digits", dag.ErrPrefix, found(d, id[33:])},
		{"Find the last 4 digits", nil, found(d, id[32:])},
		{"Find the last 8 digits", nil, found(d, id[28:])},
		{"Find the last 13 digits", nil, found(d, id[22:])},
		{"Find the last digits but one", dag.ErrForeign, found(d, id[28:35])},
		{"Find what is no digit", dag.ErrPrefix, found(d, "0123456g")},
		{"Find one of 5", dag.ErrAmbiguous, found(users(5), id[:8])},
		{"Find one of 6", dag.ErrAmbiguous, found(users(6), id[:8])},
		{"Find one of 7", dag.ErrAmbiguous, found(users(7), id[:8])},
		{"Find in nothing", dag.ErrForeign, found(dag.New(), id)},
	}
}

func errorsOfBuilding() []attempt {
	d := fresh().System("s").User("hello")
	foreign := fresh().WithSource(later(1)).User("elsewhere")
	appended := func(d dag.DAG, p node.Payload, parents ...*node.Node) error {
		_, _, err := d.AppendTo(parents, p)
		return err
	}
	tool := declared("f", "")
	other := node.System{Text: "x"}
	journaled := func(d dag.DAG) error { var j dag.Journal; return j.Append(d) }
	pathless := d.Save("")

	return []attempt{
		{"User without content", dag.ErrEmpty, d.User("").Err()},
		{"User with a nil block", content.ErrBlock, d.User("", nil).Err()},
		{"Assistant without content", dag.ErrEmpty, d.Assistant("").Err()},
		{"Assistant with an empty image", content.ErrBlock, d.Assistant("", content.Image{}).Err()},
		{"ToolResults without results", dag.ErrEmpty, d.ToolResults().Err()},
		{"Append of nil", node.ErrPayload, d.Append(nil).Err()},
		{"Append of an unknown role", node.ErrPayload, d.Append(node.Message{Role: "judge"}).Err()},
		{"AppendMeta of an empty Unknown", node.ErrPayload, d.AppendMeta(node.Unknown{}, node.Meta{}).Err()},
		{"AppendTo the head", nil, appended(d, other, d.Head())},
		{"AppendTo no parents of an empty conversation", nil, appended(fresh(), other)},
		{"AppendTo no parents", dag.ErrForeign, appended(d, other)},
		{"AppendTo nil", dag.ErrForeign, appended(d, other, nil)},
		{"AppendTo a node and nil", dag.ErrForeign, appended(d, other, d.Head(), nil)},
		{"AppendTo a foreign node", dag.ErrForeign, appended(d, other, foreign.Head())},
		{"AppendTo a node and a foreign node", dag.ErrForeign, appended(d, other, d.Head(), foreign.Head())},
		{"AppendTo a foreign node of an empty conversation", dag.ErrForeign, appended(fresh(), other, foreign.Head())},
		{"AppendTo with nil", node.ErrPayload, appended(d, nil, d.Head())},
		{"AppendTo after an error", dag.ErrEmpty, appended(d.User(""), other, d.Head())},
		{"Join of a failed conversation", dag.ErrEmpty, d.Join(dag.New().User("")).Err()},
		{"Join of another node with that id", dag.ErrDuplicateID, fresh().User("a").Join(fresh().User("b")).Err()},
		{"Join of the same node", nil, fresh().User("a").Join(fresh().User("a")).Err()},
		{"SubGraph of a failed conversation", dag.ErrEmpty, d.SubGraph("x", dag.New().User("")).Err()},
		{"Custom without a name", node.ErrPayload, d.Custom("", 1).Err()},
		{"Custom of a channel", content.ErrJSON, d.Custom("n", make(chan int)).Err()},
		{"Tools with nil", content.ErrTool, d.Tools(tool, nil).Err()},
		{"Tools with a nil pointer", content.ErrTool, d.Tools((*content.Tool)(nil)).Err()},
		{"Tools with a broken tool", errBroken, d.Tools(brokenTool{tool}).Err()},
		{"Tools without a name", content.ErrTool, d.Tools(declared("", "")).Err()},
		{"Tools with a space in the name", content.ErrTool, d.Tools(declared("no spaces", "")).Err()},
		{"Tools with a name of 64 letters", nil, d.Tools(declared(strings.Repeat("n", 64), "")).Err()},
		{"Tools with a name of 65 letters", content.ErrTool, d.Tools(declared(strings.Repeat("n", 65), "")).Err()},
		{"Tools twice with other definitions", nil, d.Tools(tool).Tools(declared("f", "other")).Err()},
		{"WithdrawTools of an unknown tool", nil, d.WithdrawTools("f").Err()},
		{"WithdrawTools after an error", dag.ErrEmpty, d.User("").WithdrawTools("f").Err()},
		{"SetSystem after an error", dag.ErrEmpty, d.User("").SetSystem("a", "b").Err()},
		{"FromTranscript with an empty message", dag.ErrEmpty, dag.FromTranscript(dag.Transcript{Messages: []content.Message{
			{Role: content.User, Blocks: content.Words("x")}, {Role: content.User}}}).Err()},
		{"FromTranscript with an unknown role", node.ErrPayload,
			dag.FromTranscript(dag.Transcript{Messages: []content.Message{
				{Role: "judge", Blocks: content.Words("x")}}}).Err()},
		{"Save without a path", pathless, pathless}, // no sentinel
		{"Append to no journal", fs.ErrClosed, journaled(d)},
		{"Append of a failed conversation to a journal", dag.ErrEmpty, journaled(d.User(""))},
	}
}

func errorsOfRefs() []attempt {
	d := fresh().User("x")
	named := func(name string) error { return d.WithRef(name).Err() }
	return []attempt{
		{"empty", dag.ErrRefName, named("")},
		{"1 byte", nil, named("r")},
		{"199 bytes", nil, named(strings.Repeat("r", 199))},
		{"200 bytes", nil, named(strings.Repeat("r", 200))},
		{"201 bytes", dag.ErrRefName, named(strings.Repeat("r", 201))},
		{"200 bytes of 2 a letter", nil, named(strings.Repeat("é", 100))},
		{"202 bytes of 2 a letter", dag.ErrRefName, named(strings.Repeat("é", 101))},
		{"not UTF-8", dag.ErrRefName, named("a\xffb")},
		{"line break", dag.ErrRefName, named("a\nb")},
		{"tab", dag.ErrRefName, named("a\tb")},
		{"U+001F", dag.ErrRefName, named("a\x1fb")},
		{"space", nil, named(" ")},
		{"U+007E", nil, named("~")},
		{"U+007F", dag.ErrRefName, named("a\x7fb")},
		{"U+009F", dag.ErrRefName, named("a\u009fb")},
		{"U+00A0", nil, named("a\u00a0b")},
		{"U+2027", nil, named("a\u2027b")},
		{"U+2028", dag.ErrRefName, named("a\u2028b")},
		{"U+2029", dag.ErrRefName, named("a\u2029b")},
		{"U+202A", nil, named("a\u202ab")},
		{"after an error", dag.ErrEmpty, d.User("").WithRef("").Err()},
	}
}

func errorsOfPhases() []attempt {
	d := askWeather()
	unsaved := node.ToolExecution{Details: "{"}
	half := d.AppendExecutions(execution(1, "18 °C"))
	return []attempt{
		{"CloseTools of an empty conversation", dag.ErrNoCalls, fresh().CloseTools().Err()},
		{"CloseTools without calls", dag.ErrNoCalls, fresh().User("x").CloseTools(execution(0, "")).Err()},
		{"CloseTools without executions", nil, d.CloseTools().Err()},
		{"CloseTools of the last call", nil, d.CloseTools(execution(2, "")).Err()},
		{"CloseTools beyond the last call", dag.ErrNoCalls, d.CloseTools(execution(3, "")).Err()},
		{"CloseTools before the first call", dag.ErrNoCalls, d.CloseTools(execution(-1, "")).Err()},
		{"CloseTools of a call twice", dag.ErrNoCalls, d.CloseTools(execution(1, "a"), execution(1, "b")).Err()},
		{"CloseTools of an executed call", dag.ErrNoCalls, half.CloseTools(execution(1, "b")).Err()},
		{"CloseTools with a broken execution", node.ErrPayload, d.CloseTools(unsaved).Err()},
		{"CloseTools twice", dag.ErrNoCalls, d.CloseTools().CloseTools().Err()},
		{"AppendExecutions without calls", dag.ErrNoCalls, fresh().User("x").AppendExecutions(execution(0, "")).Err()},
		{"AppendExecutions without calls or executions", nil, fresh().User("x").AppendExecutions().Err()},
		{"AppendExecutions beyond the last call", dag.ErrNoCalls, d.AppendExecutions(execution(3, "")).Err()},
		{"AppendExecutions before the first call", dag.ErrNoCalls, d.AppendExecutions(execution(-1, "")).Err()},
		{"AppendExecutions of a call twice", dag.ErrNoCalls, d.AppendExecutions(execution(0, "a"), execution(0, "b")).Err()},
		{"AppendExecutions of an executed call", dag.ErrNoCalls, half.AppendExecutions(execution(1, "b")).Err()},
		{"AppendExecutions with a broken execution", node.ErrPayload, d.AppendExecutions(unsaved).Err()},
		{"AppendExecutions to a closed phase", dag.ErrNoCalls, d.CloseTools().AppendExecutions(execution(0, "")).Err()},
	}
}

func errorsOfMerging(t *testing.T) []attempt {
	base := fresh().User("q").Assistant("a")
	left, right := base.User("left").Assistant("l"), base.WithSource(later(1)).User("right").Assistant("r")
	asked := fresh().Tools(declared("f", "")).User("q").Assistant("", use("a", "f", "{}"), use("b", "f", "{}"))
	closed := func(years int) dag.DAG {
		return asked.WithSource(later(years)).CloseTools(execution(0, "x"), execution(1, "y"))
	}

	twice, _, err := asked.AppendExecutions(execution(0, "x")).AppendTo(asked.Heads(), execution(0, "again"))
	require.NoError(t, err)
	merge := func(branches ...dag.DAG) error {
		list := make([]dag.Branch, len(branches))
		for i, b := range branches {
			list[i].DAG = b
		}
		return dag.Merge(list...).Err()
	}

	return []attempt{
		{"no branches", nil, merge()},
		{"two branches", nil, merge(left, right)},
		{"failed branch", dag.ErrEmpty, merge(left, right.User(""))},
		{"calls answered twice", dag.ErrMerge, merge(closed(1), closed(2))},
		{"calls answered 3 times", dag.ErrMerge, merge(closed(1), closed(2), closed(3))},
		{"call executed twice", dag.ErrMerge, merge(twice)},
		{"call executed twice in the first branch", dag.ErrMerge, merge(twice, left)},
		{"another node with that id", dag.ErrDuplicateID, merge(fresh().User("a"), fresh().User("b"))},
	}
}

func errorsOfEditing(t *testing.T) []attempt {
	d := fresh().User("q").Assistant("a")
	unknown := read(t, document("", line(1, `"kind":"planet","body":{"a":1}`)))
	path := filepath.Join(t.TempDir(), "j")
	j := openJournal(t, path)
	require.NoError(t, j.Append(d))

	return []attempt{
		{"Redact a node", nil, d.Redact(d.Head().ID()).Err()},
		{"Redact nothing", nil, d.Redact().Err()},
		{"Redact an unknown node", dag.ErrForeign, d.Redact(node.ID{1}).Err()},
		{"Redact a node and 2 unknown nodes", dag.ErrForeign, d.Redact(d.Head().ID(), node.ID{2}, node.ID{1}).Err()},
		{"Redact a node of an unknown kind", node.ErrPayload, unknown.Redact(unknown.Head().ID()).Err()},
		{"Redact after an error", dag.ErrEmpty, d.User("").Redact(node.ID{1}).Err()},
		{"Prune after an error", dag.ErrEmpty, d.User("").Prune().Err()},
		{"RewriteJournal after an error", dag.ErrEmpty, dag.RewriteJournal(path, d.User(""))},
		{"RewriteJournal of two nodes with one id", dag.ErrDuplicateID, dag.RewriteJournal(path, repeatedIDs(t))},
		{"redacted, to the journal", dag.ErrNotErased, j.Append(d.Redact(d.Head().ID()))},
		{"another node with that id, to the journal", dag.ErrDuplicateID, j.Append(fresh().User("other"))},
	}
}

func errorsOfDocuments(t *testing.T) []attempt {
	good := line(1, said)
	parsed := func(text string) error {
		_, err := dag.Read(strings.NewReader(text))
		return err
	}
	path := filepath.Join(t.TempDir(), "document")
	require.NoError(t, os.WriteFile(path, []byte(document("", good)), 0o600))
	_, opened := dag.OpenJournal(path, nil)
	var load *dag.LoadError
	require.ErrorAs(t, opened, &load)
	require.Equal(t, path, load.File)
	load.File = "FILE"

	return []attempt{
		{"good", nil, parsed(document("", good))},
		{"empty", dag.ErrFormat, parsed("")},
		{"spaces", dag.ErrFormat, parsed(" \r\n\t\n")},
		{"byte order mark", dag.ErrFormat, parsed("\ufeff{}")},
		{"array", dag.ErrFormat, parsed("[]")},
		{"no members", dag.ErrFormat, parsed("{}")},
		{"only a brace", dag.ErrFormat, parsed("{")},
		{"member without a name", dag.ErrFormat, parsed(`{null:1}`)},
		{"member without a colon", dag.ErrFormat, parsed(`{"format" "plait"}`)},
		{"members without a comma", dag.ErrFormat, parsed(`{"format":"plait" "version":1}`)},
		{"member twice", dag.ErrFormat, parsed(`{"format":"plait","format":"plait"}`)},
		{"other format", dag.ErrFormat, parsed(`{"format":"braid"}`)},
		{"version 0", dag.ErrFormat, parsed(`{"format":"plait","version":0}`)},
		{"version 2", dag.ErrVersion, parsed(`{"format":"plait","version":2}`)},
		{"no format", dag.ErrFormat, parsed(`{"version":1,"nodes":[]}`)},
		{"no version", dag.ErrFormat, parsed(`{"format":"plait","nodes":[]}`)},
		{"no nodes", dag.ErrFormat, parsed(`{"format":"plait","version":1}`)},
		{"nodes as an object", dag.ErrFormat, parsed(`{"format":"plait","version":1,"nodes":{}}`)},
		{"broken unknown member", dag.ErrFormat, parsed(document(`,"x":[1 2]`, good))},
		{"text after its end", dag.ErrFormat, parsed(document("", good) + "x")},
		{"cut in the nodes", dag.ErrFormat, parsed(`{"format":"plait","version":1,"nodes":[` + "\n" + good)},
		{"cut after the nodes", dag.ErrFormat, parsed(`{"format":"plait","version":1,"nodes":[` + "\n" + good + "\n]")},
		{"nodes without a comma", dag.ErrFormat, parsed(document("", good+"\n"+line(2, said)))},
		{"id twice", dag.ErrDuplicateID, parsed(document("", good, good))},
		{"unknown parent", node.ErrParent, parsed(document("", good, line(2, `"parents":[`+ref(3)+`],`+said)))},
		{"unknown head", dag.ErrHeads, parsed(document(`,"heads":[`+ref(1)+`,`+ref(5)+`]`, good))},
		{"head in upper case", dag.ErrHeads,
			parsed(document(`,"heads":["00000000-0000-7000-8000-00000000000A"]`, line(10, said)))},
		{"head that is no id", dag.ErrHeads, parsed(document(`,"heads":["first"]`, good))},
		{"unknown head of a ref", dag.ErrHeads, parsed(document(`,"refs":{"main":[`+ref(5)+`]}`, good))},
		{"name of a ref", dag.ErrRefName, parsed(document(`,"refs":{"a\nb":[]}`, good))},
		{"opened as a journal", dag.ErrFormat, load},
	}
}

func errorsOfLimits() []attempt {
	parsed := func(text string, limit int) error {
		_, err := dag.ReadWithin(strings.NewReader(text), limit)
		return err
	}
	nested := func(depth int) string {
		return document(`,"x":` + strings.Repeat("[", depth) + strings.Repeat("]", depth))
	}
	long := line(1, `"kind":"system","body":{"text":"`+strings.Repeat("x", 5000)+`"}`)
	const header = len(`"format""plait""version"1"nodes"`)
	const deepest = 512

	return []attempt{
		{"header of the limit", nil, parsed(document(""), header)},
		{"header of the limit and a byte", dag.ErrLimit, parsed(document(""), header-1)},
		{"node of the limit", nil, parsed(document("", long), len(long))},
		{"node of the limit and a byte", dag.ErrLimit, parsed(document("", long), len(long)-1)},
		{"nested to the limit", nil, parsed(nested(deepest), 0)},
		{"nested one deeper", dag.ErrLimit, parsed(nested(deepest+1), 0)},
		{"negative limit", nil, parsed(document("", long), -1)},
	}
}

// grown returns a journal with one more append: the nodes, and the line with the heads.
// AT in that line is the offset of the append.
func grown(journal, last string, nodes ...string) string {
	at := len(journal)
	for _, n := range nodes {
		journal += n + "\n"
	}
	return journal + strings.ReplaceAll(last, "AT", fmt.Sprint(at)) + "\n"
}

// TestEveryDamageOfAJournalHasItsText holds what Read and OpenJournal return for journals that are damaged or cut.
func TestEveryDamageOfAJournalHasItsText(t *testing.T) {
	const header = `{"format":"plait-journal","version":1}` + "\n"
	one, two := line(1, said), line(2, `"parents":[`+ref(1)+`],`+said)
	good := grown(header, `{"heads":[`+ref(1)+`],"at":AT}`, one)
	second := func(last string) string { return grown(good, last, two) }
	complete := second(`{"heads":[` + ref(2) + `],"at":AT}`)
	zeros := strings.Repeat("\x00", 20) + "\n"
	ended := grown("", `{"heads":[`+ref(1)+`],"at":39}`)

	var all strings.Builder
	for _, c := range []struct {
		name string
		want error // of Read
		text string
		max  int
	}{
		{"good", nil, complete, 0},
		{"line of the limit", nil, good, len(one)},
		{"line one byte beyond the limit", dag.ErrLimit, good, len(one) - 1},
		{"no text", dag.ErrFormat, "", 0},
		{"half a header", dag.ErrFormat, header[:10], 0},
		{"header without a line break", dag.ErrFormat, header[:len(header)-1], 0},
		{"header alone", nil, header, 0},
		{"header of a newer version", dag.ErrVersion, `{"format":"plait-journal","version":2}` + "\n", 0},
		{"header without a version", dag.ErrFormat, `{"format":"plait-journal"}` + "\n", 0},
		{"header with nodes", dag.ErrFormat, `{"format":"plait-journal","version":1,"nodes":[]}` + "\n", 0},
		{"header with heads", dag.ErrFormat, `{"format":"plait-journal","version":1,"heads":[]}` + "\n", 0},
		{"header with refs", dag.ErrFormat, `{"format":"plait-journal","version":1,"refs":{}}` + "\n", 0},
		{"text behind the header", dag.ErrFormat, header[:len(header)-1] + " x\n", 0},
		{"second header", dag.ErrDamaged, good + header, 0},
		{"empty line", dag.ErrDamaged, good + "\n", 0},
		{"broken node", dag.ErrDamaged, good + `{"id":` + "\n", 0},
		{"broken heads", dag.ErrDamaged, good + `{"heads":[` + "\n", 0},
		{"heads as text", dag.ErrDamaged, second(`{"heads":"x","at":AT}`), 0},
		{"at one less", dag.ErrDamaged, second(fmt.Sprintf(`{"heads":[%s],"at":%d}`, ref(2), len(good)-1)), 0},
		{"at one more", dag.ErrDamaged, second(fmt.Sprintf(`{"heads":[%s],"at":%d}`, ref(2), len(good)+1)), 0},
		{"no at", dag.ErrDamaged, second(`{"heads":[]}`), 0},
		{"append twice", dag.ErrDamaged, good + good[len(header):], 0},
		{"unknown head", dag.ErrDamaged, second(`{"heads":[` + ref(2) + `,` + ref(3) + `],"at":AT}`), 0},
		{"unknown head, by its own error", dag.ErrHeads, second(`{"heads":[` + ref(3) + `],"at":AT}`), 0},
		{"unknown parent", node.ErrParent, grown(good, `{"heads":[],"at":AT}`, line(2, `"parents":[`+ref(3)+`],`+said)), 0},
		{"id twice", dag.ErrDuplicateID, grown(good, `{"heads":[],"at":AT}`, one), 0},
		{"keep the first", nil, second(`{"heads":[` + ref(2) + `],"keep":[1,0],"at":AT}`), 0},
		{"keep the last", nil, second(`{"heads":[` + ref(2) + `],"keep":[0,1],"at":AT}`), 0},
		{"keep more than the first", dag.ErrHeads, second(`{"heads":[],"keep":[2,0],"at":AT}`), 0},
		{"keep more than the last", dag.ErrHeads, second(`{"heads":[],"keep":[0,2],"at":AT}`), 0},
		{"keep the same twice", dag.ErrHeads, second(`{"heads":[],"keep":[1,1],"at":AT}`), 0},
		{"keep below the first", dag.ErrHeads, second(`{"heads":[],"keep":[-1,0],"at":AT}`), 0},
		{"keep below the last", dag.ErrHeads, second(`{"heads":[],"keep":[0,-1],"at":AT}`), 0},
		{"keep one number", dag.ErrHeads, second(`{"heads":[],"keep":[1],"at":AT}`), 0},
		{"keep three numbers", dag.ErrHeads, second(`{"heads":[],"keep":[0,0,0],"at":AT}`), 0},
		{"unknown head of a ref", dag.ErrHeads, second(`{"heads":[],"at":AT,"refs":{"main":[` + ref(3) + `]}}`), 0},
		{"name of a ref", dag.ErrRefName, second(`{"heads":[],"at":AT,"refs":{"":[]}}`), 0},
		{"removed ref that was never set", nil, second(`{"heads":[],"at":AT,"refs":{"main":null}}`), 0},
		{"header with nodes behind heads", dag.ErrFormat, second(`{"heads":[],"at":AT,"header":{"nodes":[]}}`), 0},
		{"header that is no object", dag.ErrFormat, second(`{"heads":[],"at":AT,"header":[]}`), 0},
		{"torn node", nil, complete[:len(good)+10], 0},
		{"node without heads", nil, good + two + "\n", 0},
		{"torn heads", nil, complete[:len(complete)-10], 0},
		{"heads without a line break", nil, complete[:len(complete)-1], 0},
		{"zeros at the end", nil, good + two + "\n" + zeros, 0},
		{"zeros before the heads of the same append", nil, second(zeros + `{"heads":[` + ref(1) + `],"at":AT}`), 0},
		{"zeros before a complete append", dag.ErrDamaged, good + zeros + ended + two + "\n", 0},
		{"line beyond the limit", dag.ErrLimit, good, len(ended)},
		{"torn line of the limit and a byte", dag.ErrLimit, good + strings.Repeat("x", 200), 199},
	} {
		_, err := dag.ReadWithin(strings.NewReader(c.text), c.max)
		if c.want == nil {
			assert.NoError(t, err, c.name)
		} else {
			assert.ErrorIs(t, err, c.want, c.name)
		}
		all.WriteString(c.name + ": " + errorText(err) + "\n\topened: " + openedText(t, c.text, c.max) + "\n")
	}
	goldentest.Require(t, "damage.golden", all.String())
}

// openedText returns the error of OpenJournal for a file with that text, without its path, or what was recovered.
func openedText(t *testing.T, text string, limit int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "j")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	j, err := dag.OpenJournal(path, &dag.JournalOptions{NoSync: true, MaxNode: limit})
	if err != nil {
		var load *dag.LoadError
		require.True(t, errors.As(err, &load))
		require.Equal(t, text, contentOf(t, path), "an error leaves the file unchanged")
		return strings.ReplaceAll(errorText(err), path, "FILE")
	}

	defer func() { require.NoError(t, j.Close()) }()
	if !strings.HasPrefix(contentOf(t, path), text) {
		return "the end was cut"
	}
	return "ok"
}

// digestOf returns the digest of the head in the form in which other programs show hashes.
func digestOf(d dag.DAG) string { return fmt.Sprintf("sha256:%x", d.Head().Digest()) }

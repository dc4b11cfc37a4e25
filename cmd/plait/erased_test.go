package main

import (
	"bytes"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/store/sqlite"
)

// secretConversation returns a conversation with pin in a prompt, a definition, a question, arguments, a result, a child
// conversation, a record, and before thinking. Two conversations differ in the pin alone: IDs and times are the same.
func secretConversation(t testing.TB, pin string) dag.DAG {
	made := byte(0)
	source := node.Source{
		Now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
		NewID: func() node.ID {
			made++
			return node.ID{1, 0x89, 0, 0, 0, made, 0x70, 0, 0x80, 0, 0, made, 0xab, 0xcd, 0xef, made * 7}
		},
	}
	answer := func(d dag.DAG, blocks ...content.Block) dag.DAG {
		list, err := content.Of(append([]content.Block{content.Thinking{Text: "Hm.", Signature: "c2ln"}}, blocks...)...)
		require.NoError(t, err)
		return d.Append(node.Message{Role: content.Assistant, Blocks: list, Answer: node.Answer{Model: "m", Seen: d.Seen()}})
	}

	child := answer(dag.New().WithSource(source).User("Check "+pin+"."), content.Text{Text: "It is " + pin + "."})
	tool := content.Tool{Name: "check", Description: "Checks " + pin + ".", Schema: `{"type":"object"}`}
	d := dag.New().WithSource(source).System("The PIN is " + pin + ".").Tools(tool).User("My PIN is " + pin)
	d = answer(d, content.ToolUse{ID: "a", Name: "check", Input: content.JSON(`{"pin":"` + pin + `"}`)})
	d = d.CloseTools(node.ToolExecution{Index: 1, Result: content.Words("The PIN " + pin + " is right."), Child: node.ListOf(child.Heads()...)})
	d = answer(d, content.Text{Text: "Done."}).Custom("record", map[string]string{"pin": pin}).User("And now?")
	d = answer(d, content.Text{Text: "Goodbye."}).WithRef("done")
	require.NoError(t, d.Err())
	return d
}

// erase redacts every node with pin.
func erase(t testing.TB, d dag.DAG, pin string) dag.DAG {
	var ids []node.ID
	for _, n := range d.WithChildren() {
		line, err := n.MarshalJSON()
		require.NoError(t, err)
		if bytes.Contains(line, []byte(pin)) {
			ids = append(ids, n.ID())
		}
	}
	require.Greater(t, len(ids), 7)
	d = d.Redact(ids...)
	require.NoError(t, d.Err())
	return d
}

// Strings in the shape of a hash.
var (
	hexShape    = regexp.MustCompile(`[0-9a-fA-F]{16,}`)
	shortShape  = regexp.MustCompile(`\b[0-9a-f]{8,15}\b`)
	base64Shape = regexp.MustCompile(`[A-Za-z0-9+/_-]{16,}`)
	uuidShape   = regexp.MustCompile(`[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
)

// hashesIn returns the first 8 bytes of everything in the shape of a hash, the bytes of a database included.
func hashesIn(found map[string][]string, name string, data []byte) {
	keep := func(b []byte) {
		if len(b) >= 8 && !slices.Contains(found[string(b[:8])], name) {
			found[string(b[:8])] = append(found[string(b[:8])], name)
		}
	}
	for _, id := range uuidShape.FindAll(data, -1) {
		b, _ := hex.DecodeString(strings.ReplaceAll(string(id), "-", ""))
		keep(b)
		keep(b[8:]) // the beginning is a time
	}
	for _, digits := range hexShape.FindAll(data, -1) {
		b, _ := hex.DecodeString(string(digits[:len(digits)/2*2]))
		keep(b)
	}
	for _, text := range base64Shape.FindAll(data, -1) {
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			b, _ := encoding.DecodeString(string(text[:len(text)/4*4]))
			keep(b)
		}
	}
	if bytes.HasPrefix(data, []byte("SQLite")) {
		for i := range len(data) - 8 {
			keep(data[i : i+8])
		}
	}
}

// tryHashes passes the beginnings of hashes to try, with their names. Somebody could compute them who knows everything but
// the pin.
func tryHashes(t testing.TB, pin string, try func(name, hash string)) {
	add := func(name string, data []byte) {
		h := sha256.Sum256(data)
		try(name, string(h[:8]))
	}
	text := func(name, text string) {
		for _, form := range []string{text, `"` + text + `"`, text + "\n"} {
			add(name, []byte(form))
			s1, s512, m5 := sha1.Sum([]byte(form)), sha512.Sum512([]byte(form)), md5.Sum([]byte(form))
			try(name, string(s1[:8]))
			try(name, string(s512[:8]))
			try(name, string(m5[:8]))
		}
	}

	text("the PIN", pin)
	d := secretConversation(t, pin)
	chain := sha256.Sum256(nil)
	for _, n := range d.WithChildren() {
		digest := n.Digest()
		try("the digest of a "+n.Kind(), string(digest[:8]))

		// Hashes that the line has before the erasure, and those of the line: whole, and without its last members, which
		// may be hashes.
		line, err := n.MarshalJSON()
		require.NoError(t, err)
		add("the line of a "+n.Kind(), line)
		for rest := line; ; {
			_, after, is := bytes.Cut(rest, []byte(`"sha256:`))
			if !is {
				break
			}
			h, err := hex.DecodeString(string(after[:16]))
			require.NoError(t, err)
			try("a hash in the line of a "+n.Kind(), string(h))
			rest = after
		}
		for end := bytes.LastIndex(line, []byte(`,"`)); end > 0; end = bytes.LastIndex(line[:end], []byte(`,"`)) {
			add("the beginning of the line of a "+n.Kind(), line[:end])
			add("the beginning of the line of a "+n.Kind(), append(line[:end:end], '}'))
		}

		var members struct {
			Body json.RawMessage `json:"body"`
		}
		require.NoError(t, json.Unmarshal(line, &members))
		add("the body of a "+n.Kind(), members.Body)

		// Texts, arguments and results, alone and as a chain of everything so far.
		for _, of := range textsOf(n) {
			text("a text of a "+n.Kind(), of)
			chain = sha256.Sum256(append(chain[:], of...))
			try("the chain of texts to a "+n.Kind(), string(chain[:8]))
		}
	}
	for _, m := range d.Messages() {
		add("the blocks of a message", []byte(m.Blocks.String()))
	}

	imported, _, err := chatFile([]byte(chatWith(pin)))
	require.NoError(t, err)
	for _, n := range imported.Nodes() {
		id := n.ID()
		try("the ID of an imported node", string(id[8:]))
	}
	text("the imported file", chatWith(pin))
}

func chatWith(pin string) string {
	return `[{"role":"user","content":"My PIN is ` + pin + `"},{"role":"assistant","content":"Thanks."}]`
}

// textsOf returns the texts of n.
func textsOf(n *node.Node) (texts []string) {
	var ofBlocks func(blocks content.Blocks)
	ofBlocks = func(blocks content.Blocks) {
		for _, b := range blocks.All() {
			switch b := b.(type) {
			case content.Text:
				texts = append(texts, b.Text)
			case content.ToolUse:
				texts = append(texts, string(b.Input))
			case content.ToolResult:
				ofBlocks(b.Content)
			}
		}
	}
	switch p := n.Payload().(type) {
	case node.System:
		texts = append(texts, p.Text)
	case node.Tools:
		texts = append(texts, p.Defs.At(0).Description)
	case node.Message:
		ofBlocks(p.Blocks)
	case node.ToolExecution:
		ofBlocks(p.Result)
	case node.Custom:
		texts = append(texts, string(p.JSON))
	}
	return texts
}

// erasedForms returns everything that is written about a conversation after pin was erased from it, by name.
func erasedForms(t *testing.T, pin string) map[string][]byte {
	d := secretConversation(t, pin)
	erased := erase(t, d, pin)
	folder := t.TempDir()
	forms := map[string][]byte{}
	keepFile := func(path string) {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		forms[filepath.Base(path)] = data
	}

	// A file, as it is replaced by the command.
	file, other := filepath.Join(folder, "talk.json"), filepath.Join(folder, "other.json")
	require.NoError(t, d.Save(file))
	args := []string{"redact", file}
	for _, n := range erased.WithChildren() {
		if n.Redacted() {
			args = append(args, n.ID().String())
		}
	}
	_, errs, code := command("", args...)
	require.Equal(t, exitDone, code, errs)
	keepFile(file)
	require.NoError(t, erased.User("More.").Save(other))
	forms["json.Marshal"], _ = json.Marshal(erased)

	// A journal and a database that held the content.
	journal := filepath.Join(folder, "talk.jsonl")
	j, err := dag.OpenJournal(journal, nil)
	require.NoError(t, err)
	require.NoError(t, j.Append(d))
	require.NoError(t, j.Close())
	require.NoError(t, dag.RewriteJournal(journal, erased))
	keepFile(journal)

	database := filepath.Join(folder, "talks.db")
	db, err := sqlite.Open(t.Context(), database, nil)
	require.NoError(t, err)
	talks := store.New(db)
	c, err := talks.Conversation(t.Context(), "talk")
	require.NoError(t, err)
	require.NoError(t, c.Append(t.Context(), d))
	require.NoError(t, c.Rewrite(t.Context(), erased))
	_, err = talks.Prune(t.Context(), "talk", false)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	keepFile(database)

	// What another program wrote, imported and erased.
	fromChat, _, err := chatFile([]byte(chatWith(pin)))
	require.NoError(t, err)
	require.NoError(t, fromChat.Redact(fromChat.Nodes()[0].ID()).Save(filepath.Join(folder, "imported.json")))
	keepFile(filepath.Join(folder, "imported.json"))

	for _, line := range []string{
		"log FILE", "log FILE --all", "log FILE --oneline", "log FILE --json", "diff FILE OTHER", "diff FILE OTHER --json",
		"report FILE --cache", "report FILE --cache --json",
		"report FILE OTHER --as html",
		"verify FILE", "verify FILE --json", "render FILE --as mermaid", "render FILE --as html",
		"render FILE --as dot", "render FILE --as svg", "show FILE", "show FILE 0189", "show FILE done --json",
		"export FILE --to anthropic --model m", "fork FILE --name x -o -",
	} {
		out, errs, code := command("", words(line, file, other)...)
		require.NotEmpty(t, out+errs, line)
		require.NotContains(t, errs, "unknown", line)
		require.True(t, code == exitDone || code == exitFinding || out != "" || strings.HasPrefix(line, "show FILE 0189"), "%s: %s", line, errs)
		forms["plait "+line] = []byte(out + errs)
	}
	return forms
}

// byChance is an ID, a digest or a time. Four digits in a row may be in it by chance.
var byChance = regexp.MustCompile(`[0-9a-f:.-]{12,}`)

// TestTenThousandGuessesFindNoErasedText erases a PIN, and then tries all PINs: no hash of one, of a text, arguments, a
// result, a line or a conversation with it is in anything that is written afterwards.
func TestTenThousandGuessesFindNoErasedText(t *testing.T) {
	t.Parallel()
	const pin = "4711"
	found, short := map[string][]string{}, map[string]string{}
	for name, data := range erasedForms(t, pin) {
		require.NotContains(t, string(byChance.ReplaceAll(data, nil)), pin, name)
		hashesIn(found, name, data)
		for _, digits := range shortShape.FindAll(data, -1) {
			short[string(digits)] = name
		}
	}
	require.Greater(t, len(found), 1000)

	// Hashes that do not depend on the PIN confirm nothing.
	known := map[string]bool{}
	tryHashes(t, "none", func(_, hash string) { known[hash] = true })
	require.Greater(t, len(known), 200)

	// All of them with PLAIT_LONG, and otherwise each fifth and the PIN itself.
	confirmed := map[string]bool{}
	for i := range 10_000 {
		text := fmt.Sprintf("%04d", i)
		if text != pin && i%seedtest.Rounds(5, 1) != 0 {
			continue
		}
		tryHashes(t, text, func(name, hash string) {
			if known[hash] {
				return
			}
			for _, where := range found[hash] {
				confirmed[text+" by "+name+" in "+where] = true
			}

			// Fewer digits match by chance, but not for the PIN alone.
			if text == pin {
				for digits, where := range short {
					if strings.HasPrefix(hex.EncodeToString([]byte(hash)), digits) {
						confirmed[text+" by "+digits+" of "+name+" in "+where] = true
					}
				}
			}
		})
	}
	require.Empty(t, slices.Sorted(maps.Keys(confirmed)))
}

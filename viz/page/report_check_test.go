package page_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/report"
	"github.com/plait-dev/plait/viz/internal/viztest"
	"github.com/plait-dev/plait/viz/page"
)

// useReport opens a page about many conversations in a browser and does the steps, which live.mjs describes.
func useReport(t *testing.T, rows []report.Row, steps ...map[string]string) {
	t.Helper()
	useReportAt(t, rows, "", steps...)
}

// useReportAt is useReport with an address within the page.
func useReportAt(t *testing.T, rows []report.Row, address string, steps ...map[string]string) {
	t.Helper()
	folder := viztest.BrowserCheck(t, "page", "PLAIT_BROWSER")
	file := filepath.Join(t.TempDir(), "report.html")
	out, err := os.Create(file)
	require.NoError(t, err)
	require.NoError(t, page.WriteReport(out, rows, &page.ReportOptions{Currency: "USD"}))
	require.NoError(t, out.Close())

	var input bytes.Buffer
	for _, step := range steps {
		require.NoError(t, json.NewEncoder(&input).Encode(step))
	}
	cmd := exec.Command("node", "live.mjs", "file://"+file+address)
	cmd.Dir, cmd.Stdin, cmd.Stderr = folder, &input, os.Stderr
	said, err := cmd.Output()
	require.NoError(t, err)

	lines := bufio.NewScanner(bytes.NewReader(said))
	lines.Buffer(nil, 1<<20)
	for i := range len(steps) + 1 { // the first line is about opening the page
		require.True(t, lines.Scan())
		var did struct {
			OK  bool
			Why string
			MS  int // of opening the page
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &did))
		require.True(t, did.OK, "step %d: %s", i, did.Why)
		if i == 0 {
			t.Logf("%d conversations open in %d ms", len(rows), did.MS)
		}
	}
	require.True(t, lines.Scan())
	require.JSONEq(t, `{"sins":[]}`, lines.Text(), "the page did what no page may do")
}

func TestTheOneRunThatFailedDifferentlyIsFoundInARealBrowser(t *testing.T) {
	wait := func(css, text string) map[string]string { return map[string]string{"wait": css, "text": text} }
	gone := func(css string) map[string]string { return map[string]string{"gone": css} }
	press := func(key string) map[string]string { return map[string]string{"press": key} }
	address := func(end string) map[string]string { return map[string]string{"address": end} }
	readable := func(css string) map[string]string { return map[string]string{"readable": css} }
	useReport(t, weatherRows(),
		wait("#totals", "6 conversations"), wait("#filters", "3 failed"), wait(".pathrow", "no such city"), readable("#rows"),
		wait("#alone", "runs/it's 4.json failed differently from the rest: get_weather: no such city"),

		// With the mouse: a click on the path leaves its run.
		map[string]string{"click": ".pathrow", "text": "no such city"}, wait("#totals", "1 of 6"), wait("tr[aria-selected]", "it's 4.json"),
		press("Escape"), wait("#totals", "6 conversations"), gone("#totals:has-text('of 6')"),

		// With the keyboard: its facts and the command, whose name is quoted.
		press("Home"), press("e"), press("e"), press("e"), press("e"), wait("tr[aria-selected]", "torn.json"), press("E"), press("Enter"),
		wait("#detail", "no such city"), readable("#detail"), wait("#detail .code", `plait show 'runs/it'\''s 4.json'`),
		address(`#runs%2Fit's%204.json`), press("Escape"), gone("#detail"), address(""),

		// Two are compared from where they part.
		press("Home"), press("x"), press("j"), press("j"), press("x"), press("c"),
		wait("#compare", "They share 2 steps"), wait("#compare .side.failed", "connection refused"), readable("#compare"),
		wait("#compare .code", "plait diff runs/0.json runs/2.json"), press("Escape"), gone("#compare"),

		// Those that failed for one cause, and the sums by tool and by model of those that are shown.
		wait("#tools td", "3 (60%)"), wait("#tools td", "500ms"), wait("#models td", "0.0080"),
		press("Home"), press("e"), press("w"), wait("#totals", "2 of 6"), wait("#tools td", "2 (100%)"), wait("#tools td", "400ms"), gone("#models:has-text('0.0080')"),
		press("w"), wait("#totals", "6 conversations"),

		// Sorted with the keyboard: the focus stays where it is.
		press("s"), wait("th[aria-sort=ascending]", "outcome"), press("s"), wait("th[aria-sort=descending]", "turns"), press("S"), wait("th[aria-sort=ascending]", "turns"),
		map[string]string{"click": "th .link", "text": "conversation"}, wait("th .link:focus", "conversation"), press("Enter"), wait("th[aria-sort=descending]", "conversation"),
		press("Enter"), wait("th .link:focus", "conversation"), gone("th[aria-sort=descending]"),

		// Groups, the filter, and sorting.
		map[string]string{"click": "#search"}, map[string]string{"type": "variant=long"}, wait("#totals", "2 of 6"), press("Escape"), press("Escape"), wait("#totals", "6 conversations"),
		press("g"), wait("tr.group", "2 conversations · 2 ended"), map[string]string{"click": "th .link", "text": "time"}, wait("th[aria-sort=descending]", "time"),
		press("?"), wait("#help", "compare the chosen"), press("Escape"), gone("#help"),

		// A small screen in the dark.
		map[string]string{"size": "390x844"}, map[string]string{"theme": "dark"}, wait("#rows", "runs/0.json"), map[string]string{"inside": "#top, #list, #side, .pathrow, #alone, .sums"},
	)
}

func TestRowsBelowTheFirstAreReachedInARealBrowser(t *testing.T) {
	rows := weatherRows()
	for len(rows) < 999 {
		rows = append(rows, rows[0])
	}
	rows = append(rows, report.Of("runs/last.json", weatherRun(9, "Lima", "no such city"), nil))
	press := func(key string) map[string]string { return map[string]string{"press": key} }
	at := func(text string) map[string]string {
		return map[string]string{"wait": "tr[aria-selected]", "text": text}
	}
	useReport(t, rows, map[string]string{"wait": "#more", "text": "1,000 conversations"}, press("End"), at("runs/last.json"),
		press("Home"), at("runs/0.json"), press("e"), press("e"), press("e"), press("e"), at("torn"), press("e"), at("runs/last.json"))
}

func TestManyConversationsAreComparedInARealBrowser(t *testing.T) {
	cities := []string{"Paris", "Rome", "Oslo", "Lima"}
	var rows []report.Row
	for i := range 27 {
		failure := ""
		if i%9 == 4 {
			failure = "no such city"
		}
		rows = append(rows, report.Of(fmt.Sprintf("runs/%02d.json", i), weatherRun(i, cities[i%4], failure), nil))
	}

	press := func(key string) map[string]string { return map[string]string{"press": key} }
	wait := func(css, text string) map[string]string { return map[string]string{"wait": css, "text": text} }
	steps := []map[string]string{press("Home")}
	for range 26 {
		steps = append(steps, press("x"), press("j"))
	}
	steps = append(steps, press("x"), wait("#status", "No more than 26 are compared."), wait("#open-compare", "Compare 26"),
		press("c"), wait("#compare .letters li:last-child", "Z"), wait("#compare .letters li:last-child", "runs/25.json"),
		wait("#compare .steprow.failed .have", "····E········N········W···"), wait("#compare .steprow.failed", "no such city"),
		map[string]string{"readable": "#compare"}, map[string]string{"size": "390x844"},
		map[string]string{"inside": "#compare, #compare .letters li, #compare .steprow"}, press("Escape"),

		// Few are beside each other.
		map[string]string{"size": "1440x900"}, press("Home"))
	for range 20 {
		steps = append(steps, press("x"), press("j"))
	}
	steps = append(steps, press("c"), wait("#compare .grid .colhead", "runs/25.json"), map[string]string{"gone": "#compare .letters"})
	useReport(t, rows, steps...)
}

func TestALinkToARowOpensItInALongerReportInARealBrowser(t *testing.T) {
	rows := weatherRows()
	for range 400 {
		rows = slices.Insert(rows, 0, rows[0])
	}
	wait := func(css, text string) map[string]string { return map[string]string{"wait": css, "text": text} }
	useReportAt(t, rows, `#runs%2Fit's%204.json`, wait("#detail h2", "runs/it's 4.json"), wait("tr[aria-selected]", "it's 4.json"),
		map[string]string{"press": "Escape"}, map[string]string{"gone": "#detail"}, map[string]string{"address": ""})
	useReportAt(t, rows, "#runs/9.json", wait("tr[aria-selected]", "runs/0.json"), map[string]string{"gone": "#detail"})
}

func TestHostileTextsAreInertOnTheReportPageInARealBrowser(t *testing.T) {
	var rows []report.Row
	for _, text := range viztest.Hostile {
		d := dag.New().WithMetadata("k"+text, text).User(text).Assistant(text, content.ToolUse{ID: "1", Name: "t" + text, Input: "{}"}).
			CloseTools(node.ToolExecution{Index: 1, Result: content.Words(text), IsError: true}).Stop(content.Stop("s" + text))
		rows = append(rows, report.Of("run "+text, d.WithoutErr(), nil))
	}
	key := func(key string) map[string]string { return map[string]string{"press": key} }
	useReport(t, rows, map[string]string{"wait": "#rows", "text": "<script>"}, key("Enter"), map[string]string{"wait": "#detail h2"}, key("Escape"),
		key("x"), key("j"), key("x"), key("c"), map[string]string{"wait": "#compare h2"}, key("Escape"), key("g"), key("g"), key("g"))
}

package registry_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/registry"
	"github.com/plait-dev/plait/internal/testkit/tooltest"
)

func TestRecordForLogsIsCutAndTheRecordIsNot(t *testing.T) { // C4
	for name, c := range map[string]struct{ text, want string }{
		"short":                {"8", "8"},
		"empty":                {"", ""},
		"as long as it may be": {strings.Repeat("x", 2000), strings.Repeat("x", 2000)},
		"one too long":         {strings.Repeat("x", 2001), strings.Repeat("x", 2000)},
		"long":                 {strings.Repeat("x", 5000), strings.Repeat("x", 2000)},
		"not ASCII":            {strings.Repeat("日", 2000) + "!", strings.Repeat("日", 2000)},
		"not in the BMP":       {"a" + strings.Repeat("😀", 5000), "a" + strings.Repeat("😀", 1999)},
		"control characters":   {"\x1b[2J\n\x00" + strings.Repeat("\n", 5000), "\x1b[2J\n\x00" + strings.Repeat("\n", 1994)},
	} {
		t.Run(name, func(t *testing.T) {
			r := tooltest.Registry(t, tooltest.Returning("long", c.text))
			rec := r.Execute(t.Context(), "long", nil)
			require.Equal(t, c.text, rec.Output)
			line, err := json.Marshal(rec)
			require.NoError(t, err)
			require.NotContains(t, string(line), "\n")
			var read map[string]any
			require.NoError(t, json.Unmarshal(line, &read))
			require.Equal(t, c.want, read["output"])
			require.NotContains(t, read, "error")

			rec = registry.Record{Tool: c.text, Error: c.text}
			line, err = json.Marshal(rec)
			require.NoError(t, err)
			clear(read)
			require.NoError(t, json.Unmarshal(line, &read))
			require.Equal(t, c.want, read["tool_name"])
			require.Equal(t, "", read["output"])
			require.Equal(t, c.want != "", read["error"] != nil)
			if c.want != "" {
				require.Equal(t, c.want, read["error"])
			}
		})
	}
}

func TestRecordForLogsIsAnObjectOfFiveMembers(t *testing.T) {
	for want, rec := range map[string]registry.Record{
		`{"tool_name":"add","success":true,"output":"8","latency_ms":0.1}`: {
			Tool: "add", Success: true, Output: "8", Latency: 100 * time.Microsecond,
		},
		`{"tool_name":"","success":false,"output":"","latency_ms":30000,"error":"too late"}`: {
			Error: "too late", Latency: 30 * time.Second,
		},
		`{"tool_name":"","success":false,"output":"","latency_ms":0}`: {},
		"{\"tool_name\":\"\uFFFD\",\"success\":true,\"output\":\"<\uFFFD>\",\"latency_ms\":0.000001}": {
			Tool: "\xff", Success: true, Output: "<\xff>", Latency: 1,
		},
	} {
		line, err := rec.MarshalJSON()
		require.NoError(t, err)
		require.JSONEq(t, want, string(line))
		require.True(t, utf8.Valid(line))
		require.True(t, strings.HasPrefix(string(line), `{"tool_name":`), "members are in order")
		inside, err := json.Marshal(map[string]any{"pointer": &rec, "value": rec})
		require.NoError(t, err)
		require.JSONEq(t, `{"pointer":`+want+`,"value":`+want+`}`, string(inside))
	}
}

func TestOutputNamesBlocksThatAreNoText(t *testing.T) {
	image := func(s content.Source) content.Block { return content.Image{Source: s} }
	document := func(s content.Source) content.Block { return content.Document{Title: "T", Source: s} }
	png := content.Source{MediaType: "image/png", Data: "AAAA"}
	forged := "image/png]\n[image x\x1b[2J"
	for want, out := range map[string][]content.Block{
		"one\ntwo":                           {content.Text{Text: "one"}, content.Text{}, content.Text{Text: "two"}},
		"Sales:\n[image image/png]":          {content.Text{Text: "Sales:"}, image(png)},
		"[image https://example.com/a.png]":  {image(content.Source{URL: "https://example.com/a.png"})},
		"[document T file_1]":                {document(content.Source{FileID: "file_1"})},
		"[document T application/pdf]":       {document(content.Source{MediaType: "application/pdf", Data: "AAAA"})},
		"[document T]":                       {document(content.Source{Data: "AAAA"})},
		"the words themselves":               {document(content.Source{MediaType: "text/plain", Text: "the words themselves"})},
		"[gemini block]":                     {content.Opaque{API: "gemini", JSON: `{"type":"x"}`}},
		"[unknown block]":                    {content.Unknown{JSON: `{"type":"hologram"}`}},
		`[image image/png] [image x\x1b[2J]`: {image(content.Source{MediaType: forged, Data: "AAAA"})},
	} {
		blocks, err := content.Of(out...)
		require.NoError(t, err)
		r := tooltest.Registry(t, tooltest.Returning("blocks", blocks), tooltest.Returning("fails", executor.Result{Content: blocks, IsError: true}))
		require.Equal(t, want, r.Execute(t.Context(), "blocks", nil).Output)
		require.Equal(t, want, r.Execute(t.Context(), "fails", nil).Error)
	}
}

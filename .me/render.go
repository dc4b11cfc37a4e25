//go:build ignore

package main

import (
	"os"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/anthropic"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/viz/page"
)

func main() {
	d, err := dag.Load(os.Args[1])
	if err != nil {
		panic(err)
	}
	f, _ := os.Create(os.Args[2])
	err = page.Write(f, d, &page.Options{Title: os.Args[3], Request: func(d dag.DAG) ([]byte, error) {
		t := d.Transcript()
		b, _, err := anthropic.Body(api.Request{System: t.System, Tools: t.Tools, Messages: t.Messages}, "claude-sonnet-4-5", nil)
		return b, err
	}})
	if err != nil {
		panic(err)
	}
}

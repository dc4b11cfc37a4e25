// Command saved is a program of docs/first-hour.md: a conversation that goes on at each start, and its picture.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/viz"
)

func main() {
	agent := executor.Agent{Provider: apitest.NewScript(apitest.Say("It is noon."))}

	d, err := dag.Load("talk.json")
	if errors.Is(err, fs.ErrNotExist) {
		d, err = dag.New().System("Answer briefly."), nil
	}
	if err == nil {
		d, err = agent.Run(context.Background(), d.User("What time is it?"))
	}
	if err == nil {
		err = errors.Join(d.Save("talk.json"), draw("talk.svg", d))
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(d)
}

func draw(path string, d dag.DAG) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(viz.SVG(file, d, nil), file.Close())
}

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/executor"
)

// work is the other program. It carries out the tasks that have no result yet, so many of them or all. One that is killed between the
// work and its result does the work again when it is started anew: only the tool can know better.
func work(args []string, out io.Writer) error {
	most := -1 // no limit
	if len(args) > 0 {
		var err error
		if most, err = strconv.Atoi(args[0]); err != nil {
			return err
		}
	}
	files, err := filepath.Glob(filepath.Join(tasks, "*.json"))
	done := 0
	for _, task := range files {
		result := filepath.Join(results, filepath.Base(task))
		if _, missing := os.Stat(result); missing == nil || done == most {
			continue
		}
		if failure := carryOut(task, result); failure != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", task, failure)) // the others are done all the same
			continue
		}
		fmt.Fprintf(out, "%s → %s\n", task, result)
		done++
	}
	fmt.Fprintf(out, "%d done\n", done)
	return err
}

// carryOut turns the file of a task into that of its result.
func carryOut(file, result string) error {
	saved, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	task, err := executor.ToolTaskCodec{}.Decode(saved)
	if err != nil {
		return err
	}
	reply, err := json.Marshal(count(task.Call))
	if err != nil {
		return err
	}
	return write(result, reply)
}

// Place is the arguments of the tool.
type Place struct {
	City string `json:"city"`
}

var shelves = map[string]string{"Lima": "1,200 bolts", "Oslo": "4,700 bolts"}

// count is the tool's work.
func count(call executor.Call) executor.Reply {
	var in Place
	if err := call.Input.Decode(&in); err != nil {
		return executor.Failed(err.Error())
	}
	if bolts, ok := shelves[in.City]; ok {
		return executor.Returned(executor.Result{Content: content.Words(bolts)})
	}
	return executor.Failed("there is no warehouse in " + in.City)
}

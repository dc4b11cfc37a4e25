package main

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"

	"github.com/plait-dev/plait/executor"
)

// The files. The conversation is the state; beside it stand what the run waits for, and the tasks and results by the calls' ids.
var (
	conversation = filepath.Join("handover", "conversation.json")
	continuation = filepath.Join("handover", "continuation.json")
	tasks        = filepath.Join("handover", "tasks")
	results      = filepath.Join("handover", "results")
)

// at is where something about a pending call lies. Ids are a provider's words, not to be trusted with a path, and may come again in
// another message: that of the pause tells them apart.
func at(folder string, c executor.Continuation, id string) string {
	return filepath.Join(folder, c.Message.String()+"-"+url.QueryEscape(id)+".json")
}

// write writes a file as a whole: whoever reads it meets all of it or nothing.
func write(file string, data []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(file), "*.tmp")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name()) // where it is still there
	_, err = temp.Write(data)
	if err := errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), file)
}

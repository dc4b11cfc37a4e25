// Package contextedit leaves old results of tools out of requests. They stay in the conversation, and the model can read
// one again.
//
//	edit := contextedit.Results{Budget: 60_000}
//	agent := executor.Agent{Provider: model, Hooks: []executor.Hook{edit.Hook()}}
//	d := dag.New().Tools(search, contextedit.ReadResult()).User("…")
//
// A run with many calls spends most of its tokens on results that the model has already used. [Results] sends a short
// note in place of the old ones; calls, responses and the user's messages stay as they are, so that the model does not
// lose its task. A summary of everything ([executor.Compaction]) is needed later or never; both can be used together.
//
// A result is left out by a node.Compaction, whose summary is the note: drawings, files and diffs show it, and a
// provider gets no thinking that belongs to the longer conversation.
//
// # Errors
//
// A conversation with an error (dag.DAG.Err) comes back as it is.
package contextedit

// Package examples holds one runnable idea in each folder. All of them run offline, on a scripted model, but live:
//
//   - weather: three tool calls at the same time; the conversation is saved, drawn, and continued at the next start.
//   - live: the same program on a real model.
//   - approval: a tool that may only run when somebody at the terminal allows it, with these arguments or others.
//   - steering: a message of the user in the middle of a long run, and one that waits for its end.
//   - subagents: agents that ask agents; their events, conversations and tokens as one tree.
//   - progress: what tools report while they run, as bars on a terminal.
//   - replay: a recorded run against tools that have changed, and against another model: where do they part?
//   - browser: a run as it goes on, in a browser, where it can be forked.
//   - deferred: tools that another process carries out, any time later, by files of JSON.
//
// Each is started by go run ./examples/NAME. But for live, a test checks what it prints.
package examples

// Package examples holds one runnable program in each folder. All of them run offline, on a scripted model, except
// live:
//
//   - hello: the README's first program: one tool, one question.
//   - weather: three tool calls at the same time; the conversation is saved, drawn, and continued at the next start.
//   - live: the same question to a real model.
//   - terminal: an agent in a terminal, with streaming, approval, Ctrl-C and a session on disk.
//   - service: a chat service over HTTP, with its sessions in SQLite; it survives being killed.
//   - approval: a tool that runs only if a person allows it, with its arguments or with others.
//   - steering: a user message in the middle of a long run, and another one, queued for its end.
//   - subagents: agents that call agents; their events, conversations and tokens as one tree.
//   - progress: reports of running tools, as bars on a terminal.
//   - ownstore: a store of your own, on database/sql, in 105 lines.
//   - replay: a recorded run against changed tools, and against another model.
//   - crash: a run that kills itself in the middle of two tool calls, and finishes at the second start.
//   - workers: durable runs in a few processes, one of them killed; on SQLite or PostgreSQL. With kill.sh, a whole shop
//     is killed under load.
//   - riverui: River's web UI for a database of durable runs.
//   - browser: a run in a browser, as it happens; it can be forked there.
//   - providers: the weather from four APIs in one conversation, each behind a strict fake.
//   - branches: three prompts on forks of one conversation, a judge, and the best one continued.
//   - guardrails: hooks that check messages, calls and answers.
//   - skills: folders of instructions, loaded when they are needed.
//   - compaction: a long conversation in a small context window.
//   - smallrequests: 300 calls without old results, and 500 tools that are found; what is sent to four APIs.
//   - evaluate: 200 cases, judged by another model.
//   - regression: a recorded run as a test in go test.
//   - files: an agent that works with files, through an MCP server.
//   - imported: a session of Claude Code, read and drawn.
//   - deferred: tools that another process executes, at any later time, through JSON files.
//
// Start each with go run ./examples/NAME. Tests check their output, except for live. Pages in docs/guides explain some
// of them.
package examples

// Package acp connects agents with editors by version 1 of the Agent Client Protocol
// (https://agentclientprotocol.com), in both directions.
//
// An editor such as Zed runs a program, and the program serves an agent on its standard input and output:
//
//	err := acp.Serve(ctx, agent, os.Stdin, os.Stdout, &acp.Options{Store: sessions})
//
// And an agent that speaks the protocol, such as Claude Code, Codex or Gemini CLI, becomes a tool of an agent, as a
// sub-agent:
//
//	claude := &acp.Remote{Dial: acp.Command("npx", "-y", "@agentclientprotocol/claude-agent-acp"), Dir: dir}
//	agent.Tools = append(agent.Tools, claude.Tool("claude", "Writes code."))
//
// # What is translated
//
//   - A session is a head of a conversation in a store.Store, saved step by step. Sessions are listed, loaded, resumed,
//     closed, deleted and, by the draft of the protocol, forked. A session is stored with its first prompt.
//   - Texts and thinking arrive in pieces. A call is shown with its arguments, its progress (executor.Progress), and its
//     result: see [View] and [Session.Show] for locations, diffs and terminals. The calls of sub-agents are shown too.
//   - A call that needs approval (executor.AskApproval) is a request for permission. The user may decide about all calls
//     of a tool at once; that holds until the session is closed. Everything but a clear approval declines the call.
//   - A prompt after calls that nobody decided about, because the client was gone, declines them.
//   - Calls of [PlanTool] are plans. [Options] has modes and models. [ClientTools] use files and terminals of the client.
//   - A prompt that another program of the store has made impossible fails, and what it has added is kept at a head of its
//     own (store.ConflictError), which is a session too.
//   - An agent with deferred tools fails when it waits for them.
//
// # Trust
//
// A client of [Serve] may do with the sessions of the store what it wants: set [Options].Prefix for one that may not
// see all of them. Errors of a run reach it as their kind only. It gets an error for a message of more than 16 MiB, for a
// second prompt of a session, for a 257th request under way, and for sessions over the limit.
//
// What a [Remote] sends goes to the model and is limited. Its questions for permission are declined, unless
// [Remote].Permit answers them.
package acp

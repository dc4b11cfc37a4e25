// Package mcp connects agents with MCP, the Model Context Protocol (https://modelcontextprotocol.io), over its Go SDK.
//
// The tools of a server become tools of an agent:
//
//	files, err := mcp.Connect(ctx, mcp.Command("npx", "-y", "@modelcontextprotocol/server-filesystem", dir), nil)
//	if err != nil {
//		return err
//	}
//	defer files.Close()
//
//	agent := executor.Agent{Provider: model, Tools: files.Tools()}
//	agent.Hooks = append(agent.Hooks, files.Hook()) // optional: withdraws tools that change in a run
//
// And an agent becomes a tool of a server of the SDK:
//
//	server := sdk.NewServer(&sdk.Implementation{Name: "weather", Version: "v1"}, nil)
//	mcp.AddAgent(server, mcp.AgentTool{Name: "ask_weather", Description: "Answers questions.", Agent: agent})
//	err := server.Run(ctx, &sdk.StdioTransport{})
//
// # What is translated
//
//   - Texts, images, audio, embedded resources and links become blocks of the result, in order. Audio and binary
//     resources are documents. The structured result is kept in Result.Details; if there are no other blocks, the model
//     reads it as JSON.
//   - A result marked as an error by the server is an error result. A refused request, a lost connection and a server
//     that has ended are error results too: the model reads them, and the run continues.
//   - Progress becomes executor.Progress, so that a run emits it as ToolUpdate events.
//   - A cancelled call is cancelled at the server. Calls have the timeout of the agent.
//   - A server may ask a person (elicitation): see [Options]. Requests for a response of a model (sampling, which the
//     protocol deprecates) are refused.
//   - Prompts, and resources that are not part of a result, are not translated: use [Server.Session].
//
// # Trust
//
// A server's names, descriptions and results go to the model, and a malicious server may give it instructions. Connect
// to servers that you trust, or require approval of their calls (executor.RequireApproval).
//
//   - A tool keeps the definition that the program was given. If the server changes it, the tool is not called any more:
//     [Server.Hook] withdraws it, with a record, and [Server.LeftOut] names it. A program that wants new tools, or changed
//     ones, connects again.
//   - A tool of a server never takes the place of the program's own, or of another server's.
//   - What a server may send is limited by [Limits]. A tool over a limit is left out and named. Nesting of more than
//     500 levels is emptied. executor.OutputLimit limits the part of a result for the model.
//   - Requests go to the origin of the endpoint only, whatever a redirect says.
//   - A server that requires a login gets its token from [OAuth]. No conversation and no error has the token.
package mcp

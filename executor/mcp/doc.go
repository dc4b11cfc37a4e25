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
//	agent.Hooks = append(agent.Hooks, files.Hook()) // optional: follows changes of the server's list in a run
//
// And an agent, or a store of conversations, becomes a part of a server of the SDK:
//
//	server := sdk.NewServer(&sdk.Implementation{Name: "weather", Version: "v1"}, nil)
//	mcp.AddAgent(server, mcp.AgentTool{Name: "ask_weather", Description: "Answers questions.", Agent: agent})
//	mcp.AddStore(server, sessions)
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
//   - A server may ask for a response of a model (sampling) or for an answer of a person (elicitation): see [Options].
//   - Prompts, and resources that are not part of a result, are not translated: use [Server.Session].
//
// # Trust
//
// A server's names, descriptions and results go to the model, and a malicious server may give it instructions. Connect
// to servers that you trust, or require approval of their calls (executor.RequireApproval). A message of a server may
// have 16 MiB; for a larger one the SDK closes the connection. executor.OutputLimit limits the part for the model.
package mcp

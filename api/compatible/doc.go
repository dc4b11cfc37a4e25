// Package compatible names servers with their own implementations of the API of OpenAI or Anthropic: llama.cpp, vLLM,
// Ollama and others.
//
//	model := openai.NewChat("qwen3", &openai.Options{
//		Server: compatible.LlamaCPP,
//		SDK:    []option.RequestOption{option.WithBaseURL("http://127.0.0.1:8080/v1"), option.WithAPIKey("none")},
//	})
//
// For a known server, a provider sends requests in the server's form:
//
//   - Members have the server's names.
//   - Reasoning goes back only in the place the server reads.
//   - An option ignored by the server is enforced in another way if there is one. A tool choice of one tool declares
//     that tool alone. The choice of no tool declares none. The schema of a response becomes a system prompt.
//   - An option is left out if it cannot be enforced or the server would refuse it.
//   - Each such change is a note of kind "option". Package executor still enforces the request: it does not
//     execute a call that the request forbids.
//
// Servers on the network are recognized by the host in the base URL, and Ollama by its port, 11434. For others,
// Options.Server names them. A server without a name here gets the members of OpenAI's API. Options in package openai
// change some of them.
//
// For models on your own machine, prefer Chat Completions (openai.NewChat): these servers implement it most completely.
package compatible

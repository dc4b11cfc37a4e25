// Package apitest helps to test what talks to models: a scripted model that needs no network, and strict fakes of the real APIs.
//
// The smallest whole program:
//
//	model := apitest.NewScript(
//		apitest.Call(apitest.Use("get_weather", map[string]string{"city": "Tokyo"})),
//		apitest.Say("It is 22°C in Tokyo."),
//	)
//	d, err := executor.Run(ctx, model, d)
//	fmt.Println(len(model.Requests()), d.Text())
//
// [Script] is a model for tests of what stands above it. [Anthropic] is a strict fake of a real API, for tests of what is sent to it:
// it refuses what the API refuses, in the API's own words. [Tape] records what a real API answers, without the secrets, and plays it
// back. [Run] checks that a provider keeps the rules of api.Provider; with a [Recorder] it also looks at what the provider sends.
//
// # Concurrency
//
// Everything here is safe for concurrent use.
//
// # Errors
//
// A [Script] that was asked more often than it has turns fails with [ErrScriptOver]. A request that is not on a [Tape]
// fails with [ErrNotTaped]; closing a tape reports it again, and what was left with [ErrTapeLeft].
package apitest

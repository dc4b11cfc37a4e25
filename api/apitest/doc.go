// Package apitest helps to test programs that call models: a scripted model that needs no network, and the suite that
// every provider passes.
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
// [Script] is a model for tests of an agent. [Run] checks that a provider keeps the rules of api.Provider. With a
// [Recorder] it also checks the requests that the provider sends.
//
// Two packages beside this one stand in for a real API: apitest/fake has servers that refuse what the API refuses, and
// apitest/tape records real traffic and plays it back.
//
// # Concurrency
//
// Everything here is safe for concurrent use.
//
// # Errors
//
// A request to a [Script] that has no turn left fails with [ErrScriptOver].
package apitest

// Package apitest helps to test programs that call models: it has a scripted model, and needs no network.
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
// Packages beside this one help to test providers: apitest/conformance is the test suite for every provider,
// apitest/fake has servers as strict as the real APIs, and apitest/tape records real traffic and plays it back.
//
// # Concurrency
//
// Everything here is safe for concurrent use.
//
// # Errors
//
// A request to a [Script] without turns left fails with [ErrScriptOver].
package apitest

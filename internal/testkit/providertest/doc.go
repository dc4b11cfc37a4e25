// Package providertest holds the shared code of all providers' tests: random conversations, to be made into valid
// requests, and recorded traffic, played back by a local server. It is separate from fixture because it imports dag,
// and the tests of dag import fixture.
package providertest

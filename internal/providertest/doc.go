// Package providertest holds what the tests of all providers share: random conversations, each of which must become a
// valid request, and recorded traffic, played back by a local server. It is separate from fixture because it imports
// dag, whose tests import fixture.
package providertest

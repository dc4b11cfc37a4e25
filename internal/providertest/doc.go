// Package providertest holds what the tests of all providers do alike: conversations made at random, of which each has to be fit to be
// sent, and recorded traffic, which a local server plays. It is a package beside fixture because it needs graphs, whose own tests
// need fixture.
package providertest

package main

import (
	"github.com/plait-dev/plait/bench/internal/corpus"
	"github.com/plait-dev/plait/bench/internal/pair"
)

// cases returns all cases, mostly in the order of their goals.
func cases() []pair.Case {
	list := []pair.Case{
		encodeNode(),
		snapshot(1000, 10), snapshot(10_000, 6), snapshot(100_000, 4),
		journal(10, 60), journal(1000, 1500), journal(10_000, 10_000), journalFlat(), journalSync(),
		load(1000), load(10_000), load(100_000),
		loadMemory(10_000),
		requests(10, 3, 0), requests(100, 20, 0), requests(1000, 100, 12), requests(10_000, 50, 0),
		appendNode(),
		order("chain", corpus.Chain, 1000, 20, 0), order("chain", corpus.Chain, 100_000, 20, 0),
		order("chain", corpus.Chain, 1_000_000, 20, 2.5),
		order("phases", corpus.Phases, 1000, 5, 0), order("phases", corpus.Phases, 1_000_000, 20, 2.5),
		orderGonum(10_000), orderGonum(100_000),
		toolPhase(1, 2.2), toolPhase(8, 1.5), toolPhase(64, 1.25), toolPhase(10_000, 1.5),
		slowTools(8), slowTools(64),
		turn(1), turn(8), turn(64),
		deltas(),
		sentMemory(), conversations(), million(), large(),
		writePage(1000), writePage(10_000), writePage(100_000), pageSize(100_000), pageMemory(100_000),
		reports(1000),
	}
	list = append(list, peerCases()...)
	return append(append(list, coldStart()), command()...)
}

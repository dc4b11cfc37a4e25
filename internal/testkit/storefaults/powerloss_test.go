//go:build disk

package storefaults

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/stretchr/testify/require"
)

// image is a disk after a power loss, and what the program knew at that moment.
type image struct {
	disk *disk
	all  map[string]*expected
}

// simulation is a number of power losses of one setting.
type simulation struct {
	seed    uint64
	images  int    // how many power losses
	writers int    // how many goroutines write at the same time, each to a conversation of its own
	setting string // of PRAGMA synchronous, in place of ours
	lies    bool   // the disk reports syncs that it does not make
	apart   bool   // records and heads are stored in two transactions

	counts     map[verdict]int
	first      map[verdict]error // an example
	operations int               // of the disk, while programs ran
}

// run simulates. The program runs until its disk is replaced by one of the images, or closes the store and opens it again.
func (s *simulation) run(t *testing.T) {
	random := rand.New(rand.NewPCG(s.seed, 0))
	s.counts, s.first = map[verdict]int{}, map[verdict]error{}
	var d *disk
	var all map[string]*expected

	for life := 0; s.images > 0; life++ {
		if life%4 == 0 || d == nil { // a new disk
			d, all = newDisk(), map[string]*expected{}
			for i := range s.writers {
				all[fmt.Sprint("talk", i)] = &expected{history: map[string]bool{}}
			}
		}
		if d.setting = s.setting; s.control() {
			// The disk of a control is sound when its program begins.
			db, err := d.open(1000)
			require.NoError(t, err)
			require.NoError(t, db.close())
			d = d.settled()
		}
		d.setting, d.lies = s.setting, s.lies
		d, all = s.live(t, d, all, random)
	}
	t.Logf("seed %d: %v in %d operations", s.seed, s.counts, s.operations)
}

// control reports whether this is a negative control.
func (s *simulation) control() bool { return s.setting != "" || s.lies || s.apart }

// live runs a program until it ends, and returns the disk with which the next one begins: nil for a new one.
//
// It examines the images that are taken meanwhile.
func (s *simulation) live(t *testing.T, d *disk, known map[string]*expected, random *rand.Rand) (
	*disk, map[string]*expected) {
	var images []image
	d.before = func(d *disk, _ operation) error {
		s.operations++
		if random.IntN(25) == 0 { // a step has about 45 operations
			then := map[string]*expected{}
			for name, e := range known {
				then[name] = e.clone()
			}
			images = append(images, image{d.crash(random), then})
		}
		return nil
	}
	steps, pages, ends := 3+random.IntN(30)/s.writers, []int{8, 40, 1000}[random.IntN(3)], random.IntN(3)
	first := random.Uint64() // seed of the first writer

	db, err := d.open(pages)
	require.NoError(t, err)
	var running sync.WaitGroup
	failed := make([]error, s.writers)
	for i := range s.writers {
		w := newWriter(d, fmt.Sprint("talk", i), first+uint64(i))
		w.expected, w.apart = known[w.conversation], s.apart
		write := func() {
			for range steps {
				failed[i] = errors.Join(failed[i], w.step(db))
			}
		}
		if s.writers == 1 {
			write() // what happens depends on nothing but the seed
			continue
		}
		running.Go(write)
	}
	running.Wait()
	require.NoError(t, errors.Join(failed...))
	if ends == 0 {
		require.NoError(t, db.close())
	}

	d.mu.Lock()
	d.before = newDisk().before
	d.mu.Unlock()
	if ends != 0 {
		require.NoError(t, db.close())
	}

	var next *disk
	all := known
	for n, i := range images {
		if s.images == 0 {
			return nil, nil
		}
		s.images--
		if n == len(images)-1 { // the next program begins with the recovery, which may crash too
			next = i.disk.settled()
		}

		found, err := i.disk.examine(i.all)
		if s.counts[found]++; s.first[found] == nil && err != nil {
			s.first[found] = fmt.Errorf("seed %d, %d images before the last: %w", s.seed, s.images, err)
		}
		if all = i.all; found != sound {
			next = nil
		}
	}
	if ends == 0 {
		return d, known
	}
	return next, all
}

// simulate runs simulations with several seeds, and returns the sums. All of the images are tried with PLAIT_LONG, and a
// twentieth of them otherwise, but at least 100.
func simulate(t *testing.T, s simulation, runs int) simulation {
	t.Helper()
	s.images = max(100, seedtest.Rounds(s.images/20, s.images))
	sum := simulation{counts: map[verdict]int{}, first: map[verdict]error{}}
	for i := range runs {
		one := s
		one.seed, one.images = seedtest.First(t)+uint64(i), s.images/runs
		one.run(t)
		for found, n := range one.counts {
			if sum.counts[found] += n; sum.first[found] == nil {
				sum.first[found] = one.first[found]
			}
		}
	}
	t.Logf("%v, the first: %v", sum.counts, sum.first)
	return sum
}

func TestPowerLossLosesNothingAcknowledged(t *testing.T) {
	for _, setting := range []simulation{{images: 4000, writers: 1}, {images: 1000, writers: 4}} {
		t.Run(fmt.Sprint(setting.writers, " writers"), func(t *testing.T) {
			s := simulate(t, setting, 4)
			for _, bad := range []verdict{lost, damaged, orphans} {
				require.Zero(t, s.counts[bad], "%s, the first: %v", bad, s.first[bad])
			}
			require.NotZero(t, s.counts[sound])
		})
	}
}

func TestPowerLossIsTheSameForTheSameSeed(t *testing.T) {
	var runs [2]simulation
	for i := range runs {
		runs[i] = simulation{seed: seedtest.First(t), images: 50, writers: 1, lies: true}
		runs[i].run(t)
	}
	require.Equal(t, runs[0].operations, runs[1].operations)
	require.Equal(t, runs[0].counts, runs[1].counts)
}

// The negative controls: the simulation finds what goes wrong where something is wrong.

func TestPowerLossWithoutSyncsDamages(t *testing.T) {
	s := simulate(t, simulation{images: 500, writers: 1, setting: "off"}, 1)
	require.NotZero(t, s.counts[damaged])
	require.NotZero(t, s.counts[lost])
}

func TestPowerLossOfADiskThatLiesDamages(t *testing.T) {
	s := simulate(t, simulation{images: 500, writers: 1, lies: true}, 1)
	require.NotZero(t, s.counts[damaged])
	require.NotZero(t, s.counts[lost])
}

func TestPowerLossBetweenRecordsAndHeadLeavesOrphans(t *testing.T) {
	s := simulate(t, simulation{images: 500, writers: 1, apart: true}, 1)
	require.NotZero(t, s.counts[orphans])
}

func TestPowerLossWithSynchronousNormalLosesAcknowledged(t *testing.T) {
	s := simulate(t, simulation{images: 500, writers: 1, setting: "normal"}, 1)
	require.NotZero(t, s.counts[lost])
	require.Zero(t, s.counts[damaged], "the first: %v", s.first[damaged])
}

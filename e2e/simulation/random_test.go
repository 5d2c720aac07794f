package simulation_test

import (
	"crypto/rand"
	"encoding/binary"
	"io"
	randv2 "math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"
)

// momentary is a source of random bytes. They depend on the seed, the time, the number of bytes, and
// the number of earlier draws of this size at this time. So goroutines that draw at different times
// do not influence each other. All random numbers of one time are equal, because the goroutines that
// draw them, for pauses, can run in any sequence.
type momentary struct {
	seed uint64

	mu    sync.Mutex
	at    int64
	drawn map[int]uint64
}

// useMomentaryRandom replaces the source of crypto/rand until restore is called.
func useMomentaryRandom(seed uint64) (restore func()) {
	before := rand.Reader
	source := &momentary{seed: seed}
	rand.Reader = source
	uuid.SetRand(source)
	return func() {
		rand.Reader = before
		uuid.SetRand(nil)
	}
}

// numberSize is the number of bytes that attempt.RandomN reads.
const numberSize = 8

// Read implements io.Reader.
func (m *momentary) Read(p []byte) (int, error) {
	now := time.Now().UnixNano()
	m.mu.Lock()
	if now != m.at || m.drawn == nil {
		m.at, m.drawn = now, map[int]uint64{}
	}
	if len(p) != numberSize {
		m.drawn[len(p)]++
	}
	n := m.drawn[len(p)]
	m.mu.Unlock()
	var key [32]byte
	for i, v := range []uint64{m.seed, uint64(now), uint64(len(p)), n} {
		binary.LittleEndian.PutUint64(key[8*i:], v)
	}
	return io.ReadFull(randv2.NewChaCha8(key), p)
}

package server

import (
	"bytes"
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"
)

// frameCounter finds the beginning of each frame, however the stream is split.
func TestFrameCounter(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var stream bytes.Buffer
		var begins []int
		for range rapid.IntRange(0, 6).Draw(rt, "frames") {
			begins = append(begins, stream.Len())
			size := rapid.SampledFrom([]int{0, 1, 125, 126, 127, 300, 1<<16 - 1, 1 << 16}).Draw(rt, "size")
			mask := rapid.SampledFrom([]byte{0, 0x80}).Draw(rt, "mask")
			stream.WriteByte(0x81)
			switch {
			case size < 126:
				stream.WriteByte(mask | byte(size))
			case size < 1<<16:
				stream.Write(binary.BigEndian.AppendUint16([]byte{mask | 126}, uint16(size)))
			default:
				stream.Write(binary.BigEndian.AppendUint64([]byte{mask | 127}, uint64(size)))
			}
			if mask != 0 {
				stream.WriteString("mask")
			}
			stream.Write(make([]byte, size))
		}
		var f frameCounter
		for at, rest := 0, stream.Bytes(); len(rest) > 0; {
			n := rapid.IntRange(1, min(len(rest), 70_000)).Draw(rt, "part")
			want := 0
			for _, begin := range begins {
				if at <= begin && begin < at+n {
					want++
				}
			}
			if got := f.count(rest[:n]); got != want {
				rt.Fatalf("%d frames begin in bytes %d to %d, want %d", got, at, at+n, want)
			}
			at, rest = at+n, rest[n:]
		}
	})
}

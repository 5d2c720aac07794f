package server

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/ordergraph/ordergraph/graph/operation"
)

// What a client can send on a WebSocket before connection_ack. It can send connection_init, which
// may be split into several frames, and a few pings.
const (
	maxInitFrames = 16
	maxInitBytes  = 2 * maxInitMessageBytes
)

// minFrameBytes is the size of the smallest frames of a client: two bytes and a mask.
const minFrameBytes = 6

// maxMeteredRead limits how many bytes of new frames one call of Read returns. So the client has to
// pay for at most 85 frames of minFrameBytes before the server handles the first.
const maxMeteredRead = 512

// meteredConn is the network connection of a WebSocket. It counts everything that the client sends,
// including pings, fragments and what arrives while the socket is being closed. If the client has
// too few points, Read waits, so that the client must wait too.
//
// Before connection_ack, the client has no balance of points. When it has sent maxInitFrames or
// maxInitBytes, meteredConn reads no more until connection_ack.
type meteredConn struct {
	net.Conn
	// reader reads what the client sends: first the bytes that net/http has read ahead, then Conn.
	reader io.Reader
	// closing is closed when the server begins to close the socket.
	closing <-chan struct{}
	// charge takes points from the client's balance, and waits until there are enough. It is nil until
	// connection_ack.
	charge atomic.Pointer[func(points int) error]
	// received reports whether the client has sent anything since the last call of active. waiting
	// reports whether Read waits for points.
	received, waiting atomic.Bool

	// The fields below are used only by Read, which the library never calls concurrently.

	frames frameCounter
	// unpaid is the number of frames that the client has not paid yet. unpaidBytes is the number of
	// bytes.
	unpaid, unpaidBytes int
}

// hijackedWriter is a ResponseWriter whose network connection, returned by Hijack, is metered.
type hijackedWriter struct {
	http.ResponseWriter
	conn *meteredConn
}

// Hijack returns the network connection of the request.
func (w *hijackedWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffers, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	ahead, _ := buffers.Reader.Peek(buffers.Reader.Buffered()) // the error is nil for the bytes in the buffer
	w.conn.Conn, w.conn.reader = conn, io.MultiReader(bytes.NewReader(bytes.Clone(ahead)), conn)
	buffers.Reader.Reset(w.conn)
	return w.conn, buffers, nil
}

// Read reads from the connection. Before it returns, the client pays one point for each frame, and
// the points for the bytes.
func (c *meteredConn) Read(p []byte) (int, error) {
	newFrames := maxMeteredRead // bytes of frames that have not begun yet
	if c.charge.Load() == nil {
		left := maxInitFrames - c.unpaid
		if left == 0 && c.frames.complete() || c.unpaidBytes >= maxInitBytes {
			<-c.closing
			return 0, net.ErrClosed
		}
		newFrames = max(1, left*minFrameBytes) // the last frame's header is read byte by byte
	}
	// The rest of a frame can be longer, because it contains no other frame.
	n, err := c.reader.Read(p[:min(uint64(len(p)), max(uint64(newFrames), c.frames.payload))])
	if n == 0 {
		return 0, err
	}
	c.received.Store(true)
	c.unpaid += c.frames.count(p[:n])
	c.unpaidBytes += n
	if charge := c.charge.Load(); charge != nil {
		points := c.unpaid + c.unpaidBytes/operation.BytesPerPoint
		c.unpaid, c.unpaidBytes = 0, c.unpaidBytes%operation.BytesPerPoint
		c.waiting.Store(true)
		defer c.waiting.Store(false)
		if err := (*charge)(points); err != nil {
			return 0, err
		}
	}
	return n, err
}

// startCharging makes the client pay for everything that it sends, including what it has sent before.
func (c *meteredConn) startCharging(charge func(points int) error) { c.charge.Store(&charge) }

// active reports whether the client has sent anything since the last call of active, or waits until
// the server reads on.
func (c *meteredConn) active() bool { return c.received.Swap(false) || c.waiting.Load() }

// frameCounter counts the frames in a stream of bytes
// (https://www.rfc-editor.org/rfc/rfc6455#section-5.2).
type frameCounter struct {
	// header contains the first bytes of a frame, until its header is complete.
	header  [2 + 8 + 4]byte
	arrived int
	// payload is the number of bytes until the next frame begins.
	payload uint64
}

// complete reports whether the last frame is complete.
func (f *frameCounter) complete() bool { return f.arrived == 0 && f.payload == 0 }

// count returns the number of frames that begin in the next part of the stream.
func (f *frameCounter) count(part []byte) (frames int) {
	for len(part) > 0 {
		if f.payload > 0 {
			skipped := min(f.payload, uint64(len(part)))
			f.payload -= skipped
			part = part[skipped:]
			continue
		}
		if f.arrived == 0 {
			frames++
		}
		f.header[f.arrived] = part[0]
		f.arrived++
		part = part[1:]
		f.endHeader()
	}
	return frames
}

// endHeader sets payload when the last byte of a header has arrived.
func (f *frameCounter) endHeader() {
	if f.arrived < 2 {
		return
	}
	masked, length := f.header[1]&0x80 != 0, f.header[1]&0x7f
	size := 2
	switch length {
	case 126:
		size += 2
	case 127:
		size += 8
	}
	end := size
	if masked {
		size += 4
	}
	if f.arrived < size {
		return
	}
	switch length {
	case 126:
		f.payload = uint64(binary.BigEndian.Uint16(f.header[2:end]))
	case 127:
		f.payload = binary.BigEndian.Uint64(f.header[2:end])
	default:
		f.payload = uint64(length)
	}
	f.arrived = 0
}

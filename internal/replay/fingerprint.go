package replay

import (
	"bytes"
	"errors"
	"hash/maphash"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// seed is the same for the whole process, as fingerprints are compared only in it.
var seed = maphash.MakeSeed()

// request is the body of a request, with the decoder that reads it. The zero value is ready for
// use, and can be used again, which allocates nothing: the replay stays out of what is measured.
type request struct {
	body bytes.Buffer
	// unread is what the decoder has yet to read of body.
	unread  bytes.Buffer
	decoder jsontext.Decoder
}

// fingerprint returns a hash of what a request means. Two bodies have the same hash if they are the
// same JSON but for white space and the order of members and elements: the SDK writes maps in
// random order, and the order of a batch's keys has no meaning. It returns false for a body that is
// not JSON.
//
// Two different requests have the same fingerprint with a probability of about 2^-64. Strings that
// are escaped differently count as different, which costs one more request to the engine.
func (r *request) fingerprint(target string) (uint64, bool) {
	r.unread = r.body
	r.decoder.Reset(&r.unread, jsontext.AllowDuplicateNames(true))
	hash, err := hashValue(&r.decoder)
	if err != nil {
		return 0, false
	}
	_, err = r.decoder.ReadToken()
	return mix(maphash.String(seed, target), hash), errors.Is(err, io.EOF)
}

// hashValue reads a value. Objects and arrays are sums, in which the order does not matter.
func hashValue(d *jsontext.Decoder) (uint64, error) {
	kind := d.PeekKind()
	end := jsontext.KindEndArray
	switch kind {
	case jsontext.KindBeginArray:
	case jsontext.KindBeginObject:
		end = jsontext.KindEndObject
	default:
		text, err := d.ReadValue()
		return maphash.Bytes(seed, text), err
	}
	if _, err := d.ReadToken(); err != nil {
		return 0, err
	}
	sum, n := uint64(0), uint64(0)
	for ; d.PeekKind() != end; n++ {
		hash, err := hashValue(d)
		if err != nil {
			return 0, err
		}
		if kind == jsontext.KindBeginObject {
			value, err := hashValue(d)
			if err != nil {
				return 0, err
			}
			hash = mix(hash, value) // hash is the name's
		}
		sum += hash
	}
	_, err := d.ReadToken()
	return mix(sum, uint64(kind)+n<<8), err
}

// mix makes one hash of two in this order, such that sums of mixed hashes say nothing of each other
// (the finaliser of MurmurHash3, which is in the public domain).
func mix(a, b uint64) uint64 {
	h := a*0x9e3779b97f4a7c15 + b
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	h ^= h >> 33
	return h
}

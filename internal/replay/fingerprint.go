package replay

import (
	"bytes"
	"errors"
	"hash/maphash"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// hashSeed is the seed of all hashes in this process. Fingerprints are compared only within the
// process.
var hashSeed = maphash.MakeSeed()

// fingerprinter contains the body of a request and a decoder that reads the body. The zero value is
// ready for use. Reusing a fingerprinter allocates no memory, so the replay does not affect measured
// allocations.
type fingerprinter struct {
	body bytes.Buffer
	// unread is the part of body that the decoder has not read.
	unread  bytes.Buffer
	decoder jsontext.Decoder
}

// fingerprint returns a hash of a request to DynamoDB. Requests with the same meaning have the same
// hash. The hash does not depend on white space, or on the order of members and elements. The SDK
// writes maps in random order, and the order of keys in a batch has no meaning. If the body is not
// JSON, fingerprint returns false.
//
// Two requests with different meanings have the same fingerprint with a probability of about 2^-64.
// Equal strings with different escape sequences have different fingerprints, so the client sends
// one more request to the engine.
func (r *fingerprinter) fingerprint(target string) (uint64, bool) {
	r.unread = r.body
	r.decoder.Reset(&r.unread, jsontext.AllowDuplicateNames(true))
	hash, err := hashValue(&r.decoder)
	if err != nil {
		return 0, false
	}
	_, err = r.decoder.ReadToken()
	return combineHashes(maphash.String(hashSeed, target), hash), errors.Is(err, io.EOF)
}

// hashValue returns the hash of the next JSON value. The hash of an object or array is the sum of
// its elements' hashes, so it does not depend on their order. For an array, this is intended: the
// keys of a batch can have any order.
func hashValue(d *jsontext.Decoder) (uint64, error) {
	kind := d.PeekKind()
	end := jsontext.KindEndArray
	switch kind {
	case jsontext.KindBeginArray:
	case jsontext.KindBeginObject:
		end = jsontext.KindEndObject
	default:
		text, err := d.ReadValue()
		return maphash.Bytes(hashSeed, text), err
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
			hash = combineHashes(hash, value) // hash was the hash of the name
		}
		sum += hash
	}
	_, err := d.ReadToken()
	return combineHashes(sum, uint64(kind)+n<<8), err
}

// combineHashes combines two hashes. The result depends on their order. The function is the
// finalizer of MurmurHash3, which is in the public domain. The function mixes the bits, so that
// sums of results rarely collide.
func combineHashes(a, b uint64) uint64 {
	h := a*0x9e3779b97f4a7c15 + b
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	h ^= h >> 33
	return h
}

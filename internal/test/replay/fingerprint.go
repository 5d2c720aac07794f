package replay

import (
	"bytes"
	"errors"
	"hash/maphash"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// hashSeed is the random seed of all hashes in this process. Hashes of different processes are
// never compared.
var hashSeed = maphash.MakeSeed()

// fingerprinter contains the body of a request and a decoder that reads the body. To keep
// benchmarks accurate, a fingerprinter can be reused without allocating memory.
type fingerprinter struct {
	body bytes.Buffer
	// unread is the part of body that the decoder has not read yet.
	unread  bytes.Buffer
	decoder jsontext.Decoder
}

// fingerprint returns a hash of a DynamoDB request. The parameter target names the DynamoDB
// operation. The hash ignores white space, the order of object members and the order of array
// elements. If the body is not JSON, fingerprint returns false.
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

// hashValue returns the hash of the next JSON value. The hash does not depend on the order of
// object members and array elements, because this order can differ between equivalent requests.
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
			hash = combineHashes(hash, value) // combines the hash of the member's name with the hash of its value
		}
		sum += hash
	}
	_, err := d.ReadToken()
	return combineHashes(sum, uint64(kind)+n<<8), err
}

// combineHashes combines two hashes. Exchanging a and b changes the result. hashValue adds several
// results, so combineHashes mixes their bits well, to make equal sums rare. The last five lines of
// the calculation come from MurmurHash3 (public domain).
func combineHashes(a, b uint64) uint64 {
	h := a*0x9e3779b97f4a7c15 + b
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	h ^= h >> 33
	return h
}

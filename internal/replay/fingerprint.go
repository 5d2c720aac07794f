package replay

import "hash/maphash"

// seed is the same for the whole process, as fingerprints are compared only in it.
var seed = maphash.MakeSeed()

// fingerprint tells a request by what it means: two bodies have the same one where they are the same JSON but for the order of members and of
// elements. The SDK writes maps in random order, so the same request has many bodies; and the order of a batch's keys says nothing. It is
// false for what is no JSON. It allocates nothing, so that what is measured is not what measures.
//
// Two requests that differ have the same one with a probability of 2^-64 or so, and strings that are escaped differently count as different:
// either costs one question more to the engine, or a test that fails at once.
func fingerprint(target string, body []byte) (uint64, bool) {
	s := scanner{text: body}
	hash := s.value()
	s.space()
	return mix(maphash.String(seed, target), hash), !s.broken && s.at == len(body)
}

// scanner reads JSON from the left to the right.
type scanner struct {
	text   []byte
	at     int
	depth  int
	broken bool
}

// maxNesting is deeper than any request.
const maxNesting = 64

func (s *scanner) space() {
	for s.at < len(s.text) && (s.text[s.at] == ' ' || s.text[s.at] == '\n' || s.text[s.at] == '\t' || s.text[s.at] == '\r') {
		s.at++
	}
}

// next is the next byte that is no space, 0 at the end.
func (s *scanner) next() byte {
	s.space()
	if s.at == len(s.text) {
		return 0
	}
	return s.text[s.at]
}

// take takes the byte c, or notes that it is not there.
func (s *scanner) take(c byte) {
	if s.next() != c {
		s.broken = true
		return
	}
	s.at++
}

func (s *scanner) value() uint64 {
	if s.depth++; s.depth > maxNesting {
		s.broken = true
	}
	defer func() { s.depth-- }()
	switch s.next() {
	case '{':
		return s.list('{', '}')
	case '[':
		return s.list('[', ']')
	case '"':
		return s.text64()
	default:
		return s.literal()
	}
}

// list is an object or an array: a sum, in which the order does not matter.
func (s *scanner) list(open, end byte) uint64 {
	sum, n := uint64(0), uint64(0)
	for s.take(open); !s.broken; s.take(',') {
		if s.next() == end && n == 0 {
			break
		}
		if open == '{' {
			sum += s.member()
		} else {
			sum += s.value()
		}
		n++
		if s.next() == end {
			break
		}
	}
	s.take(end)
	return mix(sum, uint64(open)+n<<8)
}

func (s *scanner) member() uint64 {
	name := s.text64()
	s.take(':')
	return mix(name, s.value())
}

func (s *scanner) text64() uint64 {
	s.take('"')
	begin := s.at
	for s.at < len(s.text) && s.text[s.at] != '"' {
		if s.text[s.at] == '\\' {
			s.at++
		}
		s.at++
	}
	if s.at >= len(s.text) {
		s.at, s.broken = len(s.text), true
		return 0
	}
	hash := maphash.Bytes(seed, s.text[begin:s.at])
	s.at++
	return mix(hash, '"')
}

// literal is a number, true, false or null.
func (s *scanner) literal() uint64 {
	begin := s.at
	for s.at < len(s.text) && (s.text[s.at] >= '0' && s.text[s.at] <= '9' || s.text[s.at] >= 'A' && s.text[s.at] <= 'Z' || s.text[s.at] >= 'a' && s.text[s.at] <= 'z' || s.text[s.at] == '-' || s.text[s.at] == '+' || s.text[s.at] == '.') {
		s.at++
	}
	s.broken = s.broken || s.at == begin
	return maphash.Bytes(seed, s.text[begin:s.at])
}

// mix makes one hash of two in this order, such that sums of mixed hashes say nothing of each other (the finaliser of MurmurHash3, which is in
// the public domain).
func mix(a, b uint64) uint64 {
	h := a*0x9e3779b97f4a7c15 + b
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	h ^= h >> 33
	return h
}

package embedded

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
)

// digest is a hash of the actions of a transaction.
type digest = [sha256.Size]byte

// tokens has the ClientRequestTokens of the last successful transactions. DynamoDB forgets a token
// after ten minutes. The store has no clock and forgets the oldest tokens.
type tokens struct {
	limit  int
	known  map[string]digest
	oldest int
	order  []string // a ring buffer when it is full
}

// digestOf returns equal digests for requests that differ only in their token or the order of maps.
func digestOf(in *transaction) (digest, error) {
	text, err := json.Marshal(in.TransactItems)
	if err != nil {
		return digest{}, fmt.Errorf("encode a transaction: %w", err)
	}
	return sha256.Sum256(text), nil
}

// remember adds a token. If the limit is reached, it removes the oldest token.
func (t *tokens) remember(token string, d digest) {
	if len(t.order) < t.limit {
		t.order = append(t.order, token)
	} else {
		delete(t.known, t.order[t.oldest])
		t.order[t.oldest] = token
		t.oldest = (t.oldest + 1) % t.limit
	}
	t.known[token] = d
}

package embedded

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
)

// digest stands for what a transaction was to do.
type digest = [sha256.Size]byte

// tokens are the ClientRequestTokens of the last transactions that succeeded. DynamoDB forgets a
// token after ten minutes; the store has no clock and forgets the oldest when there are too many.
type tokens struct {
	limit  int
	known  map[string]digest
	oldest int
	order  []string // a ring, once it is full
}

// digestOf is the same for requests that differ in their token or the order of their maps only.
func digestOf(in *transaction) (digest, error) {
	text, err := json.Marshal(in.TransactItems)
	if err != nil {
		return digest{}, fmt.Errorf("encode a transaction: %w", err)
	}
	return sha256.Sum256(text), nil
}

// remember keeps a token, and forgets the oldest where there is no room.
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

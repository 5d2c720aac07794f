package change

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/dynamo/units"
)

// idempotencyTTL is how long a request is known again.
const idempotencyTTL = 24 * time.Hour

// idempotency is the memory of one request: by the caller's key, what was asked for and what was
// answered.
type idempotency struct {
	key  model.Keys
	hash string
}

// newIdempotency is what is remembered of a change; nil where the caller gave no key.
//
// Errors: commerce.InvalidError where the caller's ID or key can be in no key of the table.
func newIdempotency(c *change, command any) (*idempotency, error) {
	if c.caller.IdempotencyKey == "" {
		return nil, nil
	}
	body, err := json.Marshal(command)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.pattern.Mutation, err)
	}
	hash := sha256.Sum256(append([]byte(c.pattern.Mutation+" "), body...))
	b := &model.KeyBuilder{}
	k := model.Keys{PK: b.Key(model.EntityIdempotency.PK, c.caller.ID, c.caller.IdempotencyKey), SK: b.Key(model.EntityIdempotency.SK)}
	return &idempotency{key: k, hash: hex.EncodeToString(hash[:])}, b.Err
}

// remember adds the memory of the change to the transaction that makes it, before all else: where
// several conditions fail, this is the one that counts. A memory that has expired counts as none.
func (c *change) remember(i *idempotency, result model.Record) {
	now := c.table.Now()
	writes := c.writes
	c.writes = nil
	c.put(i.key.Attributes().With(model.Record{
		"entity": model.Str(model.EntityIdempotency.Name), "mutation": model.Str(c.pattern.Mutation), "requestHash": model.Str(i.hash),
		"result": &types.AttributeValueMemberM{Value: result}, "createdAt": model.Str(model.Timestamp(now)),
		model.AttrExpiresAt: model.Num(int(now.Add(idempotencyTTL).Unix())),
	}), table.Either(table.Absent, table.Is(model.AttrExpiresAt, "<=", model.Num(int(now.Unix())))))
	c.writes = append(c.writes, writes...)
}

// replay gives the first answer to a request that is known, reading its memory where nothing is
// known of it; false where the request is new.
//
// Errors: commerce.IdempotencyKeyReused, ErrCorrupt, those of failed.
func replay[V any](ctx context.Context, c *change, i *idempotency, decode decoder[V]) (first V, found bool, err error) {
	if i == nil {
		return first, false, nil
	}
	memory, told := c.known[i.key]
	// Another plan may fail because the request that is remembered now was not yet.
	delete(c.known, i.key)
	if !told {
		if memory, err = c.recall(ctx, i.key); err != nil {
			return first, false, err
		}
	}
	if memory == nil {
		return first, false, nil
	}
	r := model.Reader{Record: memory}
	if expires := r.MustNumber(model.AttrExpiresAt); int64(expires) <= c.table.Now().Unix() {
		return first, false, r.Err()
	}
	if r.MustText("requestHash") != i.hash {
		return first, true, commerce.KeyReused()
	}
	result, ok := memory["result"].(*types.AttributeValueMemberM)
	if !ok {
		r.Fail("result", "is missing or no map")
		return first, true, r.Err()
	}
	first, err = decode(model.Reader{Record: result.Value})
	return first, true, err
}

// recall reads a memory in a transaction of its own: one that is just being committed, and whose
// other records were seen already, is waited for. Reads by themselves are not kept apart from it as
// a whole.
//
// Errors: those of failed.
func (c *change) recall(ctx context.Context, k model.Keys) (model.Record, error) {
	t := table.StartTimer(ctx)
	a, err := c.table.TransactGet(ctx, k)
	if err != nil {
		return nil, table.Failed("TransactGetItems", k.Unnamed(), err)
	}
	var memory model.Record
	if len(a.Records) > 0 && a.Records[0].Has(model.AttrPK) {
		memory = a.Records[0].Attributes()
	}
	if t.On() {
		r := table.Request{AccessPattern: c.pattern.ID, Operation: "TransactGetItems", Key: k.PK + " " + k.SK, ReadUnits: 4 * units.Read(model.SizeOf(memory))}
		if memory != nil {
			r.Items = 1
		}
		t.Stop(r)
	}
	return memory, nil
}

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
)

// idempotencyTTL is the time after which an idempotency record expires.
const idempotencyTTL = 24 * time.Hour

// idempotency identifies a mutation. key is the key of its idempotency record, which stores the
// mutation's result. hash is a hash of the mutation's name and arguments.
type idempotency struct {
	key  model.Keys
	hash string
}

// newIdempotency returns the key and the hash that identify a mutation. Without an idempotency key,
// it returns nil.
//
// Errors: commerce.InvalidError if the caller's ID or the idempotency key is not valid in a table
// key.
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
	k := model.Keys{PK: b.Build(model.EntityIdempotency.PK, c.caller.ID, c.caller.IdempotencyKey), SK: b.Build(model.EntityIdempotency.SK)}
	return &idempotency{key: k, hash: hex.EncodeToString(hash[:])}, b.Err
}

// addIdempotencyRecord adds a write of the idempotency record, as the first action of the
// transaction. The write may replace an existing record with the same key only if that record has
// expired. The record does not contain personal data of customers, because eraseCustomer could not find it.
func (c *change) addIdempotencyRecord(i *idempotency, value any) {
	now, encode := c.table.Now(), model.EncodeAttributes
	if c.erases() {
		encode = model.EncodeWithoutPersonal
	}
	writes := c.writes
	c.writes = nil
	c.put(c.Identify(&model.EntityIdempotency, i.key.Attributes().Merge(model.Record{
		"mutation": model.Str(c.pattern.Mutation), "requestHash": model.Str(i.hash),
		"result": &types.AttributeValueMemberM{Value: encode(value)}, "createdAt": model.Str(model.Timestamp(now)),
		model.AttrExpiresAt: model.Num(int(now.Add(idempotencyTTL).Unix())),
	})), table.AnyOf(table.RecordNotExists, table.CompareAttribute(model.AttrExpiresAt, "<=", model.Num(int(now.Unix())))))
	c.writes = append(c.writes, writes...)
}

// replay returns the stored result of an earlier mutation with the same idempotency key. If there
// is no result, or it has expired, found is false.
//
// Errors: commerce.IdempotencyKeyReused, model.ErrCorrupt, errors from table.WrapError.
func replay[V any](ctx context.Context, c *change, i *idempotency, decode resultDecoder[V]) (first V, found bool, err error) {
	if i == nil {
		return first, false, nil
	}
	record, known := c.known[i.key]
	// Make the next attempt read the idempotency record again, because another server may write the
	// record before that attempt.
	delete(c.known, i.key)
	if !known {
		if record, err = c.readIdempotencyRecord(ctx, i.key); err != nil {
			return first, false, err
		}
	}
	if record == nil {
		return first, false, nil
	}
	r := model.Reader{Record: record}
	if expires := r.RequiredNumber(model.AttrExpiresAt); int64(expires) <= c.table.Now().Unix() {
		return first, false, r.Err()
	}
	if r.RequiredText("requestHash") != i.hash {
		return first, true, commerce.NewIdempotencyKeyReused()
	}
	result, ok := record["result"].(*types.AttributeValueMemberM)
	if !ok {
		r.Fail("result", "is missing or not a map")
		return first, true, r.Err()
	}
	if c.erases() {
		if err := c.addPersonal(ctx, model.EntityOfValue(first), result.Value); err != nil {
			return first, true, err
		}
	}
	if first, err = decode(model.Reader{Record: result.Value}); err != nil {
		return first, true, err
	}
	var order commerce.OrderID
	switch v := any(first).(type) {
	case *commerce.Order:
		order = v.ID
	case *commerce.Return:
		order = v.OrderID
	}
	if order != "" {
		if err := c.checkStillOwned(ctx, order); err != nil {
			var none V
			return none, true, err
		}
	}
	c.table.Stats().CountReplay()
	return first, true, nil
}

// erases reports whether customers can be erased. Older servers could not read results without personal
// data.
func (c *change) erases() bool { return c.Derivations.CheckReadable(model.OrderErased) == nil }

// addPersonal adds personal data to a stored result of the entity e: what the record contains now.
//
// It returns errors from table.WrapError.
func (c *change) addPersonal(ctx context.Context, e *model.Entity, result model.Record) error {
	if !e.HasPersonal() {
		return nil
	}
	records, err := c.read(ctx, c.oldKeyBuilder().KeyOfResult(e, result))
	if err == nil && records[0] != nil {
		model.CopyPersonal(e, result, records[0])
	}
	return err
}

// checkStillOwned returns commerce.NotFound if the caller may no longer access an order, because
// other software has assigned it to another customer since the first execution of the mutation.
func (c *change) checkStillOwned(ctx context.Context, id commerce.OrderID) error {
	scope := c.caller.scope()
	if scope.All() {
		return nil
	}
	var b model.KeyBuilder
	records, err := c.read(ctx, model.OrderByID.Key(&b, id))
	if err != nil {
		return err
	}
	if b.Err != nil || !scope.Includes(commerce.CustomerID(model.TextOf(records[0], model.AttrCustomerID))) {
		return commerce.NewNotFound("order", id)
	}
	return nil
}

// readIdempotencyRecord reads an idempotency record with TransactGetItems. GetItem could miss the
// record while DynamoDB commits the transaction that writes it.
//
// It returns errors from table.WrapError.
func (c *change) readIdempotencyRecord(ctx context.Context, k model.Keys) (model.Record, error) {
	record, err := c.table.TransactGet(ctx, c.pattern, k)
	if err != nil {
		return nil, table.WrapError("TransactGetItems", k.Redacted(), err)
	}
	return record, nil
}

package embedded

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ordergraph/ordergraph/embedded/internal/attr"
	"github.com/ordergraph/ordergraph/embedded/internal/capacity"
	"github.com/ordergraph/ordergraph/embedded/internal/expr"
	"github.com/ordergraph/ordergraph/embedded/internal/file"
	"github.com/ordergraph/ordergraph/embedded/internal/read"
	"github.com/ordergraph/ordergraph/embedded/internal/schema"
	"github.com/ordergraph/ordergraph/embedded/internal/storage"
	"github.com/ordergraph/ordergraph/embedded/internal/throttle"
	"github.com/ordergraph/ordergraph/embedded/internal/wire"
)

// Limits of transactions and batches.
//
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
const (
	maxActions          = 100
	maxTransactionBytes = 4 << 20
	maxBatchWrites      = 25
	maxBatchGets        = 100
	maxBatchBytes       = 16 << 20
	tokenLife           = 10 * time.Minute
)

// transactWriteInput contains the parameters of TransactWriteItems.
type transactWriteInput struct {
	TransactItems               []transactItem
	ClientRequestToken          string
	ReturnConsumedCapacity      string
	ReturnItemCollectionMetrics string
}

// transactItem is one element of TransactWriteItems.
type transactItem struct{ Put, Update, Delete, ConditionCheck *actionInput }

// actions validates the parameters. It returns the actions of the transaction, and the table name
// of each action.
func (in *transactWriteInput) actions() (actions []*action, tables []string, _ error) {
	v := &wire.Violations{}
	if len(in.ClientRequestToken) > 36 {
		v.Add(wire.Quote(in.ClientRequestToken), "clientRequestToken", "Member must have length less than or equal to 36")
	}
	v.CheckListLength(len(in.TransactItems), maxActions, "transactItems", func() string { return formatList(len(in.TransactItems), "TransactWriteItem") })
	v.CheckReturnCapacity(in.ReturnConsumedCapacity)
	v.CheckReturnMetrics(in.ReturnItemCollectionMetrics)
	for i, item := range in.TransactItems {
		for _, m := range item.writes() {
			m.check(v, fmt.Sprintf("transactItems.%d.member.%s.", i+1, m.name))
		}
	}
	if err := v.Err(); err != nil {
		return nil, nil, err
	}
	size := 0
	for _, item := range in.TransactItems {
		members := item.writes()
		switch len(members) {
		case 0:
			return nil, nil, wire.Invalid("Invalid Request: TransactWriteRequest should contain Delete or Put or Update request")
		case 1:
		default:
			return nil, nil, wire.Invalid("TransactItems can only contain one of Check, Put, Update or Delete")
		}
		a, err := members[0].parse(members[0].verb, true)
		if err != nil {
			return nil, nil, err
		}
		actions, tables = append(actions, a), append(tables, *members[0].TableName)
		size += members[0].size()
	}
	if size > maxTransactionBytes {
		return nil, nil, wire.Invalid("Transaction payload size cannot exceed 4MB. Payload Size: %d", size)
	}
	return actions, tables, nil
}

// size returns the size of a parsed write in bytes: the item or key, the expressions, and the names
// and values of their placeholders.
func (m transactWrite) size() int {
	n := m.Key.Size()
	if m.verb == verbPut {
		n = m.Item.Size()
	}
	for _, expression := range []*string{m.UpdateExpression, m.ConditionExpression} {
		if expression != nil {
			n += len(*expression)
		}
	}
	for _, name := range m.ExpressionAttributeNames {
		n += len(name)
	}
	for _, v := range m.ExpressionAttributeValues {
		n += v.Size()
	}
	return n
}

// transactWrite is one write or condition check of a transaction.
type transactWrite struct {
	*actionInput
	verb actionVerb
	name string
}

// writes returns the writes and condition checks in one element of TransactItems. A valid element
// contains exactly one.
func (i *transactItem) writes() []transactWrite {
	all := []transactWrite{{i.ConditionCheck, verbCheck, "conditionCheck"}, {i.Put, verbPut, "put"}, {i.Delete, verbDelete, "delete"}, {i.Update, verbUpdate, "update"}}
	return slices.DeleteFunc(all, func(m transactWrite) bool { return m.actionInput == nil })
}

// check validates the parameters of one write in a transaction. prefix precedes the name of a
// parameter in error messages.
func (m transactWrite) check(v *wire.Violations, prefix string) {
	if m.TableName == nil {
		v.AddMissing(prefix + "tableName")
	} else if !strings.HasPrefix(*m.TableName, "arn:") {
		v.CheckName(*m.TableName, prefix+"tableName", 1)
	}
	if m.verb == verbPut && m.Item == nil {
		v.AddMissing(prefix + "item")
	}
	if m.verb != verbPut && m.Key == nil {
		v.AddMissing(prefix + "key")
	}
	if m.verb == verbUpdate && m.UpdateExpression == nil {
		v.AddMissing(prefix + "updateExpression")
	}
	if m.verb == verbCheck && m.ConditionExpression == nil {
		v.AddMissing(prefix + "conditionExpression")
	}
	v.CheckEnum(m.ReturnValuesOnConditionCheckFailure, prefix+"returnValuesOnConditionCheckFailure", "ALL_OLD", "NONE")
}

// formatList returns a list in the notation of DynamoDB's error messages. For example,
// formatList(2, "Put") returns "[Put(), Put()]".
func formatList(n int, of string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(of+"(), ", n), ", ") + "]"
}

func (s *Store) transactWriteItems(_ context.Context, in *transactWriteInput) ([]byte, error) {
	actions, tables, err := in.actions()
	if err != nil {
		return nil, err
	}
	replayed := false
	err = retryChanged(func() error {
		early := make([]*wire.Failure, len(actions))
		if err := s.prepareTransaction(actions, tables, early); err != nil {
			return err
		}
		digest := in.digest(actions)
		return s.commit(func(c *commitState) (err error) {
			if replayed, err = c.replayed(in.ClientRequestToken, digest); replayed || err != nil {
				return err
			}
			if err := c.transact(actions, early); err != nil {
				return err
			}
			if in.ClientRequestToken == "" {
				return nil
			}
			return c.storeToken(in.ClientRequestToken, digest)
		})
	})
	if err != nil {
		return nil, err
	}
	o := wire.NewObjectWriter()
	u := capacity.New(in.ReturnConsumedCapacity)
	m := newCollectionMetrics(in.ReturnItemCollectionMetrics)
	for _, a := range actions {
		if replayed {
			// If a client repeats a transaction with the same token, DynamoDB does not execute it
			// again. It only reads the items, so the response reports read capacity units.
			u.Add(a.Table, float64(max(1, (a.NewSize+4095)/4096))*2, nil)
		} else {
			u.AddWrite(&a.Change, 2)
			m.add(a)
		}
	}
	u.Kind = "WriteCapacityUnits"
	if replayed {
		u.Kind = "ReadCapacityUnits"
	}
	u.AppendTableList(o)
	m.writeList(o)
	return o.Done(), nil
}

// digest returns a hash of the transaction's parameters. If the request has no ClientRequestToken,
// digest returns nil. Call prepareTransaction first, so that digest can use the encoded items.
func (in *transactWriteInput) digest(actions []*action) []byte {
	if in.ClientRequestToken == "" {
		return nil
	}
	h := sha256.New()
	var b []byte
	for i, item := range in.TransactItems {
		for v, a := range []*actionInput{verbPut: item.Put, verbUpdate: item.Update, verbDelete: item.Delete, verbCheck: item.ConditionCheck} {
			if a == nil {
				continue
			}
			b = append(b[:0], byte(v))
			for _, text := range []*string{a.TableName, a.UpdateExpression, a.ConditionExpression, &a.ReturnValuesOnConditionCheckFailure} {
				if text != nil {
					b = attr.AppendQuote(b, *text)
				}
				b = append(b, ',')
			}
			for _, name := range slices.Sorted(maps.Keys(a.ExpressionAttributeNames)) {
				b = attr.AppendQuote(attr.AppendQuote(b, name), a.ExpressionAttributeNames[name])
			}
			if encoded := actions[i].Encoded; actions[i].verb == verbPut && encoded != nil {
				h.Write(b)
				_, json := storage.SplitItem(encoded)
				h.Write(json)
				b = b[:0]
			} else {
				b = a.Item.AppendJSON(b)
			}
			b = a.ExpressionAttributeValues.AppendJSON(a.Key.AppendJSON(b))
			h.Write(b)
		}
	}
	return h.Sum(nil)
}

// prepareTransaction finds the table of each action and validates the key. Some errors do not make
// the request invalid, but later cancel the transaction. prepareTransaction stores such an error in
// the parameter early, at the action's index.
func (s *Store) prepareTransaction(actions []*action, tables []string, early []*wire.Failure) error {
	seen := map[string]bool{}
	for i, a := range actions {
		t, err := s.table(tables[i])
		if err != nil {
			return err
		}
		if err := a.setTable(t); err != nil {
			f := wire.FailureOf(err)
			if !f.OfItem {
				return err
			}
			early[i] = f
			continue
		}
		id := string(t.BucketName) + "/" + string(a.Key)
		if seen[id] {
			return wire.Invalid("Transaction request cannot include multiple operations on one item")
		}
		seen[id] = true
	}
	return nil
}

// transact executes all actions of a transaction. early contains the failures that
// prepareTransaction has found. If an action fails, transact writes nothing and returns
// TransactionCanceledException.
func (c *commitState) transact(actions []*action, early []*wire.Failure) error {
	reasons := make([]wire.CancellationReason, len(actions))
	cancelled := false
	buckets := make([]*file.Bucket, len(actions))
	for i, a := range actions {
		f := early[i]
		if f == nil {
			b, err := c.tableBucket(a.Table)
			if err != nil {
				return err
			}
			buckets[i] = b
			if err := a.evaluate(storage.ItemBucket(b)); err != nil {
				f = wire.FailureOf(err)
				if f.Code == wire.CodeInternal || f.Code == wire.CodeValidation && !f.OfItem {
					return err
				}
			} else {
				f = c.admit(a, 2)
			}
		}
		reasons[i] = wire.CancellationReason{Code: wire.ReasonNone}
		if f != nil {
			cancelled = true
			reasons[i] = wire.CancellationReason{Code: wire.ReasonValidation, Message: f.Message, Item: f.Item}
			switch f.Code {
			case wire.CodeCondition:
				reasons[i].Code = wire.ReasonCondition
			case wire.CodeThrottling:
				reasons[i].Code = wire.ReasonThrottling
			}
		}
	}
	if cancelled {
		codes := make([]string, len(reasons))
		for i, r := range reasons {
			codes[i] = r.Code
		}
		return &wire.Failure{Code: wire.CodeCancelled, Reasons: reasons, Message: "Transaction cancelled, please refer cancellation reasons for specific reasons [" + strings.Join(codes, ", ") + "]"}
	}
	for i, a := range actions {
		if err := a.write(c, buckets[i]); err != nil {
			return err
		}
	}
	c.notifyObservers(actions...)
	return nil
}

// tokenKey returns the key of a token's main entry in bucketTokens. The value of this entry
// contains the time and the digest of the transaction.
func tokenKey(token string) []byte { return append([]byte("t"), token...) }

// tokenTimeKey returns the key of a token's second entry in bucketTokens. The key contains the time
// and the token, and the value is empty. These keys sort by time, so storeToken finds the oldest
// tokens first.
func tokenTimeKey(at time.Time, token string) []byte {
	return append(binary.BigEndian.AppendUint64([]byte("d"), uint64(at.UnixMilli())), token...)
}

// replayed reports whether a transaction with this token was committed in the last ten minutes. If
// that transaction had different parameters, replayed returns IdempotentParameterMismatchException.
func (c *commitState) replayed(token string, digest []byte) (bool, error) {
	if token == "" {
		return false, nil
	}
	known := c.tx.Bucket(bucketTokens).Get(tokenKey(token))
	if known == nil || c.now().Sub(time.UnixMilli(int64(binary.BigEndian.Uint64(known)))) > tokenLife {
		return false, nil
	}
	if !bytes.Equal(known[8:], digest) {
		return false, &wire.Failure{Code: wire.CodeIdempotencyMismatch, Message: "The same ClientRequestToken was used with different parameters"}
	}
	return true, nil
}

// storeToken stores the token of a transaction, and deletes up to 100 expired tokens.
func (c *commitState) storeToken(token string, digest []byte) error {
	b := c.tx.Bucket(bucketTokens)
	now := c.now()
	c.changed = true
	oldest := b.Cursor()
	limit := tokenTimeKey(now.Add(-tokenLife), "")
	var expired [][]byte
	for k, _ := oldest.Seek([]byte("d")); k != nil && bytes.Compare(k, limit) < 0 && len(expired) < 100; k, _ = oldest.Next() {
		expired = append(expired, bytes.Clone(k))
	}
	for _, k := range expired {
		if err := b.Delete(k); err != nil {
			return err
		}
		// If the token's main entry contains the same time, delete that entry, too. A later time
		// means that the token has been used again.
		if known := b.Get(tokenKey(string(k[9:]))); known != nil && bytes.Equal(known[:8], k[1:9]) {
			if err := b.Delete(tokenKey(string(k[9:]))); err != nil {
				return err
			}
		}
	}
	if err := b.Put(tokenTimeKey(now, token), nil); err != nil {
		return err
	}
	return b.Put(tokenKey(token), append(binary.BigEndian.AppendUint64(nil, uint64(now.UnixMilli())), digest...))
}

// transactGetInput contains the parameters of TransactGetItems.
type transactGetInput struct {
	TransactItems []struct {
		Get *struct {
			TableName                *string
			Key                      attr.Item
			ProjectionExpression     *string
			ExpressionAttributeNames map[string]string
		}
	}
	ReturnConsumedCapacity string
}

func (s *Store) transactGetItems(_ context.Context, in *transactGetInput) ([]byte, error) {
	v := &wire.Violations{}
	v.CheckListLength(len(in.TransactItems), maxActions, "transactItems", func() string { return formatList(len(in.TransactItems), "TransactGetItem") })
	v.CheckReturnCapacity(in.ReturnConsumedCapacity)
	for i, item := range in.TransactItems {
		field := fmt.Sprintf("transactItems.%d.member.get", i+1)
		switch {
		case item.Get == nil:
			v.AddMissing(field)
		case item.Get.TableName == nil:
			v.AddMissing(field + ".tableName")
		case item.Get.Key == nil:
			v.AddMissing(field + ".key")
		case !strings.HasPrefix(*item.Get.TableName, "arn:"):
			v.CheckName(*item.Get.TableName, field+".tableName", 1)
		}
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	gets := make([]*read.Get, len(in.TransactItems))
	seen := map[string]bool{}
	reasons := make([]wire.CancellationReason, len(gets))
	var cancelled []string
	for i, item := range in.TransactItems {
		p := &expr.Placeholders{Names: item.Get.ExpressionAttributeNames}
		g, err := read.NewGet(item.Get.ProjectionExpression, p)
		if err != nil {
			return nil, err
		}
		t, err := s.table(*item.Get.TableName)
		if err != nil {
			return nil, err
		}
		gets[i] = g
		reasons[i] = wire.CancellationReason{Code: wire.ReasonNone}
		if err := g.SetTable(t, item.Get.Key); err != nil {
			if !errors.Is(err, schema.ErrKeySchema) {
				return nil, wire.AsInvalid(err)
			}
			reasons[i] = wire.CancellationReason{Code: wire.ReasonValidation, Message: err.Error()}
			cancelled = append(cancelled, wire.ReasonValidation)
			continue
		}
		if f := s.limiter.Check(throttle.Load{Table: t, Key: g.Key}); f != nil {
			reasons[i] = wire.CancellationReason{Code: wire.ReasonThrottling, Message: f.Message}
		}
		cancelled = append(cancelled, reasons[i].Code)
		id := string(t.BucketName) + "/" + string(g.Key)
		if seen[id] {
			return nil, wire.Invalid("Transaction request cannot include multiple operations on one item")
		}
		seen[id] = true
	}
	if slices.ContainsFunc(cancelled, func(code string) bool { return code != wire.ReasonNone }) {
		return nil, &wire.Failure{Code: wire.CodeCancelled, Reasons: reasons, Message: "Transaction cancelled, please refer cancellation reasons for specific reasons [" + strings.Join(cancelled, ", ") + "]"}
	}
	o := wire.NewObjectWriter()
	u := capacity.New(in.ReturnConsumedCapacity)
	u.Kind = "ReadCapacityUnits"
	err := s.db.ViewDurable(func(tx *file.Tx) error {
		size := 0
		for _, g := range gets {
			if err := g.Read(tx); err != nil {
				return err
			}
			units := 2 * capacity.ReadUnits(g.Size, true)
			u.Add(g.Table, units, nil)
			s.limiter.Charge(throttle.Load{Table: g.Table, Key: g.Key, Units: units})
			size += g.Size
		}
		if size > maxTransactionBytes {
			return wire.Invalid("Total size of the items in the transaction exceeds %d bytes", maxTransactionBytes)
		}
		o.List("Responses", len(gets), func(i int) {
			o.Open()
			if gets[i].JSON != nil {
				o.Raw("Item", gets[i].JSON)
			}
			o.Close()
		})
		return nil
	})
	if err != nil {
		return nil, err
	}
	u.AppendTableList(o)
	return o.Done(), nil
}

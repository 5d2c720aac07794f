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

	"go.etcd.io/bbolt"

	"github.com/ordergraph/ordergraph/internal/embedded/attr"
	"github.com/ordergraph/ordergraph/internal/embedded/expr"
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

// transactWriteInput has the parameters of TransactWriteItems.
type transactWriteInput struct {
	TransactItems               []transactItem
	ClientRequestToken          string
	ReturnConsumedCapacity      string
	ReturnItemCollectionMetrics string
}

// transactItem is one element of TransactWriteItems.
type transactItem struct{ Put, Update, Delete, ConditionCheck *actionInput }

// actions validates the parameters and returns the actions with the names of their tables.
func (in *transactWriteInput) actions() (actions []*action, tables []string, _ error) {
	v := &violations{}
	if len(in.ClientRequestToken) > 36 {
		v.add(quote(in.ClientRequestToken), "clientRequestToken", "Member must have length less than or equal to 36")
	}
	v.list(len(in.TransactItems), maxActions, "transactItems", func() string { return describeList(len(in.TransactItems), "TransactWriteItem") })
	v.capacity(in.ReturnConsumedCapacity)
	v.metrics(in.ReturnItemCollectionMetrics)
	for i, item := range in.TransactItems {
		for _, m := range item.members() {
			v.action(m.actionInput, m.verb, fmt.Sprintf("transactItems.%d.member.%s.", i+1, m.name))
		}
	}
	if err := v.error(); err != nil {
		return nil, nil, err
	}
	for _, item := range in.TransactItems {
		members := item.members()
		switch len(members) {
		case 0:
			return nil, nil, invalid("Invalid Request: TransactWriteRequest should contain Delete or Put or Update request")
		case 1:
		default:
			return nil, nil, invalid("TransactItems can only contain one of Check, Put, Update or Delete")
		}
		a, err := members[0].action(members[0].verb, true)
		if err != nil {
			return nil, nil, err
		}
		actions, tables = append(actions, a), append(tables, *members[0].TableName)
	}
	return actions, tables, nil
}

// member is one write of a transaction.
type member struct {
	*actionInput
	verb verb
	name string
}

// members returns the writes that an element of a transaction has. A valid element has one.
func (i *transactItem) members() []member {
	all := []member{{i.ConditionCheck, check, "conditionCheck"}, {i.Put, put, "put"}, {i.Delete, remove, "delete"}, {i.Update, update, "update"}}
	return slices.DeleteFunc(all, func(m member) bool { return m.actionInput == nil })
}

// action validates the parameters of one write of a transaction. prefix precedes the names of its
// fields.
func (v *violations) action(a *actionInput, what verb, prefix string) {
	if a.TableName == nil {
		v.null(prefix + "tableName")
	} else if !strings.HasPrefix(*a.TableName, "arn:") {
		v.name(*a.TableName, prefix+"tableName", 1)
	}
	if what == put && a.Item == nil {
		v.null(prefix + "item")
	}
	if what != put && a.Key == nil {
		v.null(prefix + "key")
	}
	if what == update && a.UpdateExpression == nil {
		v.null(prefix + "updateExpression")
	}
	if what == check && a.ConditionExpression == nil {
		v.null(prefix + "conditionExpression")
	}
	v.enum(a.ReturnValuesOnConditionCheckFailure, prefix+"returnValuesOnConditionCheckFailure", "ALL_OLD", "NONE")
}

// describeList returns a long list as it stands in messages.
func describeList(n int, of string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(of+"(), ", n), ", ") + "]"
}

func (s *Store) transactWriteItems(_ context.Context, in *transactWriteInput) ([]byte, error) {
	actions, tables, err := in.actions()
	if err != nil {
		return nil, err
	}
	digest := in.digest()
	replayed := false
	err = retryChanged(func() error {
		early := make([]*failure, len(actions))
		if err := s.prepare(actions, tables, early); err != nil {
			return err
		}
		return s.commit(func(c *change) (err error) {
			if replayed, err = c.replayed(in.ClientRequestToken, digest); replayed || err != nil {
				return err
			}
			if err := c.transact(actions, early); err != nil {
				return err
			}
			if in.ClientRequestToken == "" {
				return nil
			}
			return c.remember(in.ClientRequestToken, digest)
		})
	})
	if err != nil {
		return nil, err
	}
	o := newObject()
	u := newUsage(in.ReturnConsumedCapacity)
	m := newMetrics(in.ReturnItemCollectionMetrics)
	for _, a := range actions {
		if replayed {
			// DynamoDB only reads the items of a transaction that is repeated.
			u.add(a.table, float64(max(1, (a.newSize+4095)/4096))*2, nil)
		} else {
			u.addWrite(a, 2)
			m.add(a)
		}
	}
	u.kind = "WriteCapacityUnits"
	if replayed {
		u.kind = "ReadCapacityUnits"
	}
	u.list(o)
	m.list(o)
	return o.done(), nil
}

// digest returns a digest of the actions that does not depend on the order of attributes. It is nil
// without a token.
func (in *transactWriteInput) digest() []byte {
	if in.ClientRequestToken == "" {
		return nil
	}
	var b []byte
	for _, item := range in.TransactItems {
		for v, a := range []*actionInput{put: item.Put, update: item.Update, remove: item.Delete, check: item.ConditionCheck} {
			if a == nil {
				continue
			}
			b = append(b, byte(v))
			for _, text := range []*string{a.TableName, a.UpdateExpression, a.ConditionExpression, &a.ReturnValuesOnConditionCheckFailure} {
				if text != nil {
					b = attr.AppendQuote(b, *text)
				}
				b = append(b, ',')
			}
			for _, name := range slices.Sorted(maps.Keys(a.ExpressionAttributeNames)) {
				b = attr.AppendQuote(attr.AppendQuote(b, name), a.ExpressionAttributeNames[name])
			}
			for _, values := range []attr.Item{a.Item, a.Key, a.ExpressionAttributeValues} {
				b = values.AppendJSON(b)
			}
		}
	}
	sum := sha256.Sum256(b)
	return sum[:]
}

// prepare finds the tables and validates the keys. early gets the faults that cancel the
// transaction.
func (s *Store) prepare(actions []*action, tables []string, early []*failure) error {
	seen := map[string]bool{}
	size := 0
	for i, a := range actions {
		t, err := s.table(tables[i])
		if err != nil {
			return err
		}
		if err := a.on(t); err != nil {
			f := failureOf(err)
			if !f.ofItem {
				return err
			}
			early[i] = f
			continue
		}
		id := string(t.bucket) + "/" + string(a.key)
		if seen[id] {
			return invalid("Transaction request cannot include multiple operations on one item")
		}
		seen[id] = true
		size += a.newSize
	}
	if size > maxTransactionBytes {
		return invalid("Total size of the items in the transaction exceeds %d bytes", maxTransactionBytes)
	}
	return nil
}

// transact executes all actions of a transaction or returns TransactionCanceledException.
func (c *change) transact(actions []*action, early []*failure) error {
	reasons := make([]reason, len(actions))
	cancelled := false
	buckets := make([]*bbolt.Bucket, len(actions))
	size := 0
	for i, a := range actions {
		f := early[i]
		if f == nil {
			b, err := c.buckets(a.table)
			if err != nil {
				return err
			}
			buckets[i] = b
			if err := a.evaluate(b.Bucket(bucketItems)); err != nil {
				f = failureOf(err)
				if f.kind == codeInternal || f.kind == codeValidation && !f.ofItem {
					return err
				}
			}
			size += max(a.oldSize, a.newSize)
		}
		reasons[i] = reason{code: reasonNone}
		if f != nil {
			cancelled = true
			reasons[i] = reason{code: reasonValidation, message: f.message, item: f.item}
			if f.kind == codeCondition {
				reasons[i].code = reasonCondition
			}
		}
	}
	if cancelled {
		codes := make([]string, len(reasons))
		for i, r := range reasons {
			codes[i] = r.code
		}
		return &failure{kind: codeCancelled, reasons: reasons, message: "Transaction cancelled, please refer cancellation reasons for specific reasons [" + strings.Join(codes, ", ") + "]"}
	}
	if size > maxTransactionBytes {
		return invalid("Total size of the items in the transaction exceeds %d bytes", maxTransactionBytes)
	}
	for i, a := range actions {
		if err := a.write(c, buckets[i]); err != nil {
			return err
		}
	}
	c.observe(actions...)
	return nil
}

// The keys of the bucket of tokens: a token leads to its time and digest, a time and token lead to
// nothing.
func tokenKey(token string) []byte { return append([]byte("t"), token...) }

func tokenTimeKey(at time.Time, token string) []byte {
	return append(binary.BigEndian.AppendUint64([]byte("d"), uint64(at.UnixMilli())), token...)
}

// replayed reports whether a transaction with the token has been committed in the last ten minutes.
// It returns IdempotentParameterMismatchException if the transactions differ.
func (c *change) replayed(token string, digest []byte) (bool, error) {
	if token == "" {
		return false, nil
	}
	known := c.tx.Bucket(bucketTokens).Get(tokenKey(token))
	if known == nil || c.now().Sub(time.UnixMilli(int64(binary.BigEndian.Uint64(known)))) > tokenLife {
		return false, nil
	}
	if !bytes.Equal(known[8:], digest) {
		return false, &failure{kind: codeMismatch, message: "The same ClientRequestToken was used with different parameters"}
	}
	return true, nil
}

// remember stores a token, and deletes old tokens.
func (c *change) remember(token string, digest []byte) error {
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
		// The token may have been used again.
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

// transactGetInput has the parameters of TransactGetItems.
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
	v := &violations{}
	v.list(len(in.TransactItems), maxActions, "transactItems", func() string { return describeList(len(in.TransactItems), "TransactGetItem") })
	v.capacity(in.ReturnConsumedCapacity)
	for i, item := range in.TransactItems {
		field := fmt.Sprintf("transactItems.%d.member.get", i+1)
		switch {
		case item.Get == nil:
			v.null(field)
		case item.Get.TableName == nil:
			v.null(field + ".tableName")
		case item.Get.Key == nil:
			v.null(field + ".key")
		case !strings.HasPrefix(*item.Get.TableName, "arn:"):
			v.name(*item.Get.TableName, field+".tableName", 1)
		}
	}
	if err := v.error(); err != nil {
		return nil, err
	}
	gets := make([]*get, len(in.TransactItems))
	seen := map[string]bool{}
	reasons := make([]reason, len(gets))
	var cancelled []string
	for i, item := range in.TransactItems {
		p := &expr.Placeholders{Names: item.Get.ExpressionAttributeNames}
		g, err := newGet(item.Get.ProjectionExpression, p)
		if err != nil {
			return nil, err
		}
		t, err := s.table(*item.Get.TableName)
		if err != nil {
			return nil, err
		}
		gets[i] = g
		reasons[i] = reason{code: reasonNone}
		if err := g.on(t, item.Get.Key); err != nil {
			if !errors.Is(err, errKeySchema) {
				return nil, asInvalid(err)
			}
			reasons[i] = reason{code: reasonValidation, message: err.Error()}
			cancelled = append(cancelled, reasonValidation)
			continue
		}
		cancelled = append(cancelled, reasonNone)
		id := string(t.bucket) + "/" + string(g.key)
		if seen[id] {
			return nil, invalid("Transaction request cannot include multiple operations on one item")
		}
		seen[id] = true
	}
	if strings.Contains(strings.Join(cancelled, ""), reasonValidation) {
		return nil, &failure{kind: codeCancelled, reasons: reasons, message: "Transaction cancelled, please refer cancellation reasons for specific reasons [" + strings.Join(cancelled, ", ") + "]"}
	}
	o := newObject()
	u := newUsage(in.ReturnConsumedCapacity)
	u.kind = "ReadCapacityUnits"
	err := s.db.View(func(tx *bbolt.Tx) error {
		size := 0
		for _, g := range gets {
			if err := g.read(tx); err != nil {
				return err
			}
			u.add(g.table, 2*readUnits(g.size, true), nil)
			size += g.size
		}
		if size > maxTransactionBytes {
			return invalid("Total size of the items in the transaction exceeds %d bytes", maxTransactionBytes)
		}
		o.list("Responses", len(gets), func(i int) {
			o.open()
			if gets[i].json != nil {
				o.raw("Item", gets[i].json)
			}
			o.close()
		})
		return nil
	})
	if err != nil {
		return nil, err
	}
	u.list(o)
	return o.done(), nil
}

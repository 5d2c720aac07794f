package embedded

import (
	"context"

	"github.com/ordergraph/ordergraph/embedded/internal/attr"
	"github.com/ordergraph/ordergraph/embedded/internal/capacity"
	"github.com/ordergraph/ordergraph/embedded/internal/expr"
	"github.com/ordergraph/ordergraph/embedded/internal/file"
	"github.com/ordergraph/ordergraph/embedded/internal/read"
	"github.com/ordergraph/ordergraph/embedded/internal/throttle"
	"github.com/ordergraph/ordergraph/embedded/internal/wire"
)

// view returns the function that begins a read. A strongly consistent read never sees a change that a
// power loss can undo, so that a client can rely on it. An eventually consistent read does not wait
// for the disk.
func (s *Store) view(consistent bool) func(func(*file.Tx) error) error {
	if consistent {
		return s.db.ViewDurable
	}
	return s.db.View
}

func (s *Store) getItem(_ context.Context, in *struct {
	TableName                *string
	Key                      attr.Item
	ConsistentRead           bool
	ProjectionExpression     *string
	ExpressionAttributeNames map[string]string
	ReturnConsumedCapacity   string
	AttributesToGet          any
}) ([]byte, error) {
	v := &wire.Violations{}
	v.CheckTableName(in.TableName)
	if in.Key == nil {
		v.AddMissing("key")
	}
	v.CheckReturnCapacity(in.ReturnConsumedCapacity)
	if err := v.Err(); err != nil {
		return nil, err
	}
	if err := wire.CheckLegacy([]wire.Parameter{{Name: "AttributesToGet", Set: in.AttributesToGet != nil}}, []wire.Parameter{{Name: "ProjectionExpression", Set: in.ProjectionExpression != nil}}); err != nil {
		return nil, err
	}
	g, err := read.NewGet(in.ProjectionExpression, &expr.Placeholders{Names: in.ExpressionAttributeNames})
	if err != nil {
		return nil, err
	}
	t, err := s.table(*in.TableName)
	if err != nil {
		return nil, err
	}
	if err := g.SetTable(t, in.Key); err != nil {
		return nil, wire.AsInvalid(err)
	}
	load := throttle.Load{Table: t, Key: g.Key}
	if f := s.limiter.Check(load); f != nil {
		return nil, f
	}
	o := wire.NewObjectWriter()
	err = s.view(in.ConsistentRead)(func(tx *file.Tx) error {
		if err := g.Read(tx); err != nil {
			return err
		}
		if g.JSON != nil {
			o.Raw("Item", g.JSON)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	load.Units = capacity.ReadUnits(g.Size, in.ConsistentRead)
	s.limiter.Charge(load)
	u := capacity.New(in.ReturnConsumedCapacity)
	u.Add(t, load.Units, nil)
	u.AppendSingleTable(o)
	return o.Done(), nil
}

func (s *Store) query(_ context.Context, in *read.QueryOrScanInput) ([]byte, error) {
	l, err := read.NewQuery(in)
	if err != nil {
		return nil, err
	}
	return s.queryOrScan(l)
}

func (s *Store) scan(_ context.Context, in *read.QueryOrScanInput) ([]byte, error) {
	l, err := read.NewScan(in)
	if err != nil {
		return nil, err
	}
	return s.queryOrScan(l)
}

// queryOrScan executes a Query or Scan request.
func (s *Store) queryOrScan(l *read.QueryOrScan) (response []byte, err error) {
	t, err := s.table(*l.TableName)
	if err != nil {
		return nil, err
	}
	if err := l.SetTable(t); err != nil {
		return nil, err
	}
	err = s.view(l.ConsistentRead)(func(tx *file.Tx) (err error) {
		response, err = l.ReadPage(tx, s.limiter)
		return err
	})
	return response, err
}

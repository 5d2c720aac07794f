package embedded

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/ordergraph/ordergraph/embedded/internal/attr"
	"github.com/ordergraph/ordergraph/embedded/internal/file"
	"github.com/ordergraph/ordergraph/embedded/internal/schema"
	"github.com/ordergraph/ordergraph/embedded/internal/storage"
	"github.com/ordergraph/ordergraph/embedded/internal/stream"
	"github.com/ordergraph/ordergraph/embedded/internal/wire"
)

// table returns the table with the given name or Amazon Resource Name. If the table does not exist,
// it returns ResourceNotFoundException.
func (s *Store) table(name string) (*schema.Table, error) {
	if t := (*s.tables.Load())[schema.TableNameFromARN(name)]; t != nil {
		return t, nil
	}
	return nil, wire.NotFound()
}

// table is like Store.table, but it also sees the changes of this commit.
func (c *commitState) table(name string) (*schema.Table, error) {
	if t := c.tables[schema.TableNameFromARN(name)]; t != nil {
		return t, nil
	}
	return nil, wire.NotFound()
}

// putTable stores the definition of a table. Requests use the new definition after the commit.
func (c *commitState) putTable(t *schema.Table) error {
	encoded, err := json.Marshal(t.Definition)
	if err != nil {
		return err
	}
	return c.replaceTable(t.TableName, t, func(b *file.Bucket) error { return b.Put([]byte(t.TableName), encoded) })
}

// replaceTable replaces the definition of a table with t. If t is nil, it deletes the definition.
// The function write must make the same change in bucketTables.
func (c *commitState) replaceTable(name string, t *schema.Table, write func(*file.Bucket) error) error {
	c.changed = true
	tables := maps.Clone(c.tables)
	if tables[name] = t; t == nil {
		delete(tables, name)
	}
	c.tables = tables
	c.after = append(c.after, func() {
		c.Store.tables.Store(&tables)
		c.updateExpiryTimer()
	})
	return write(c.tx.Bucket(bucketTables))
}

// tableBucket returns the bucket of a table. If t is no longer the table's current definition,
// tableBucket returns errChanged, and the request must start again.
func (c *commitState) tableBucket(t *schema.Table) (*file.Bucket, error) {
	current, err := c.table(t.TableName)
	if err != nil {
		return nil, err
	}
	if current != t {
		return nil, errChanged
	}
	return c.tx.Bucket(t.BucketName), nil
}

// errChanged means that a table's definition has changed since the request began.
var errChanged = &wire.Failure{Code: wire.CodeInternal, Message: "The table was changed during the request"}

// retryChanged calls request, and repeats the call as long as request returns errChanged.
func retryChanged(request func() error) error {
	for {
		if err := request(); !errors.Is(err, errChanged) {
			return err
		}
	}
}

func (s *Store) createTable(_ context.Context, in *schema.CreateTableInput) ([]byte, error) {
	if err := in.Check(); err != nil {
		return nil, err
	}
	d := in.Definition(uuid.NewString(), s.now())
	var t *schema.Table
	err := s.commit(func(c *commitState) (err error) {
		if c.tables[d.TableName] != nil {
			return &wire.Failure{Code: wire.CodeInUse, Message: "Table already exists: " + d.TableName}
		}
		if d.Bucket, err = c.tx.Bucket(bucketTables).NextSequence(); err != nil {
			return err
		}
		t = schema.NewTable(d)
		if err := storage.CreateBuckets(c.tx, t); err != nil {
			return err
		}
		if t.HasStream() {
			if err := stream.Create(c.tx.Bucket(bucketStreams), t, c.now()); err != nil {
				return err
			}
		}
		return c.putTable(t)
	})
	if err != nil {
		return nil, err
	}
	return s.tableDescriptionResponse("TableDescription", t, "ACTIVE")
}

// writeTableDescription adds a table's description to a response.
func (s *Store) writeTableDescription(o *wire.ObjectWriter, member string, t *schema.Table, status string) error {
	return s.db.View(func(tx *file.Tx) error {
		var table schema.Counts
		indexes := map[string]schema.Counts{}
		if b := tx.Bucket(t.BucketName); b != nil {
			table = storage.Counts(b, nil)
			for _, x := range t.Indexes {
				indexes[x.Name] = storage.Counts(b, x)
			}
		}
		t.Describe(o, member, status, table, indexes)
		return nil
	})
}

// tableDescriptionResponse returns a response that contains only a table's description.
func (s *Store) tableDescriptionResponse(member string, t *schema.Table, status string) ([]byte, error) {
	o := wire.NewObjectWriter()
	if err := s.writeTableDescription(o, member, t, status); err != nil {
		return nil, err
	}
	return o.Done(), nil
}

// tableInput contains the only parameter of several operations: the name of a table.
type tableInput struct{ TableName *string }

func (in *tableInput) check() error {
	v := &wire.Violations{}
	v.CheckTableName(in.TableName)
	return v.Err()
}

func (s *Store) describeTable(_ context.Context, in *tableInput) ([]byte, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	t, err := s.table(*in.TableName)
	if err != nil {
		return nil, &wire.Failure{Code: wire.CodeNotFound, Message: "Requested resource not found: Table: " + *in.TableName + " not found"}
	}
	return s.tableDescriptionResponse("Table", t, "ACTIVE")
}

func (s *Store) deleteTable(_ context.Context, in *tableInput) ([]byte, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	var t *schema.Table
	o := wire.NewObjectWriter()
	err := s.commit(func(c *commitState) (err error) {
		if t, err = c.table(*in.TableName); err != nil {
			return &wire.Failure{Code: wire.CodeNotFound, Message: "Requested resource not found: Table: " + *in.TableName + " not found"}
		}
		if t.DeletionProtectionEnabled {
			return wire.Invalid("Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first.")
		}
		if err := s.writeTableDescription(o, "TableDescription", t, "DELETING"); err != nil {
			return err
		}
		if t.HasStream() {
			if err := stream.Disable(c.tx.Bucket(bucketStreams), t); err != nil {
				return err
			}
		}
		if err := c.tx.DeleteBucket(t.BucketName); err != nil {
			return err
		}
		return c.replaceTable(t.TableName, nil, func(b *file.Bucket) error { return b.Delete([]byte(t.TableName)) })
	})
	if err != nil {
		return nil, err
	}
	return o.Done(), nil
}

func (s *Store) listTables(_ context.Context, in *struct {
	ExclusiveStartTableName string
	Limit                   *int
}) ([]byte, error) {
	v := &wire.Violations{}
	limit := 100
	if in.Limit != nil {
		limit = *in.Limit
		v.AtLeast(limit, 1, "limit")
		v.AtMost(limit, 100, "limit")
	}
	if in.ExclusiveStartTableName != "" {
		v.CheckName(in.ExclusiveStartTableName, "exclusiveStartTableName", 3)
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(*s.tables.Load()))
	names = slices.DeleteFunc(names, func(name string) bool { return name <= in.ExclusiveStartTableName })
	o := wire.NewObjectWriter()
	page := names[:min(limit, len(names))]
	o.List("TableNames", len(page), func(i int) { o.Element(attr.AppendQuote(nil, page[i])) })
	if len(page) < len(names) {
		o.Text("LastEvaluatedTableName", page[len(page)-1])
	}
	return o.Done(), nil
}

func (s *Store) describeEndpoints(context.Context, *struct{}) ([]byte, error) {
	o := wire.NewObjectWriter()
	o.List("Endpoints", 1, func(int) {
		o.Open()
		o.Text("Address", "localhost")
		o.Int("CachePeriodInMinutes", 1440)
		o.Close()
	})
	return o.Done(), nil
}

func (s *Store) describeLimits(context.Context, *struct{}) ([]byte, error) {
	o := wire.NewObjectWriter()
	for _, name := range []string{"AccountMaxReadCapacityUnits", "AccountMaxWriteCapacityUnits"} {
		o.Int(name, 80000)
	}
	for _, name := range []string{"TableMaxReadCapacityUnits", "TableMaxWriteCapacityUnits"} {
		o.Int(name, 40000)
	}
	return o.Done(), nil
}

func (s *Store) updateTable(_ context.Context, in *schema.UpdateTableInput) ([]byte, error) {
	if err := in.Check(); err != nil {
		return nil, err
	}
	var t *schema.Table
	err := s.commit(func(c *commitState) error {
		old, err := c.table(*in.TableName)
		if err != nil {
			return &wire.Failure{Code: wire.CodeNotFound, Message: "Requested resource not found: Table: " + *in.TableName + " not found"}
		}
		d := old.Definition
		if err := in.Apply(&d); err != nil {
			return err
		}
		t = schema.NewTable(d)
		// All parameters are valid. After this line, only a file error can occur, and a file error
		// undoes the whole commit.
		if in.StreamSpecification != nil && old.HasStream() {
			if err := stream.Disable(c.tx.Bucket(bucketStreams), old); err != nil {
				return err
			}
		}
		if in.StreamSpecification != nil && t.HasStream() {
			if err := stream.Create(c.tx.Bucket(bucketStreams), t, c.now()); err != nil {
				return err
			}
		}
		b := c.tx.Bucket(t.BucketName)
		for _, x := range old.Indexes {
			if t.Index(x.Name) == nil {
				if err := storage.DropIndex(b, x); err != nil {
					return err
				}
			}
		}
		for _, x := range t.Indexes {
			if old.Index(x.Name) == nil {
				if err := storage.FillIndex(b, x); err != nil {
					return err
				}
			}
		}
		return c.putTable(t)
	})
	if err != nil {
		return nil, err
	}
	return s.tableDescriptionResponse("TableDescription", t, "ACTIVE")
}

package simulation_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// The times by which an entry of the index can lag behind its record.
const (
	usualIndexLag = 2 * time.Second
	maxIndexLag   = 20 * time.Second
)

// index is a copy of the global secondary index that lags behind the table. When a record gets
// other index keys, its old entry disappears and its new entry appears independently.
type index struct {
	w *world

	mu      sync.Mutex
	entries *dynamodb.Client
	// writes contains the changes that the index does not show yet. last is the time of the last
	// change of each entry, and changes counts the changes of each record.
	writes  []indexWrite
	last    map[string]time.Time
	changes map[string]int
}

// indexWrite is the time at which an entry of the index changes. If put is false, the entry
// disappears.
type indexWrite struct {
	due   time.Time
	entry storetest.Item
	put   bool
}

// indexClient returns a client of the table whose index lags behind if the scenario says so.
func (w *world) indexClient() *dynamodb.Client {
	if !w.Lag {
		return w.db
	}
	w.index = &index{w: w, last: map[string]time.Time{}, changes: map[string]int{}}
	w.index.reset()
	return dynamodb.New(w.db.Options(), func(o *dynamodb.Options) { o.HTTPClient = w.index })
}

// reset reads the complete index of the engine.
func (x *index) reset() {
	x.mu.Lock()
	defer x.mu.Unlock()
	w := x.w
	x.entries, x.writes = embedded.New().Client(), nil
	storetest.NewTable(w.T, x.entries, dynamo.Options{Table: w.table})
	pages := dynamodb.NewScanPaginator(w.db, &dynamodb.ScanInput{TableName: &w.table, IndexName: aws.String(model.IndexName)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(w.Context())
		if err != nil {
			w.Fatal(err)
		}
		for _, i := range page.Items {
			x.apply(indexWrite{entry: entryOf(i), put: true})
		}
	}
	w.engine.Observe(w.table, x.observe)
}

// entrySuffix follows the sort key of each entry in the copy, so that two entries of a record can
// exist.
var entrySuffix = regexp.MustCompile(`~[0-9a-f]{16}~`)

// entryOf returns the entry of a record. If the record is not in the index, it returns nil.
func entryOf(i storetest.Item) storetest.Item {
	r := storetest.Record(i)
	if !r.Has(model.AttrIndexPK) || !r.Has(model.AttrIndexSK) {
		return nil
	}
	entry := storetest.Item{}
	for name, v := range i {
		entry[name] = v
	}
	hash := sha256.Sum256([]byte(r.Text(model.AttrIndexPK) + "\x00" + r.Text(model.AttrIndexSK)))
	entry[model.AttrSK] = storetest.Str(fmt.Sprintf("%s~%x~", r.Text(model.AttrSK), hash[:8]))
	return entry
}

// observe draws when the index shows the changes of a transaction.
func (x *index) observe(before, after []map[string]types.AttributeValue) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for n := range before {
		old, current := entryOf(before[n]), entryOf(after[n])
		if old != nil && (current == nil || storetest.KeyText(old) != storetest.KeyText(current)) {
			x.add(old, false)
		}
		if current != nil {
			x.add(current, true)
		}
	}
}

// add adds a change. The changes of one entry remain in their sequence.
func (x *index) add(entry storetest.Item, put bool) {
	key := storetest.KeyText(entry)
	x.changes[key]++
	r := x.w.random("index", key, x.changes[key])
	lag := usualIndexLag
	if r.IntN(50) == 0 {
		lag = maxIndexLag
	}
	due := time.Now().Add(time.Duration(r.Float64() * float64(lag)))
	if due.Before(x.last[key]) {
		due = x.last[key]
	}
	x.last[key] = due
	x.writes = append(x.writes, indexWrite{due, entry, put})
	slices.SortStableFunc(x.writes, func(a, b indexWrite) int { return a.due.Compare(b.due) })
}

func (x *index) apply(write indexWrite) {
	var err error
	if write.put {
		_, err = x.entries.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: &x.w.table, Item: write.entry})
	} else {
		key := storetest.Item{model.AttrPK: write.entry[model.AttrPK], model.AttrSK: write.entry[model.AttrSK]}
		_, err = x.entries.DeleteItem(context.Background(), &dynamodb.DeleteItemInput{TableName: &x.w.table, Key: key})
	}
	if err != nil {
		x.w.found("the index: %v", err)
	}
}

// Do executes a request. Only requests to the index read the copy.
func (x *index) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var in map[string]any
	if err := json.Unmarshal(body, &in); err != nil || in["IndexName"] == nil {
		return x.w.engine.Do(r)
	}
	if start, ok := in["ExclusiveStartKey"]; ok {
		if in["ExclusiveStartKey"], err = withSuffix(start); err != nil {
			return nil, err
		}
		if body, err = json.Marshal(in); err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for len(x.writes) > 0 && !x.writes[0].due.After(time.Now()) {
		x.apply(x.writes[0])
		x.writes = x.writes[1:]
	}
	response, err := x.entries.Options().HTTPClient.Do(r)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(response.Body)
	text = entrySuffix.ReplaceAll(text, nil)
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	return response, err
}

// withSuffix returns the key of an entry in the copy.
func withSuffix(key any) (any, error) {
	text, err := json.Marshal(key)
	if err != nil {
		return nil, err
	}
	var attributes map[string]struct{ S string }
	if err := json.Unmarshal(text, &attributes); err != nil {
		return nil, err
	}
	item := storetest.Item{}
	for name, v := range attributes {
		item[name] = storetest.Str(v.S)
	}
	for name, v := range entryOf(item) {
		attributes[name] = struct{ S string }{v.(*types.AttributeValueMemberS).Value}
	}
	return attributes, nil
}

// checkLag returns the lag of the index for a check. 0 is its default.
func (w *world) checkLag() time.Duration {
	if w.Lag {
		return maxIndexLag
	}
	return 0
}

// newPuller returns a client that pulls the changes of all orders.
func (w *world) newPuller() *subscriber {
	began := storetest.ULIDAt(w.start, 0)
	return &subscriber{name: "puller", field: "changes", began: began, after: began}
}

// pull pulls the changes of all orders until ctx ends.
func (w *world) pull(ctx context.Context, s *subscriber) {
	c := w.newClient(s.name, "")
	more := false
	for ; more || w.sleep(ctx, time.Duration(w.random(s.name, s.connections).Float64()*float64(40*time.Second))); s.connections++ {
		var data struct {
			Changes struct {
				Nodes []struct {
					ID    string
					Order struct{ ID string }
				}
				PageInfo struct {
					EndCursor   string
					HasNextPage bool
				}
			}
		}
		if !w.query(ctx, c, w.random(s.name, "server", s.connections), `query($after: String) { changes(after: $after, first: 10) { nodes { id order { id } } pageInfo { endCursor hasNextPage } } }`, map[string]any{"after": s.after}, &data) {
			more = false
			continue
		}
		for _, n := range data.Changes.Nodes {
			s.updates = append(s.updates, update{n.ID, n.Order.ID})
		}
		more = data.Changes.PageInfo.HasNextPage
		s.after = cmp.Or(data.Changes.PageInfo.EndCursor, s.after)
	}
}

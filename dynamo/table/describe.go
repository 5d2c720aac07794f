package table

import (
	"fmt"
	"strings"

	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/trace"
)

// describeRedacted describes keys for error messages. It hides email addresses and idempotency
// keys.
func describeRedacted(ks []model.Keys) string {
	texts := make([]string, len(ks))
	for i, k := range ks {
		texts[i] = k.Redacted()
	}
	return summarize(texts)
}

// DescribeKeys describes the keys of a batch. It lists the first three keys and the number of the
// remaining keys.
func DescribeKeys(ks []model.Keys) string { return summarize(keyTexts(ks)) }

func keyTexts(ks []model.Keys) []string {
	texts := make([]string, len(ks))
	for i, k := range ks {
		texts[i] = k.Text()
	}
	return texts
}

// describeBatch sets the keys of a request that reads or writes several records, for the explain
// output (extensions.explain).
func describeBatch(r *trace.Request, ks []model.Keys) {
	r.Key = DescribeKeys(ks)
	if len(ks) > 1 {
		r.Keys = keyTexts(ks)
	}
}

// summarize joins the first three texts and appends the number of the remaining texts.
func summarize(texts []string) string {
	const shown = 3
	if more := len(texts) - shown; more > 0 {
		return fmt.Sprintf("%s, and %d more", strings.Join(texts[:shown], ", "), more)
	}
	return strings.Join(texts, ", ")
}

// describeKeyRange describes the keys that a Query reads, for the explain output
// (extensions.explain).
func describeKeyRange(p *model.AccessPattern, partition, prefix string, bounds model.Range) string {
	_, sk := p.KeyAttributes()
	from, exclusive := strings.CutSuffix(bounds.From, model.JustAfter(""))
	relation := " <= "
	if exclusive {
		relation = " < "
	}
	switch {
	case bounds == model.Range{} && prefix == "":
		return partition
	case bounds == model.Range{}:
		return partition + " " + prefix + "*"
	case bounds.To == "":
		return partition + " " + prefix + from + relation + sk
	case bounds.From == "":
		return partition + " " + sk + " < " + prefix + bounds.To
	default:
		return partition + " " + prefix + from + relation + sk + " < " + prefix + bounds.To
	}
}

// DescribeRequest returns the body of the request that an access pattern sends to DynamoDB, as
// JSON. The keys contain the placeholders of the templates. A Query reads up to limit records.
func (t *Table) DescribeRequest(p *model.AccessPattern, limit int) []byte {
	if p.Direction == "" {
		body, _ := getItemBody(t.readOptions(false), model.Keys{PK: string(p.PK), SK: string(p.SK)})
		return body
	}
	keys := model.NewKeyCondition(p, string(p.PK), string(p.SK), model.Range{})
	body, _ := queryBody(t.readOptions(false), queryRequest{pattern: p, keyRange: keys, limit: limit, forward: p.Direction == model.Ascending})
	return body
}

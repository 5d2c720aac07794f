package schema

import (
	"github.com/ordergraph/ordergraph/embedded/internal/wire"
)

// Counts contains the number of items in a table or an index, and their total size in bytes.
type Counts struct{ Items, Bytes int64 }

// Describe adds the description of the table to a response. The parameter member is the name of the
// JSON member. The map indexes contains the counts of each index, by index name.
func (d *Definition) Describe(o *wire.ObjectWriter, member, status string, table Counts, indexes map[string]Counts) {
	o.Nested(member, func() {
		o.Text("TableName", d.TableName)
		o.Text("TableStatus", status)
		o.Text("TableArn", d.ARN())
		o.Text("TableId", d.TableID)
		o.Float("CreationDateTime", float64(d.Created.UnixMilli())/1000)
		o.Value("AttributeDefinitions", d.AttributeDefinitions)
		o.Value("KeySchema", d.KeySchema)
		o.Int("ItemCount", int(table.Items))
		o.Int("TableSizeBytes", int(table.Bytes))
		o.Bool("DeletionProtectionEnabled", d.DeletionProtectionEnabled)
		describeThroughput(o, d.ProvisionedThroughput)
		if d.BillingMode == payPerRequest {
			o.Nested("BillingModeSummary", func() { o.Text("BillingMode", payPerRequest) })
		}
		if d.OnDemandThroughput != nil {
			o.Value("OnDemandThroughput", d.OnDemandThroughput)
		}
		if d.SSESpecification != nil && d.SSESpecification.Enabled {
			o.Nested("SSEDescription", func() {
				o.Text("Status", "ENABLED")
				o.Text("SSEType", "KMS")
				o.Text("KMSMasterKeyArn", "arn:aws:kms:"+Region+":000000000000:alias/aws/dynamodb")
			})
		}
		if d.TableClass != "" {
			o.Nested("TableClassSummary", func() { o.Text("TableClass", d.TableClass) })
		}
		describeIndex := func(x IndexDefinition) {
			o.Text("IndexName", x.IndexName)
			o.Text("IndexArn", d.ARN()+"/index/"+x.IndexName)
			o.Value("KeySchema", x.KeySchema)
			o.Value("Projection", x.Projection)
			o.Int("ItemCount", int(indexes[x.IndexName].Items))
			o.Int("IndexSizeBytes", int(indexes[x.IndexName].Bytes))
		}
		if len(d.GlobalSecondaryIndexes) > 0 {
			o.List("GlobalSecondaryIndexes", len(d.GlobalSecondaryIndexes), func(i int) {
				o.Open()
				describeIndex(d.GlobalSecondaryIndexes[i])
				o.Text("IndexStatus", "ACTIVE")
				describeThroughput(o, d.GlobalSecondaryIndexes[i].ProvisionedThroughput)
				o.Close()
			})
		}
		if len(d.LocalSecondaryIndexes) > 0 {
			o.List("LocalSecondaryIndexes", len(d.LocalSecondaryIndexes), func(i int) {
				o.Open()
				describeIndex(d.LocalSecondaryIndexes[i])
				o.Close()
			})
		}
		if d.StreamSpecification != nil {
			o.Value("StreamSpecification", d.StreamSpecification)
		}
		if d.StreamLabel != "" {
			o.Text("LatestStreamLabel", d.StreamLabel)
			o.Text("LatestStreamArn", d.StreamARN())
		}
	})
}

func describeThroughput(o *wire.ObjectWriter, p *Throughput) {
	if p == nil {
		p = &Throughput{}
	}
	o.Nested("ProvisionedThroughput", func() {
		o.Int("NumberOfDecreasesToday", 0)
		o.Int("ReadCapacityUnits", int(p.ReadCapacityUnits))
		o.Int("WriteCapacityUnits", int(p.WriteCapacityUnits))
	})
}

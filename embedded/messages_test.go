package embedded_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/ordergraph/ordergraph/embedded"
)

// send sends one request over HTTP and returns the response.
func send(t *testing.T, s *embedded.Store, operation, request string) (status int, body string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(request))
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// create creates the tables "hash", with the key pk, "pair", with the keys pk and sk, and "local",
// with the local secondary indexes "a-local" and "b-local".
func create(t *testing.T, s *embedded.Store) {
	t.Helper()
	for _, request := range []string{
		`{"TableName":"hash","BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}],
			"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}]}`,
		`{"TableName":"pair","BillingMode":"PAY_PER_REQUEST",
			"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"N"}],
			"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}]}`,
		composite("local") + local(index("b-local", "pk", "a"), index("a-local", "pk", "a")) + `,"GlobalSecondaryIndexes":[` + index("global", "a") + `]}`,
	} {
		if status, body := send(t, s, "CreateTable", request); status != http.StatusOK {
			t.Fatalf("CreateTable: %s", body)
		}
	}
}

// composite returns the beginning of a CreateTable request, for a table with the key pk and sk and
// a definition of the attribute a.
func composite(name string) string {
	return `{"TableName":"` + name + `","BillingMode":"PAY_PER_REQUEST","KeySchema":` + keySchema("pk", "sk") + `,
		"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"S"},{"AttributeName":"a","AttributeType":"S"}],`
}

// local returns the member LocalSecondaryIndexes of a CreateTable request.
func local(indexes ...string) string {
	return `"LocalSecondaryIndexes":[` + strings.Join(indexes, ",") + `]`
}

// index returns the JSON of an index that projects all attributes.
func index(name string, key ...string) string {
	return `{"IndexName":"` + name + `","KeySchema":` + keySchema(key...) + `,"Projection":{"ProjectionType":"ALL"}}`
}

// keySchema returns the JSON of a key: a partition key, and a sort key if there are two attributes.
func keySchema(key ...string) string {
	elements := make([]string, len(key))
	for i, name := range key {
		elements[i] = `{"AttributeName":"` + name + `","KeyType":"` + []string{"HASH", "RANGE"}[i] + `"}`
	}
	return "[" + strings.Join(elements, ",") + "]"
}

// nested returns the JSON of a string in maps of a depth.
func nested(depth int) string {
	return strings.Repeat(`{"M":{"n":`, depth) + `{"S":"x"}` + strings.Repeat(`}}`, depth)
}

// TestMessages tests the messages of errors that DynamoDB Local words differently from Amazon
// DynamoDB, or finds in another order.
func TestMessages(t *testing.T) {
	t.Parallel()
	s := embedded.New()
	create(t, s)
	const (
		one       = "1 validation error detected: "
		nan       = "The parameter cannot be converted to a numeric value"
		overflow  = "Number overflow. Attempting to store a number with magnitude larger than supported range"
		underflow = "Number underflow. Attempting to store a number with magnitude smaller than supported range"
		deep      = "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond supported limit"
		twice     = "One or more parameter values were invalid: Input collection "
		wrong     = "One or more parameter values were invalid: "
		null      = "One or more parameter values were invalid: Null attribute value types must have the value of true"
		noKey     = "Value null at 'key' failed to satisfy constraint: Member must not be null"
		noName    = "Value '' at 'tableName' failed to satisfy constraint: Member must have length greater than or equal to 1"
		capacity  = "Value 'X' at 'returnConsumedCapacity' failed to satisfy constraint: Member must satisfy enum value set: [INDEXES, TOTAL, NONE]"
		pattern   = "' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+"
		tooLong   = "' failed to satisfy constraint: Member must have length less than or equal to 255"
		operand   = "Incorrect operand type for operator or function; operator or function: begins_with, operand type: N"
	)
	long := strings.Repeat("n", 256)
	put := func(attribute string) string {
		return `{"TableName":"hash","Item":{"pk":{"S":"a"},"v":` + attribute + `}}`
	}
	batch := func(attribute string) string {
		return `{"RequestItems":{"hash":[{"PutRequest":{"Item":{"pk":{"S":"a"},"v":` + attribute + `}}}]}}`
	}
	transaction := func(items string) string { return `{"TransactItems":[` + items + `]}` }
	for _, c := range []struct{ operation, request, want string }{
		// PutItem, UpdateItem and DeleteItem count the errors that they find before the table.
		{"PutItem", put(`{"N":"x"}`), one + nan + ": x"},
		{"PutItem", put(`{"N":""}`), one + nan + ": "},
		{"PutItem", put(`{"N":"1e126"}`), one + overflow},
		{"PutItem", put(`{"N":"1e99999999999"}`), one + overflow},
		{"PutItem", put(`{"N":"-1e-99999999999"}`), one + underflow},
		{"PutItem", put(`{"N":"1e9223372036854775808"}`), one + nan + ": 1e9223372036854775808"},
		{"PutItem", put(`{"N":"0e126"}`), one + overflow},
		{"PutItem", put(`{"N":"0e-131"}`), one + underflow},
		{"PutItem", put(`{"SS":["b","a","b","c"]}`), one + twice + `["a", "b", "b", "c"] contains duplicates.`},
		{"PutItem", put(`{"BS":["/w==","AA==","AA=="]}`), one + twice + `["AA==","/w==","AA=="]of type BS contains duplicates.`},
		{"PutItem", put(`{"NS":["2","1","2.0"]}`), one + twice + `contains duplicates.`},
		{"PutItem", put(nested(32)), one + deep},
		{"PutItem", `{"TableName":"absent","Item":{"pk":{"S":"a"},"":{"S":"x"}}}`, one + "Empty attribute name"},
		{"PutItem", `{"TableName":"hash","Item":{"pk":{"S":"a"}},"ConditionExpression":""}`, one + "Invalid ConditionExpression: The expression can not be empty;"},
		{"DeleteItem", `{"TableName":"hash","Key":{"pk":{"N":"x"}}}`, one + nan + ": x"},
		{"DeleteItem", `{"TableName":"hash","Key":{"pk":{"S":"a"}},"ReturnValues":"ALL_NEW"}`, one + "ReturnValues can only be ALL_OLD or NONE"},
		{"DeleteItem", `{"TableName":"hash","Key":{"pk":{"S":"a"}},"ExpressionAttributeNames":{"#a":"a"}}`, one + "ExpressionAttributeNames can only be specified when using expressions"},
		{"UpdateItem", `{"TableName":"hash","Key":{"pk":{"S":"a"}},"UpdateExpression":"SET a = :a","ExpressionAttributeValues":{":a":{"N":"x"}}}`, one + nan + ": x"},
		{"UpdateItem", `{"TableName":"hash","Key":{"pk":{"S":"a"}},"UpdateExpression":"SET pk = :a","ExpressionAttributeValues":{":a":{"S":"x"}}}`,
			"One or more parameter values were invalid: Cannot update attribute pk. This attribute is part of the key"},
		{"UpdateItem", `{"TableName":"hash","Key":{"pk":{"S":"a"}},"UpdateExpression":"` + strings.Repeat(" ", 4100) + `x"}`,
			one + "Invalid UpdateExpression: Expression size has exceeded the maximum allowed size;"},
		{"UpdateItem", `{"TableName":""}`, "2 validation errors detected: " + noName + "; " + noKey},
		{"UpdateItem", `{"TableName":"","ReturnConsumedCapacity":"X","ReturnValues":"Y"}`, "4 validation errors detected: " + capacity + "; " + noName +
			"; Value 'Y' at 'returnValues' failed to satisfy constraint: Member must satisfy enum value set: [ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]; " + noKey},

		// Reads do not count them.
		{"GetItem", `{"TableName":"hash","Key":{"pk":{"N":""}}}`, nan + ": "},
		{"BatchGetItem", `{"RequestItems":{"hash":{"Keys":[{"pk":{"SS":["b","a","b"]}}]}}}`, twice + `["a", "b", "b"] contains duplicates.`},
		{"Query", `{"TableName":"hash","KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{":p":{"N":"x"}}}`, nan + ": x"},

		// Batches of writes, transactions and Scan have an older wording.
		{"BatchWriteItem", batch(`{"N":""}`), nan},
		{"BatchWriteItem", batch(`{"N":"1e2147483647"}`), underflow},
		{"BatchWriteItem", batch(`{"SS":["b","a","b"]}`), twice + "[b, a, b] contains duplicates."},
		{"BatchWriteItem", batch(`{"BS":["/w==","AA==","AA=="]}`), twice + "[/w==, AA==, AA==]of type BS contains duplicates."},
		{"BatchWriteItem", batch(`{"NS":["2","1","2"]}`), "Input collection contains duplicates"},
		{"BatchWriteItem", `{"RequestItems":{"absent":[{"PutRequest":{"Item":{"pk":` + nested(32) + `}}}]}}`, deep},
		{"Scan", `{"TableName":"hash","FilterExpression":"a = :a","ExpressionAttributeValues":{":a":{"N":"x"}}}`,
			"ExpressionAttributeValues contains invalid value: " + nan + ": x for key :a"},

		{"DeleteItem", `{"TableName":"hash","Key":{"pk":{"S":"a"}},"ConditionExpression":"if_not_exists(a, b) = c"}`,
			one + "Invalid ConditionExpression: The function is not allowed in a condition expression; function: if_not_exists"},
		{"DeleteItem", `{"TableName":"hash","Key":{"pk":{"S":"a"}},"ConditionExpression":"unknown(a) = c"}`, one + "Invalid ConditionExpression: Invalid function name; function: unknown"},
		{"DeleteItem", `{"TableName":"hash","Key":{"pk":{"S":"a"}},"ConditionExpression":"(unknown(a))"}`, one + "Invalid ConditionExpression: Invalid function name; function: unknown"},

		// Batches.
		{"BatchGetItem", `{"RequestItems":{}}`, one + "Value at 'RequestItems' failed to satisfy constraint: Member must have length greater than or equal to 1"},
		{"BatchGetItem", `{"RequestItems":{"a!":{"Keys":[{"pk":{"S":"a"}}]}},"ReturnConsumedCapacity":"X"}`,
			`2 validation errors detected: Value '{"a!":{"Keys":[{"pk":{"S":"a"}}]}}' at 'requestItems' failed to satisfy constraint: Map keys must satisfy constraint: ` +
				"[Member must have length less than or equal to 255, Member must have length greater than or equal to 3, Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+]; " + capacity},
		{"BatchWriteItem", `{"RequestItems":{"a!":[{"PutRequest":{"Item":{"pk":{"S":"a"},"n":{"N":"1"}}}},{"DeleteRequest":{"Key":{"pk":{"S":"b"}}}}]}}`,
			one + `Value '{a!=[WriteRequest(putRequest=PutRequest(item={n={"N":"1"}, pk={"S":"a"}})), WriteRequest(deleteRequest=DeleteRequest(key={pk={"S":"b"}}))]}' at 'requestItems' failed to satisfy constraint: Map keys must satisfy constraint: ` +
				"[Member must have length less than or equal to 255, Member must have length greater than or equal to 3, Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+]"},

		// Transactions report the first error of the first action, before they look for tables.
		{"TransactWriteItems", transaction(`{}`), "Invalid Request: TransactWriteRequest should contain Delete or Put or Update request"},
		{"TransactWriteItems", transaction(`{"Delete":{"TableName":"hash","Key":{"pk":{"S":"a"}}}},{"Put":{"TableName":"a!","Item":{"pk":{"S":"a"}}}}`),
			one + "Value 'a!' at 'transactItems.2.member.put.tableName" + pattern},
		{"TransactGetItems", transaction(`{"Get":{"TableName":"a!","Key":{"pk":{"S":"a"}}}}`), one + "Value 'a!' at 'transactItems.1.member.get.tableName" + pattern},
		{"TransactWriteItems", `{"ClientRequestToken":"` + strings.Repeat("x", 37) + `","ReturnConsumedCapacity":"X","TransactItems":[{}]}`,
			"2 validation errors detected: Value '" + strings.Repeat("x", 37) + "' at 'clientRequestToken' failed to satisfy constraint: Member must have length less than or equal to 36; " + capacity},
		{"TransactWriteItems", transaction(`{"Delete":{"TableName":"absent","Key":{"pk":` + nested(40) + `}}},{"Put":{"TableName":"absent","Item":{"pk":{"S":"a"}},"ConditionExpression":"a = = b"}}`), deep},
		{"TransactWriteItems", transaction(`{"Delete":{"TableName":"absent","Key":{"pk":` + nested(40) + `},"ConditionExpression":"a = = b"}}`),
			`Invalid ConditionExpression: Syntax error; token: "=", near: "= = b"`},
		{"TransactWriteItems", transaction(`{"Put":{"TableName":"hash","Item":{"pk":{"S":"a"},"v":{"S":"` + strings.Repeat("x", 400<<10) + `"}}}}`),
			"Item size has exceeded the maximum allowed size"},

		// Query validates its key condition before it looks for the table.
		{"Query", `{"TableName":"absent","KeyConditionExpression":"pk = :p AND begins_with(sk, :n)","ExpressionAttributeValues":{":p":{"S":"a"},":n":{"N":"1"}}}`,
			"Invalid KeyConditionExpression: " + operand},
		{"Query", `{"TableName":"absent","KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{":p":{"S":"a"}}}`, "Requested resource not found"},

		{"Query", `{"TableName":"hash","KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{":p":{"S":"a"}},"ExclusiveStartKey":{"a":{"S":"a"}}}`,
			"The provided starting key is invalid"},
		{"Scan", `{"TableName":"hash","ExclusiveStartKey":{"a":{"S":"a"}}}`,
			"The provided starting key is invalid: The provided key element does not match the schema"},
		{"Query", `{"TableName":"hash","KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{":p":{"S":"a"}},"Select":"SPECIFIC_ATTRIBUTES"}`,
			one + "Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES"},
		{"Scan", `{"TableName":"hash","Select":"SPECIFIC_ATTRIBUTES"}`,
			"Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES"},

		// Tables.
		{"CreateTable", `{"TableName":"new","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}],
			"LocalSecondaryIndexes":[{"IndexName":"local","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],"Projection":{"ProjectionType":"INCLUDE"}}]}`,
			"One or more parameter values were invalid: ProjectionType is INCLUDE, but NonKeyAttributes is not specified"},
		{"CreateTable", `{"TableName":"new","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],"StreamSpecification":{"StreamEnabled":false,"StreamViewType":"KEYS_ONLY"}}`,
			"One or more parameter values were invalid: Table is being created with a stream disabled, UpdateViewType should not be specified"},
		{"CreateTable", `{"TableName":"new","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],
			"LocalSecondaryIndexes":[{"IndexName":"l","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],"Projection":{"ProjectionType":"ALL"}}],
			"GlobalSecondaryIndexes":[{"IndexName":"g","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],"Projection":{"ProjectionType":"ALL"}}]}`,
			"2 validation errors detected: Value 'g' at 'globalSecondaryIndexes.1.member.indexName' failed to satisfy constraint: Member must have length greater than or equal to 3" +
				"; Value 'l' at 'localSecondaryIndexes.1.member.indexName' failed to satisfy constraint: Member must have length greater than or equal to 3"},

		{"CreateTable", `{"TableName":"new","KeySchema":[{"AttributeName":"` + long + `","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"","AttributeType":"S"}]}`,
			"2 validation errors detected: Value '' at 'attributeDefinitions.1.member.attributeName' failed to satisfy constraint: Member must have length greater than or equal to 1" +
				"; Value '" + long + "' at 'keySchema.1.member.attributeName" + tooLong},
		{"CreateTable", composite("new") + `"GlobalSecondaryIndexes":[{"IndexName":"` + long + `","KeySchema":` + keySchema(long) + `,"Projection":{"ProjectionType":"INCLUDE","NonKeyAttributes":["` + long + `"]}}]}`,
			"3 validation errors detected: Value '" + long + "' at 'globalSecondaryIndexes.1.member.indexName" + tooLong +
				"; Value '" + long + "' at 'globalSecondaryIndexes.1.member.keySchema.1.member.attributeName" + tooLong +
				"; Value '" + long + "' at 'globalSecondaryIndexes.1.member.projection.nonKeyAttributes.1.member" + tooLong},
		{"UpdateTable", `{"TableName":"hash","AttributeDefinitions":[{"AttributeName":"` + long + `","AttributeType":"X"}],"GlobalSecondaryIndexUpdates":[{"Create":{"IndexName":"g","KeySchema":[]}},{"Delete":{"IndexName":"` + long + `"}},{"Update":{}}]}`,
			"7 validation errors detected: Value '" + long + "' at 'attributeDefinitions.1.member.attributeName" + tooLong +
				"; Value 'X' at 'attributeDefinitions.1.member.attributeType' failed to satisfy constraint: Member must satisfy enum value set: [B, N, S]" +
				"; Value 'g' at 'globalSecondaryIndexUpdates.1.member.create.indexName' failed to satisfy constraint: Member must have length greater than or equal to 3" +
				"; Value '[]' at 'globalSecondaryIndexUpdates.1.member.create.keySchema' failed to satisfy constraint: Member must have length greater than or equal to 1" +
				"; Value null at 'globalSecondaryIndexUpdates.1.member.create.projection' failed to satisfy constraint: Member must not be null" +
				"; Value '" + long + "' at 'globalSecondaryIndexUpdates.2.member.delete.indexName" + tooLong +
				"; Value '' at 'globalSecondaryIndexUpdates.3.member.update.indexName' failed to satisfy constraint: Member must have length greater than or equal to 3"},

		// NULL.
		{"PutItem", `{"TableName":"hash","Item":{"pk":{"S":"a"},"a":{"NULL":false}}}`, one + null},
		{"PutItem", `{"TableName":"absent","Item":{"pk":{"S":"a"},"a":{"L":[{"M":{"b":{"NULL":false}}}]}}}`, one + null},
		{"UpdateItem", `{"TableName":"hash","Key":{"pk":{"S":"a"}},"UpdateExpression":"SET a = :a","ExpressionAttributeValues":{":a":{"NULL":false}}}`, one + null},
		{"DeleteItem", `{"TableName":"hash","Key":{"pk":{"NULL":false}}}`, one + null},
		{"GetItem", `{"TableName":"hash","Key":{"pk":{"NULL":false}}}`, null},
		{"BatchWriteItem", batch(`{"NULL":false}`), null},
		{"TransactWriteItems", transaction(`{"Put":{"TableName":"hash","Item":{"pk":{"S":"a"},"a":{"NULL":false}}}}`), null},

		// Local secondary indexes.
		{"CreateTable", `{"TableName":"new","KeySchema":` + keySchema("pk") + `,` + local(index("lsi", "pk", "a")) + `}`,
			wrong + "Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex"},
		{"CreateTable", composite("new") + local(index("lsi", "sk", "a")) + `}`,
			wrong + "Index KeySchema does not have the same leading hash key as table KeySchema for index: lsi. index hash key: sk, table hash key: pk"},
		{"CreateTable", composite("new") + local(index("lsi", "pk")) + `}`, wrong + "Index KeySchema does not have a range key for index: lsi"},
		{"CreateTable", composite("new") + local(index("lsi", "pk", "pk")) + `}`, "Both the Hash Key and the Range Key element in the KeySchema have the same name"},
		{"CreateTable", composite("new") + local(index("lsi", "pk", "c")) + `}`,
			wrong + "Some index key attributes are not defined in AttributeDefinitions. Keys: [pk, c], AttributeDefinitions: [pk, sk, a]"},
		{"CreateTable", composite("new") + local() + `}`, wrong + "List of LocalSecondaryIndexes is empty"},
		{"CreateTable", composite("new") + `"GlobalSecondaryIndexes":[]}`, wrong + "List of GlobalSecondaryIndexes is empty"},
		{"CreateTable", composite("new") + local(index("lsi", "pk", "a"), index("lsi", "pk", "a")) + `}`, wrong + "Duplicate index name: lsi"},
		{"CreateTable", composite("new") + local(index("lsi", "pk", "a")) + `,"GlobalSecondaryIndexes":[` + index("lsi", "a") + `]}`, wrong + "Duplicate index name: lsi"},
		{"CreateTable", composite("new") + local(index("lsi1", "pk", "a"), index("lsi2", "pk", "a"), index("lsi3", "pk", "a"), index("lsi4", "pk", "a"), index("lsi5", "pk", "a"), index("lsi6", "pk", "a")) + `}`,
			wrong + "LocalSecondaryIndex count exceeds the per-table limit of 5"},
		{"PutItem", `{"TableName":"local","Item":{"pk":{"S":"p"},"sk":{"S":"s"},"a":{"N":"1"}}}`,
			wrong + "Type mismatch for Index Key a Expected: S Actual: N IndexName: a-local"},
		{"PutItem", `{"TableName":"local","Item":{"pk":{"S":"p"},"sk":{"S":"s"},"a":{"S":""}}}`,
			"One or more parameter values are not valid. A value specified for a secondary index key is not supported. " +
				"The AttributeValue for a key attribute cannot contain an empty string value. IndexName: a-local, IndexKey: a"},
		{"Query", `{"TableName":"local","IndexName":"global","ConsistentRead":true,"KeyConditionExpression":"a = :a","ExpressionAttributeValues":{":a":{"S":"a"}}}`,
			"Consistent reads are not supported on global secondary indexes"},
		{"UpdateTable", `{"TableName":"hash","AttributeDefinitions":[{"AttributeName":"g","AttributeType":"S"}],"GlobalSecondaryIndexUpdates":[{"Create":{"IndexName":"index","KeySchema":[{"AttributeName":"g","KeyType":"HASH"},{"AttributeName":"pk","KeyType":"RANGE"}],"Projection":{"ProjectionType":"ALL"}}}]}`,
			"One or more parameter values were invalid: Some index key attributes are not defined in AttributeDefinitions. Keys: [g, pk], AttributeDefinitions: [g]"},
		{"UpdateTable", `{"TableName":"local","GlobalSecondaryIndexUpdates":[{"Delete":{"IndexName":"a-local"}}]}`,
			"Cannot delete an index that is not a GlobalSecondaryIndex"},
	} {
		status, body := send(t, s, c.operation, c.request)
		var got struct {
			Message string `json:"message"`
		}
		if err := json.Unmarshal([]byte(body), &got, json.RejectUnknownMembers(false)); err != nil {
			t.Fatal(err)
		}
		if status != http.StatusBadRequest || got.Message != c.want {
			t.Errorf("%s %.200s:\n got %q\nwant %q", c.operation, c.request, got.Message, c.want)
		}
	}
}

package deploy_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/embedded"
)

// template is the CloudFormation template. Intrinsic functions are decoded as their arguments. For
// example, !GetAtt Table.Arn becomes the string "Table.Arn".
type template struct {
	Resources struct {
		Table struct {
			DeletionPolicy, UpdateReplacePolicy string
			Properties                          map[string]any
		}
		TaskRole struct {
			Properties struct {
				Policies []struct{ PolicyDocument any }
			}
		}
		TaskDefinition struct {
			Properties struct {
				ContainerDefinitions []struct{ Environment []any }
			}
		}
		Dashboard struct {
			Properties struct{ DashboardBody string }
		}
	}
}

// The tasks get the clients' addresses from the load balancer. Otherwise, all clients without a token
// would be one caller.
func TestTemplateTrustsLoadBalancer(t *testing.T) {
	want := map[string]any{"Name": "ORDERGRAPH_TRUSTED_PROXIES", "Value": "LoadBalancerCidr"}
	containers := readTemplate(t).Resources.TaskDefinition.Properties.ContainerDefinitions
	if len(containers) != 1 || !slices.ContainsFunc(containers[0].Environment, func(v any) bool { return cmp.Equal(v, any(want)) }) {
		t.Errorf("the environment of the containers %v lacks %v", containers, want)
	}
}

func readTemplate(t *testing.T) template {
	t.Helper()
	var parsed template
	decode(t, "aws/ordergraph.yaml", &parsed)
	return parsed
}

// read returns the content of a file.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// decode parses a YAML file. It ignores the case of field names.
func decode(t *testing.T, name string, into any) {
	t.Helper()
	var document any
	if err := yaml.Unmarshal([]byte(read(t, name)), &document); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	convert(t, name, document, into)
}

// convert encodes a parsed document as JSON, and decodes the JSON into a value of another type.
func convert(t *testing.T, name string, document, into any) {
	t.Helper()
	text, err := json.Marshal(document)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// The CloudFormation template describes the same table as the table that `ordergraph table create`
// creates.
func TestTemplateTable(t *testing.T) {
	resource := readTemplate(t).Resources.Table
	if resource.DeletionPolicy != "Retain" || resource.UpdateReplacePolicy != "Retain" {
		t.Error("CloudFormation would delete the table with its stack")
	}
	db := embedded.New().Client()
	created, err := dynamo.New(db, dynamo.Options{Table: "created"})
	if err != nil {
		t.Fatal(err)
	}
	if err := created.CreateTable(t.Context()); err != nil {
		t.Fatal(err)
	}

	var input dynamodb.CreateTableInput
	convert(t, "table", resource.Properties, &input)
	input.TableName = aws.String("template")
	input.StreamSpecification.StreamEnabled = aws.Bool(true) // a stream is enabled if it has a view type
	if _, err := db.CreateTable(t.Context(), &input); err != nil {
		t.Fatal(err)
	}
	var others struct {
		TimeToLiveSpecification          types.TimeToLiveSpecification
		PointInTimeRecoverySpecification types.PointInTimeRecoverySpecification
		SSESpecification                 struct {
			SSEEnabled bool
			SSEType    string
		}
	}
	convert(t, "table", resource.Properties, &others)
	expiry := &dynamodb.UpdateTimeToLiveInput{TableName: input.TableName, TimeToLiveSpecification: &others.TimeToLiveSpecification}
	if _, err := db.UpdateTimeToLive(t.Context(), expiry); err != nil {
		t.Fatal(err)
	}

	describe := func(table string) (*types.TableDescription, *types.TimeToLiveDescription) {
		t.Helper()
		d, err := db.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &table})
		if err != nil {
			t.Fatal(err)
		}
		ttl, err := db.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &table})
		if err != nil {
			t.Fatal(err)
		}
		return d.Table, ttl.TimeToLiveDescription
	}
	wantTable, wantExpiry := describe("created")
	table, tableExpiry := describe("template")
	individual := []cmp.Option{
		cmpopts.IgnoreFields(types.TableDescription{}, "TableName", "TableArn", "TableId", "CreationDateTime", "LatestStreamArn", "LatestStreamLabel", "DeletionProtectionEnabled", "ItemCount", "TableSizeBytes"),
		cmpopts.IgnoreFields(types.GlobalSecondaryIndexDescription{}, "IndexArn"),
		cmpopts.IgnoreFields(types.BillingModeSummary{}, "LastUpdateToPayPerRequestDateTime"),
		cmpopts.IgnoreUnexported(types.TableDescription{}, types.AttributeDefinition{}, types.BillingModeSummary{}, types.GlobalSecondaryIndexDescription{},
			types.KeySchemaElement{}, types.Projection{}, types.ProvisionedThroughputDescription{}, types.StreamSpecification{}, types.TimeToLiveDescription{}),
	}
	if diff := cmp.Diff(wantTable, table, individual...); diff != "" {
		t.Errorf("the template's table differs from the table that \"table create\" creates:\n%s", diff)
	}
	if diff := cmp.Diff(wantExpiry, tableExpiry, individual...); diff != "" {
		t.Errorf("the expiry differs:\n%s", diff)
	}
	if !aws.ToBool(input.DeletionProtectionEnabled) || !aws.ToBool(others.PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled) ||
		!others.SSESpecification.SSEEnabled || others.SSESpecification.SSEType != "KMS" {
		t.Error("the table lacks deletion protection, point-in-time recovery or encryption with KMS")
	}
}

// The task role has exactly the permissions of the server's IAM policy.
func TestTemplateRole(t *testing.T) {
	policies := readTemplate(t).Resources.TaskRole.Properties.Policies
	if len(policies) != 1 {
		t.Fatalf("the role has %d policies", len(policies))
	}
	text, err := json.Marshal(policies[0].PolicyDocument)
	if err != nil {
		t.Fatal(err)
	}
	const table = "arn:aws:dynamodb:us-east-1:123456789012:table/ordergraph"
	resolved := strings.NewReplacer(`"Table.Arn"`, `"`+table+`"`, "${Table.Arn}", table).Replace(string(text))
	var got, expected any
	if err := json.Unmarshal([]byte(resolved), &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(read(t, "iam-policy.json")), &expected); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(expected, got); diff != "" {
		t.Errorf("the task role differs from iam-policy.json:\n%s", diff)
	}
}

// The body of the CloudWatch dashboard is valid JSON.
func TestTemplateDashboard(t *testing.T) {
	var board struct{ Widgets []any }
	if err := json.Unmarshal([]byte(readTemplate(t).Resources.Dashboard.Properties.DashboardBody), &board); err != nil || len(board.Widgets) == 0 {
		t.Errorf("the dashboard has %d widgets, %v", len(board.Widgets), err)
	}
}

package lambda_test

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// statement is a statement of an IAM policy.
type statement struct {
	Sid, Effect, Resource string
	Action                []string
	Condition             map[string]any
}

// The role of the function has the permissions of deploy/iam-policy.json, except the permissions on
// the stream.
func TestTemplateRole(t *testing.T) {
	read := func(name string, unmarshal func([]byte, any) error, v any) {
		text, err := os.ReadFile("../../deploy/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if err := unmarshal(text, v); err != nil {
			t.Fatal(err)
		}
	}
	var policy struct{ Statement []statement }
	read("iam-policy.json", json.Unmarshal, &policy)
	var template map[string]any
	read("lambda/template.yaml", yaml.Unmarshal, &template)
	encoded, err := json.Marshal(template)
	if err != nil {
		t.Fatal(err)
	}
	var role struct {
		Resources struct {
			Role struct {
				Properties struct {
					Policies []struct {
						PolicyDocument struct{ Statement []statement }
					}
				}
			}
		}
	}
	if err := json.Unmarshal(encoded, &role); err != nil {
		t.Fatal(err)
	}
	var want []statement
	for _, s := range policy.Statement {
		if s.Sid != "ReadStream" {
			s.Resource = strings.NewReplacer("arn:aws:", "arn:${AWS::Partition}:", "us-east-1:123456789012", "${AWS::Region}:${AWS::AccountId}", "table/ordergraph", "table/${TableName}").Replace(s.Resource)
			want = append(want, s)
		}
	}
	if got := role.Resources.Role.Properties.Policies[0].PolicyDocument.Statement; !reflect.DeepEqual(got, want) {
		t.Errorf("the role allows\n%+v\nwant\n%+v", got, want)
	}
}

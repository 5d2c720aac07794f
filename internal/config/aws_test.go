package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/internal/config"
)

// awsEnvironment gives this process the AWS settings that are named, NAME=value, and none that the machine has.
func awsEnvironment(t *testing.T, settings ...string) {
	t.Helper()
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	for _, s := range append([]string{
		"AWS_REGION=", "AWS_DEFAULT_REGION=", "AWS_PROFILE=", "AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY=", "AWS_SESSION_TOKEN=",
		"AWS_ENDPOINT_URL=", "AWS_ENDPOINT_URL_DYNAMODB=", "AWS_WEB_IDENTITY_TOKEN_FILE=", "AWS_ROLE_ARN=",
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI=", "AWS_CONTAINER_CREDENTIALS_FULL_URI=",
		"AWS_EC2_METADATA_DISABLED=true", "AWS_CONFIG_FILE=" + nowhere, "AWS_SHARED_CREDENTIALS_FILE=" + nowhere,
	}, settings...) {
		name, value, _ := strings.Cut(s, "=")
		t.Setenv(name, value)
	}
}

func TestOpenDynamoDB(t *testing.T) {
	awsEnvironment(t, "AWS_REGION=eu-west-1", "AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b", "AWS_ENDPOINT_URL_DYNAMODB=http://localhost:8000")
	db, err := config.OpenDynamoDB(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if o := db.Options(); o.Region != "eu-west-1" || o.BaseEndpoint == nil || *o.BaseEndpoint != "http://localhost:8000" {
		t.Errorf("region %q, endpoint %v", o.Region, o.BaseEndpoint)
	}
}

// The shared configuration counts as everywhere in AWS software.
func TestOpenDynamoDBByProfile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte("[profile shop]\nregion = eu-north-1\naws_access_key_id = a\naws_secret_access_key = b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	awsEnvironment(t, "AWS_PROFILE=shop", "AWS_CONFIG_FILE="+file)
	db, err := config.OpenDynamoDB(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if o := db.Options(); o.Region != "eu-north-1" {
		t.Errorf("region %q, want the profile's", o.Region)
	}
}

func TestOpenDynamoDBWithoutItsSettings(t *testing.T) {
	for _, c := range []struct {
		name     string
		settings []string
		kind     error
		says     []string
	}{
		{"no region", []string{"AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b"}, nil, []string{"no AWS region", "AWS_REGION"}},
		{"no credentials", []string{"AWS_REGION=eu-west-1"}, dynamo.ErrAccessDenied, []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}},
		{"unknown profile", []string{"AWS_REGION=eu-west-1", "AWS_PROFILE=nobodys"}, nil, []string{"AWS configuration", "nobodys"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			awsEnvironment(t, c.settings...)
			db, err := config.OpenDynamoDB(t.Context())
			if err == nil || db != nil {
				t.Fatalf("%v, %v, want an error alone", db, err)
			}
			if c.kind != nil && !errors.Is(err, c.kind) {
				t.Errorf("error %v is not %v", err, c.kind)
			}
			for _, part := range c.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not say %q", err, part)
				}
			}
		})
	}
}

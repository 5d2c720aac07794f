package config_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/config"
)

// Clients with the usual settings use the fast path. Requests of the SDK have an invocation ID,
// which distinguishes them. If a setting requires the SDK fallback, the store reports the reason.
func TestOpenedClientsUseTheFastPath(t *testing.T) {
	for name, c := range map[string]struct {
		settings []string
		// reason is part of the reason for the SDK fallback, or empty for the fast path.
		reason string
	}{
		"nothing but an endpoint":    {},
		"more attempts":              {settings: []string{"AWS_MAX_ATTEMPTS=7"}},
		"one attempt":                {settings: []string{"AWS_MAX_ATTEMPTS=1"}},
		"the usual retries":          {settings: []string{"AWS_RETRY_MODE=standard"}},
		"the newer retries":          {settings: []string{"AWS_NEW_RETRIES_2026=true"}},
		"an application":             {settings: []string{"AWS_SDK_UA_APP_ID=shop"}},
		"defaults of a region":       {settings: []string{"AWS_DEFAULTS_MODE=in-region"}},
		"the account in endpoints":   {settings: []string{"AWS_ACCOUNT_ID_ENDPOINT_MODE=disabled"}},
		"a token":                    {settings: []string{"AWS_SESSION_TOKEN=TOKEN"}},
		"retries at a rate":          {settings: []string{"AWS_RETRY_MODE=adaptive"}, reason: "AWS_RETRY_MODE"},
		"attempts at a rate":         {settings: []string{"AWS_RETRY_MODE=adaptive", "AWS_MAX_ATTEMPTS=7"}, reason: "AWS_RETRY_MODE"},
		"endpoints to be discovered": {settings: []string{"AWS_ENABLE_ENDPOINT_DISCOVERY=true"}, reason: "AWS_ENABLE_ENDPOINT_DISCOVERY"},
		"ways to sign":               {settings: []string{"AWS_AUTH_SCHEME_PREFERENCE=sigv4a"}, reason: "AWS_AUTH_SCHEME_PREFERENCE"},
		"a trace of Lambda's":        {settings: []string{"AWS_LAMBDA_FUNCTION_NAME=shop", "_X_AMZN_TRACE_ID=Root=1"}},
	} {
		t.Run(name, func(t *testing.T) {
			var bySDK, requests atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if _, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), "."); operation != "BatchGetItem" {
					_, _ = io.WriteString(w, `{}`) // the request for endpoint discovery
					return
				}
				requests.Add(1)
				if r.Header.Get("Amz-Sdk-Invocation-Id") != "" {
					bySDK.Add(1)
				}
				if slices.Contains(c.settings, "AWS_SESSION_TOKEN=TOKEN") && r.Header.Get("X-Amz-Security-Token") != "TOKEN" {
					t.Error("the request lacks the token")
				}
				_, _ = io.WriteString(w, `{"Responses":{"shop":[]},"UnprocessedKeys":{}}`)
			}))
			defer server.Close()
			nowhere := filepath.Join(t.TempDir(), "nowhere")
			for _, setting := range append([]string{
				"AWS_REGION=eu-central-1", "AWS_ACCESS_KEY_ID=AKID", "AWS_SECRET_ACCESS_KEY=SECRET", "AWS_EC2_METADATA_DISABLED=true",
				"AWS_CONFIG_FILE=" + nowhere, "AWS_SHARED_CREDENTIALS_FILE=" + nowhere, "AWS_ENDPOINT_URL_DYNAMODB=" + server.URL,
			}, c.settings...) {
				name, value, _ := strings.Cut(setting, "=")
				t.Setenv(name, value)
			}
			db, _, err := config.OpenDynamoDB(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			store, err := dynamo.New(db, dynamo.Options{Table: "shop"})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := dynamo.ReadRecords(context.Background(), store, model.CustomerByID, []commerce.CustomerID{"a", "b"}); err != nil {
				t.Fatal(err)
			}
			if fallback := bySDK.Load() > 0; requests.Load() != 1 || fallback != (c.reason != "") {
				t.Errorf("%d requests, %d of them by the SDK", requests.Load(), bySDK.Load())
			}
			if reason := store.FastPathDisabledBy(); (reason == "") != (c.reason == "") || !strings.Contains(reason, c.reason) {
				t.Errorf("the reason is %q", reason)
			}
		})
	}
}

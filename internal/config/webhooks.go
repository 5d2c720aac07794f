package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/internal/provider"
	"github.com/ordergraph/ordergraph/internal/setting"
)

// WebhookSetting returns the name of the setting with the secrets of a provider's webhook.
func WebhookSetting(p provider.Provider) string {
	return "ORDERGRAPH_WEBHOOK_SECRETS_" + strings.ToUpper(p.Name())
}

// webhookSettings returns a setting for each provider, with the secrets of its webhook.
func (c *Config) webhookSettings() (all []setting.Setting) {
	for _, p := range provider.All() {
		parse := func(text string) error {
			w, err := provider.NewWebhook(p, text)
			if err != nil {
				return err
			}
			if c.Webhooks == nil {
				c.Webhooks = map[string]*provider.Webhook{}
			}
			c.Webhooks[p.Name()] = w
			return nil
		}
		all = append(all, setting.Setting{Name: WebhookSetting(p), Value: setting.ParsedSecret(parse),
			Meaning: fmt.Sprintf("secrets of the [webhook](webhooks.md#secrets) `%s%s`, each of at least %d characters, separated by commas or line breaks; without secrets, the webhook is off", provider.PathPrefix, p.Name(), provider.MinSecretLength)})
	}
	return all
}

// WebhookKeySetting is the name of the setting with the keys that encrypt the secrets of webhooks.
const WebhookKeySetting = "ORDERGRAPH_WEBHOOK_KEY"

// outgoingWebhookSettings returns the settings of webhooks to which events are sent.
func (c *Config) outgoingWebhookSettings() []setting.Setting {
	parseKeys := func(text string) (err error) {
		if setting.CanBeGuessed(text) {
			return errors.New("can be guessed, because it has too few different characters: set it to the output of `openssl rand -base64 32`")
		}
		c.Table.WebhookKeys, err = change.NewWebhookKeys(text)
		return err
	}
	return []setting.Setting{
		{Name: WebhookKeySetting, Value: setting.ParsedSecret(parseKeys), Meaning: "keys that encrypt the secrets of [webhooks](webhooks.md#outgoing-webhooks), one in each line; the first encrypts, and all decrypt; must be the same on all servers"},
		{Name: "ORDERGRAPH_WEBHOOK_ALLOWED_HOSTS", Value: setting.List(&c.WebhookAllowedHosts, "host names or IPv4 addresses like erp.internal or erp.internal:8443", isHostName), Meaning: "hosts, such as `erp.internal:8443`, to which [webhooks](webhooks.md#outgoing-requests) can send events although their addresses are private; without a port, all ports are allowed"},
	}
}

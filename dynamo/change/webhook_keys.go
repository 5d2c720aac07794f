package change

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	"github.com/ordergraph/ordergraph/commerce"
)

// Errors of WebhookKeys.
var (
	// ErrNoWebhookKey means that there is no key that encrypts the secrets of webhooks.
	ErrNoWebhookKey = errors.New("the secrets of webhooks cannot be encrypted: set ORDERGRAPH_WEBHOOK_KEY to the output of `openssl rand -base64 32`")
	// ErrWrongWebhookKey means that a secret cannot be decrypted.
	ErrWrongWebhookKey = errors.New("the secret of a webhook was encrypted with another key: add this key to ORDERGRAPH_WEBHOOK_KEY, or rotate the secret with rotateWebhookSecret")
)

// webhookKeyBytes is the length of a key. It selects AES-256.
const webhookKeyBytes = 32

// WebhookKeys encrypts the secrets of webhooks with AES-256-GCM. The ID of the webhook is
// authenticated, too, so a secret cannot be moved to another webhook. WebhookKeys is safe for
// concurrent use.
type WebhookKeys struct{ ciphers atomic.Pointer[[]cipher.AEAD] }

// NewWebhookKeys returns the keys in a text: base64, separated by white space. The first key
// encrypts, and all keys decrypt.
//
// NewWebhookKeys returns an error if there is no key, or if one of them is malformed. The error
// does not contain a key.
func NewWebhookKeys(text string) (*WebhookKeys, error) {
	k := &WebhookKeys{}
	return k, k.Change(text)
}

// Change replaces the keys. It returns the errors of NewWebhookKeys. After an error, the previous
// keys remain in use.
func (k *WebhookKeys) Change(text string) error {
	var all []cipher.AEAD
	for i, line := range strings.Fields(text) {
		key, err := base64.StdEncoding.DecodeString(line)
		if err != nil || len(key) != webhookKeyBytes {
			return fmt.Errorf("contains a key (number %d) that is not %d bytes in base64: set it to the output of `openssl rand -base64 %[2]d`", i+1, webhookKeyBytes)
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return err
		}
		gcm, err := cipher.NewGCM(block)
		if err != nil {
			return err
		}
		all = append(all, gcm)
	}
	if len(all) == 0 {
		return errors.New("contains no key")
	}
	k.ciphers.Store(&all)
	return nil
}

// seal encrypts the secret of a webhook. entropy is the source of random bytes.
//
// Errors: ErrNoWebhookKey, and errors from entropy.
func (k *WebhookKeys) seal(entropy io.Reader, secret string, id commerce.WebhookID) (string, error) {
	if k == nil {
		return "", ErrNoWebhookKey
	}
	gcm := (*k.ciphers.Load())[0]
	nonce := make([]byte, gcm.NonceSize())
	if _, err := io.ReadFull(entropy, nonce); err != nil {
		return "", fmt.Errorf("encrypt the secret of a webhook: %w", err)
	}
	return base64.StdEncoding.EncodeToString(gcm.Seal(nonce, nonce, []byte(secret), []byte(id))), nil
}

// open decrypts the secret of a webhook.
//
// Errors: ErrNoWebhookKey, ErrWrongWebhookKey.
func (k *WebhookKeys) open(sealed string, id commerce.WebhookID) (string, error) {
	if k == nil {
		return "", ErrNoWebhookKey
	}
	data, err := base64.StdEncoding.DecodeString(sealed)
	for _, gcm := range *k.ciphers.Load() {
		if n := gcm.NonceSize(); err == nil && len(data) > n {
			if secret, err := gcm.Open(nil, data[:n], data[n:], []byte(id)); err == nil {
				return string(secret), nil
			}
		}
	}
	return "", ErrWrongWebhookKey
}

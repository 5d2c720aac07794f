package provider_test

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stripe/stripe-go/v85/webhook"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/internal/provider"
)

var now = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// secretOf returns a secret in the form that all providers accept.
func secretOf(text string) string {
	return "whsec_" + base64.StdEncoding.EncodeToString([]byte(text+" of at least 24 bytes"))
}

// signStripe returns the headers of a request that Stripe has signed.
func signStripe(secret string, at time.Time, body string) http.Header {
	signature := hex.EncodeToString(webhook.ComputeSignature(at, []byte(body), secret))
	return http.Header{"Stripe-Signature": {fmt.Sprintf("t=%d,v1=%s", at.Unix(), signature)}}
}

// signStandard returns the headers of a request that is signed as in Standard Webhooks.
func signStandard(secret string, at time.Time, body string) http.Header {
	w, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		panic(err)
	}
	signature, err := w.Sign("msg_1", at, []byte(body))
	if err != nil {
		panic(err)
	}
	return http.Header{"Webhook-Id": {"msg_1"}, "Webhook-Timestamp": {fmt.Sprint(at.Unix())}, "Webhook-Signature": {signature}}
}

// signers contains the function that signs requests of each provider, by name.
var signers = map[string]func(secret string, at time.Time, body string) http.Header{"stripe": signStripe, "payments": signStandard}

// signatureHeader contains the names of the headers with the time and with the signature of a
// request.
var signatureHeader = map[string][2]string{"stripe": {"Stripe-Signature", "Stripe-Signature"}, "payments": {"Webhook-Timestamp", "Webhook-Signature"}}

// with returns the headers in which a part of one header is replaced.
func with(h http.Header, name, old, replacement string) http.Header {
	changed := h.Clone()
	changed.Set(name, strings.ReplaceAll(h.Get(name), old, replacement))
	return changed
}

// Requests that no secret has signed in the last minutes are refused. Several secrets are valid at
// the same time.
func TestForgedSignatures(t *testing.T) {
	const body = `{"type":"ping","object":"event"}`
	current, next := secretOf("current"), secretOf("next")
	for _, p := range provider.All() {
		sign, names := signers[p.Name()], signatureHeader[p.Name()]
		at := func(t time.Time) string { return fmt.Sprint(t.Unix()) }
		w, err := provider.NewWebhook(p, current+",\n"+next)
		if err != nil {
			t.Fatal(err)
		}
		good, old := sign(current, now, body), now.Add(-provider.Tolerance-time.Second)
		signature := good.Get(names[1])[strings.LastIndexAny(good.Get(names[1]), ",=")+1:]
		if p.Name() == "payments" {
			_, signature, _ = strings.Cut(good.Get(names[1]), ",")
		}
		for name, c := range map[string]struct {
			header http.Header
			body   string
			valid  bool
		}{
			"signed":                                  {good, body, true},
			"signed with the second secret":           {sign(next, now, body), body, true},
			"signed 5 minutes ago":                    {sign(current, now.Add(-provider.Tolerance), body), body, true},
			"one of two signatures is valid":          {with(good, names[1], "v1", map[string]string{"stripe": "v1=00,v1", "payments": "v1,AAAA v1"}[p.Name()]), body, true},
			"no header":                               {http.Header{}, body, false},
			"another secret":                          {sign(secretOf("another"), now, body), body, false},
			"the secret of another provider's format": {sign(base64.StdEncoding.EncodeToString([]byte(current)), now, body), body, false},
			"an empty body":                           {good, "", false},
			"a changed body":                          {good, strings.Replace(body, "ping", "pong", 1), false},
			"white space added to the body":           {good, body + " ", false},
			"a changed time":                          {with(good, names[0], at(now), at(now.Add(time.Second))), body, false},
			"a replay after 5 minutes":                {sign(current, old, body), body, false},
			"a replay with a new time":                {with(sign(current, old, body), names[0], at(old), at(now)), body, false},
			"signed in the future":                    {sign(current, now.Add(provider.Tolerance+time.Second), body), body, false},
			"no time":                                 {with(good, names[0], at(now), ""), body, false},
			"a time that is no number":                {with(good, names[0], at(now), "now"), body, false},
			"a time beyond 64 bits":                   {with(good, names[0], at(now), "99999999999999999999"), body, false},
			"no signature":                            {with(good, names[1], signature, ""), body, false},
			"a part of the signature":                 {with(good, names[1], signature, signature[:len(signature)-4]), body, false},
			"an older version":                        {with(good, names[1], "v1", "v0"), body, false},
			"no version":                              {with(good, names[1], "v1", ""), body, false},
		} {
			if _, err := w.Receive([]byte(c.body), c.header, now); (err == nil) != c.valid || err != nil && !errors.Is(err, provider.ErrSignature) {
				t.Errorf("%s: %s: %v", p.Name(), name, err)
			}
		}
	}

	// Stripe's library verifies the last of several times, so another one cannot hide that a
	// signature is old.
	w, err := provider.NewWebhook(provider.All()[0], current)
	if err != nil {
		t.Fatal(err)
	}
	for header, at := range map[string]time.Time{"t=%[1]d,%[2]s": now.Add(-time.Hour), "%[2]s,t=%[1]d": now.Add(-time.Hour), "t=1,%[2]s": now} {
		h := http.Header{"Stripe-Signature": {fmt.Sprintf(header, now.Unix(), signStripe(current, at, body).Get("Stripe-Signature"))}}
		if _, err := w.Receive([]byte(body), h, now); !errors.Is(err, provider.ErrSignature) {
			t.Errorf("%s: %v", h, err)
		}
	}
}

// Unusable secrets are refused without being repeated in the error.
func TestUnusableSecrets(t *testing.T) {
	good := secretOf("good")
	for _, p := range provider.All() {
		w, err := provider.NewWebhook(p, good)
		if err != nil {
			t.Fatal(err)
		}
		for _, secrets := range []string{"", " ,\n", "MARKER", good + ",MARKER", strings.Repeat("\x00", 32), "whsec_" + strings.Repeat("x", 32), good + "\n" + strings.Repeat("A", 32)} {
			if err := w.ChangeSecrets(secrets); err == nil || strings.Contains(err.Error(), "MARKER") {
				t.Errorf("%s: %q: %v", p.Name(), secrets, err)
			}
		}
		if _, err := w.Receive([]byte(`{"type":"ping"}`), signers[p.Name()](good, now, `{"type":"ping"}`), now); err != nil {
			t.Errorf("%s: the previous secret is not in use: %v", p.Name(), err)
		}
	}
	if _, err := provider.NewWebhook(provider.All()[1], "whsec_!MARKER!is!no!base64!at!all"); err == nil || strings.Contains(err.Error(), "MARKER") {
		t.Error(err)
	}
}

func money(amount string, currency commerce.Currency) commerce.Money {
	m, err := commerce.ParseMoney(amount, currency)
	if err != nil {
		panic(err)
	}
	return m
}

// receive returns the payments in a signed event.
func receive(t testing.TB, name, body string) ([]commerce.PaymentEvent, error) {
	t.Helper()
	for _, p := range provider.All() {
		if p.Name() == name {
			w, err := provider.NewWebhook(p, secretOf("current"))
			if err != nil {
				t.Fatal(err)
			}
			return w.Receive([]byte(body), signers[name](secretOf("current"), now, body), now)
		}
	}
	t.Fatalf("no provider %s", name)
	return nil, nil
}

// The events of Stripe become payments, each amount once. Other events are ignored.
func TestStripeEvents(t *testing.T) {
	const order = `"metadata":{"order_id":"01KJM6JM000000000000000001"}`
	of := commerce.PaymentReferences{Authorization: "pi_1/authorization", Capture: "pi_1", Void: "pi_1/void"}
	captured := commerce.PaymentReferences{Capture: "pi_1"}
	for _, c := range []struct {
		name, kind, object, want string
		of                       commerce.PaymentReferences
	}{
		{"authorized", "payment_intent.amount_capturable_updated", `"id":"pi_1","amount":2999,"amount_capturable":2999,"currency":"usd",` + order, "authorization 29.99 USD pi_1/authorization 01KJM6JM000000000000000001", commerce.PaymentReferences{}},
		{"captured after an authorization: nothing is left to capture", "payment_intent.amount_capturable_updated", `"id":"pi_1","amount":2999,"amount_capturable":0,"currency":"usd"`, "", commerce.PaymentReferences{}},
		{"captured, in a part", "payment_intent.succeeded", `"id":"pi_1","amount":2999,"amount_received":1999,"currency":"usd",` + order, "capture 19.99 USD pi_1 01KJM6JM000000000000000001", commerce.PaymentReferences{}},
		{"canceled after an authorization", "payment_intent.canceled", `"id":"pi_1","amount":2999,"currency":"usd","latest_charge":"ch_1","last_payment_error":null,` + order, "void 29.99 USD pi_1/void 01KJM6JM000000000000000001", commerce.PaymentReferences{}},
		{"canceled before an attempt", "payment_intent.canceled", `"id":"pi_1","amount":2999,"currency":"usd","latest_charge":null`, "", commerce.PaymentReferences{}},
		{"canceled after a failure", "payment_intent.canceled", `"id":"pi_1","amount":2999,"currency":"usd","latest_charge":"ch_1","last_payment_error":{"code":"card_declined"}`, "", commerce.PaymentReferences{}},
		{"refunded", "refund.created", `"id":"re_1","amount":500,"currency":"usd","payment_intent":"pi_1","status":"succeeded","metadata":null`, "refund 5.00 USD re_1 ", of},
		{"refunded by a charge without a PaymentIntent", "refund.created", `"id":"re_1","amount":500,"currency":"usd","payment_intent":null,` + order, "refund 5.00 USD re_1 01KJM6JM000000000000000001", commerce.PaymentReferences{}},
		{"refund succeeded later", "refund.updated", `"id":"re_1","amount":500,"currency":"usd","payment_intent":"pi_1","status":"succeeded"`, "", commerce.PaymentReferences{}},
		{"refund failed", "refund.failed", `"id":"re_1","amount":500,"currency":"usd","payment_intent":"pi_1","status":"failed"`, "capture 5.00 USD re_1/failed ", of},
		{"refund failed, reported again", "refund.updated", `"id":"re_1","amount":500,"currency":"usd","payment_intent":"pi_1","status":"failed"`, "capture 5.00 USD re_1/failed ", of},
		{"dispute", "charge.dispute.funds_withdrawn", `"id":"du_1","amount":2999,"currency":"usd","payment_intent":"pi_1","metadata":{}`, "chargeback 29.99 USD du_1 ", captured},
		{"dispute won", "charge.dispute.funds_reinstated", `"id":"du_1","amount":2999,"currency":"usd","payment_intent":"pi_1"`, "capture 29.99 USD du_1/reinstated ", captured},
		{"the charge of a PaymentIntent", "charge.succeeded", `"id":"ch_1","amount":2999,"currency":"usd",` + order, "", commerce.PaymentReferences{}},
		{"the capture of a charge", "charge.captured", `"id":"ch_1","amount":2999,"currency":"usd",` + order, "", commerce.PaymentReferences{}},
		{"the sum of refunds", "charge.refunded", `"id":"ch_1","amount":2999,"amount_refunded":500,"currency":"usd",` + order, "", commerce.PaymentReferences{}},
		{"an inquiry", "charge.dispute.created", `"id":"du_1","amount":2999,"currency":"usd"`, "", commerce.PaymentReferences{}},
		{"about something else", "customer.created", `"id":"cus_1"`, "", commerce.PaymentReferences{}},
		{"no decimal places", "payment_intent.succeeded", `"id":"pi_1","amount_received":500,"currency":"jpy"`, "capture 500 JPY pi_1 ", commerce.PaymentReferences{}},
		{"three decimal places", "payment_intent.succeeded", `"id":"pi_1","amount_received":5120,"currency":"kwd"`, "capture 5.120 KWD pi_1 ", commerce.PaymentReferences{}},
		{"Stripe has no decimal places", "payment_intent.succeeded", `"id":"pi_1","amount_received":5,"currency":"mga"`, "capture 5.00 MGA pi_1 ", commerce.PaymentReferences{}},
		{"Stripe has two decimal places", "payment_intent.succeeded", `"id":"pi_1","amount_received":500,"currency":"isk"`, "capture 5 ISK pi_1 ", commerce.PaymentReferences{}},
		{"an order ID that is too long is cut", "payment_intent.succeeded", `"id":"pi_1","amount_received":500,"currency":"usd","metadata":{"order_id":"` + strings.Repeat("é", 60) + `x"}`, "capture 5.00 USD pi_1 " + strings.Repeat("é", 50), commerce.PaymentReferences{}},
		{"the maximum number of digits", "payment_intent.succeeded", `"id":"pi_1","amount_received":999999999999999,"currency":"usd"`, "capture 9999999999999.99 USD pi_1 ", commerce.PaymentReferences{}},
	} {
		events, err := receive(t, "stripe", fmt.Sprintf(`{"id":"evt_1","object":"event","type":%q,"created":1780000000,"data":{"object":{%s}}}`, c.kind, c.object))
		got := ""
		if len(events) == 1 {
			e := events[0]
			got = fmt.Sprintf("%s %s %s %s %s", e.Kind, e.Amount.Decimal(), e.Amount.Currency, e.Reference, e.OrderID)
			if e.Provider != "stripe" || e.Of != c.of {
				t.Errorf("%s: %+v", c.name, e)
			}
		}
		if err != nil || got != c.want || len(events) > 1 {
			t.Errorf("%s: %q, %v, want %q", c.name, got, err, c.want)
		}
	}
}

// Events that cannot be read are refused without being repeated in the error.
func TestMalformedEvents(t *testing.T) {
	const object = `{"type":"payment_intent.succeeded","data":{"object":{%s}}}`
	const data = `{"type":"payment","data":{"provider":"p","reference":"r","kind":"CAPTURE","amount":1,"currency":"USD"%s}}`
	for name, bodies := range map[string][]string{
		"stripe": {
			``, `MARKER`, `[]`, `{}`, `{"type":"MARKER`, `{"type":7}`, `{"type":"a","type":"b"}`, `{"type":"payment_intent.succeeded"}`, `{"type":"payment_intent.succeeded","data":{"object":"MARKER"}}`,
			fmt.Sprintf(object, ``), fmt.Sprintf(object, `"id":"pi_1","amount_received":0,"currency":"usd"`), fmt.Sprintf(object, `"id":"pi_1","amount_received":-5,"currency":"usd"`),
			fmt.Sprintf(object, `"id":"pi_1","amount_received":1.5,"currency":"usd"`), fmt.Sprintf(object, `"id":"pi_1","amount_received":"5","currency":"usd"`),
			fmt.Sprintf(object, `"id":"pi_1","amount_received":99999999999999999999,"currency":"usd"`), fmt.Sprintf(object, `"id":"pi_1","amount_received":1000000000000000,"currency":"usd"`),
			fmt.Sprintf(object, `"id":"pi_1","amount_received":5,"currency":"MARKER"`), fmt.Sprintf(object, `"id":"pi_1","amount_received":5`),
			fmt.Sprintf(object, `"id":"MARKER#1","amount_received":5,"currency":"usd"`), fmt.Sprintf(object, `"id":"`+strings.Repeat("MARKER", 50)+`","amount_received":5,"currency":"usd"`),
			fmt.Sprintf(object, `"id":"pi_1","amount_received":5,"currency":"isk"`),
			strings.Replace(fmt.Sprintf(object, `"id":"pi_1","amount":5,"currency":"usd"`), "succeeded", "canceled", 1),
		},
		"payments": {
			``, `MARKER`, `{"type":"payment"}`, fmt.Sprintf(data, `,"kind":"MARKER"`), fmt.Sprintf(data, `,"amount":2`), strings.Replace(fmt.Sprintf(data, ``), "CAPTURE", "MARKER", 1),
			strings.Replace(fmt.Sprintf(data, ``), `"p"`, `"P"`, 1), strings.Replace(fmt.Sprintf(data, ``), `"amount":1`, `"amount":0.5`, 1),
		},
	} {
		for _, body := range bodies {
			if events, err := receive(t, name, body); !errors.Is(err, provider.ErrMalformed) || strings.Contains(err.Error(), "MARKER") {
				t.Errorf("%s: %s: %v, %v", name, body, events, err)
			}
		}
	}
	if events, err := receive(t, "payments", `{"type":"ping"}`); err != nil || len(events) > 0 {
		t.Errorf("%v, %v", events, err)
	}
	events, err := receive(t, "payments", fmt.Sprintf(data, `,"orderId":"o1"`))
	want := []commerce.PaymentEvent{{Kind: commerce.PaymentCapture, Amount: money("0.01", "USD"), Provider: "p", Reference: "r", OrderID: "o1"}}
	if err != nil || !reflect.DeepEqual(events, want) {
		t.Errorf("%+v, %v, want %+v", events, err, want)
	}
}

// FuzzEvents decodes arbitrary bodies. Each payment has values that the mutation recordPayment also
// accepts.
func FuzzEvents(f *testing.F) {
	f.Add([]byte(`{"type":"refund.created","created":1,"data":{"object":{"id":"re_1","amount":500,"currency":"usd","payment_intent":"pi_1","metadata":{"order_id":"o1"}}}}`))
	f.Add([]byte(`{"type":"payment","data":{"provider":"p","reference":"r","kind":"VOID","amount":1,"currency":"JPY","orderId":"o1"}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, p := range provider.All() {
			events, err := p.Decode(body)
			for _, e := range events {
				if err != nil {
					continue
				}
				name, badName := commerce.ParseProvider(e.Provider)
				reference, badReference := commerce.ParsePaymentReference(e.Reference)
				amount, badAmount := commerce.ParsePaymentAmount(e.Amount.Decimal(), e.Amount.Currency)
				if badName != nil || badReference != nil || badAmount != nil || name != e.Provider || reference != e.Reference || !amount.Equal(e.Amount) || len(e.OrderID) > commerce.MaxGivenOrderID {
					t.Errorf("%s: %+v", body, e)
				}
			}
		}
	})
}

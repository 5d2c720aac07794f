// Package input defines the input objects of mutations and converts them to commands of package
// commerce. Within the module, it imports only commerce and graph/operation.
package input

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strconv"

	"github.com/99designs/gqlgen/graphql"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/graph/operation"
)

// Validator collects the user errors of one input, so that one response can report all of them.
type Validator struct {
	// currency applies to amounts without a currency code.
	currency   commerce.Currency
	userErrors commerce.UserErrors
	// CheckWebhookURL returns an InvalidInput if events cannot be sent to a URL. The default accepts
	// URLs with https and a host. CheckWebhookDocument returns an error if the result of a document
	// cannot be sent.
	CheckWebhookURL, CheckWebhookDocument func(string) error
}

func (c *Validator) reject(r commerce.UserError) {
	if len(c.userErrors) < operation.MaxUserErrors {
		c.userErrors = append(c.userErrors, r)
	}
}

// NewValidator returns a Validator for one input. currency applies to amounts without a currency
// code.
func NewValidator(currency commerce.Currency) *Validator { return &Validator{currency: currency} }

// IdempotencyKey validates and returns an idempotency key. If key is nil, it returns an empty
// string.
func (c *Validator) IdempotencyKey(key *string) string {
	return parseOptional(c, func(s string) (string, error) {
		return commerce.ParseSearchableName(s, commerce.MaxIdempotencyKey)
	}, key, "idempotencyKey")
}

// Err returns the collected user errors as commerce.UserErrors, or nil if there are none.
func (c *Validator) Err() error {
	if len(c.userErrors) == 0 {
		return nil
	}
	return c.userErrors
}

// parseValue parses the value of an input field. path is the path of the field within the input. If
// the value is invalid, parseValue adds a user error to c.
func parseValue[V, T any](c *Validator, parse func(V) (T, error), v V, path ...string) T {
	parsed, err := parse(v)
	if err != nil {
		c.reject(commerce.NewInvalidInput(path, "%s", err))
	}
	return parsed
}

// parseOptional is like parseValue, but v can be nil. In this case, it returns the zero value of T.
func parseOptional[V, T any](c *Validator, parse func(V) (T, error), v *V, path ...string) T {
	if v == nil {
		var zero T
		return zero
	}
	return parseValue(c, parse, *v, path...)
}

// parseChange parses the new value of a record's field. If v is nil, the client did not send a new
// value, so parseChange returns nil and the record keeps its value.
func parseChange[V, T any](c *Validator, parse func(V) (T, error), v *V, path ...string) *T {
	if v == nil {
		return nil
	}
	parsed := parseValue(c, parse, *v, path...)
	return &parsed
}

// parseListChange is like parseChange, but for a field with a list of values.
func parseListChange[V, T any](c *Validator, parse func(*Validator, []V) []T, v []V) *[]T {
	if v == nil {
		return nil
	}
	parsed := parse(c, v)
	return &parsed
}

// parseOmittable parses the new value of a field that clients can clear. If the client omitted the
// value, parseOmittable returns nil. If the client sent null, it returns a pointer to the zero
// value.
func parseOmittable[V, T any](c *Validator, parse func(V) (T, error), v graphql.Omittable[*V], path ...string) *T {
	if !v.IsSet() {
		return nil
	}
	parsed := parseOptional(c, parse, v.Value(), path...)
	return &parsed
}

func parseName(s string) (string, error) { return commerce.ParseName(s, commerce.MaxName) }

// To parse an input field, the generated code calls a function with one of these names. The code
// generator chooses the first name that exists:
//
//  1. the name for the command and the field, such as parseProductChangeUnitPrice
//  2. the name for the record and the field, such as parseEmployeeName
//  3. the name for the field, such as parseEmail
//  4. parseName, if the field has the type String

// parseSortableName validates a name by which clients can search or sort records. Unlike parseName,
// it does not allow the character "#".
func parseSortableName(s string) (string, error) {
	return commerce.ParseSearchableName(s, commerce.MaxName)
}

func parseEmployeeName(s string) (string, error) { return parseSortableName(s) }

func parseJobTitle(s string) (string, error) { return parseSortableName(s) }

func parseCategory(s string) (string, error) { return parseSortableName(s) }

func parseEmail(s string) (string, error) { return commerce.ParseEmail(s) }

func parseNote(s string) (string, error) { return parseOptionalText(s, commerce.MaxNote) }

func parseOrderNoteNote(s string) (string, error) { return commerce.ParseName(s, commerce.MaxNote) }

func parseOptionalName(s string) (string, error) { return parseOptionalText(s, commerce.MaxName) }

// parseOptionalText validates a text that can be empty.
func parseOptionalText(s string, maxBytes int) (string, error) {
	if s == "" {
		return "", nil
	}
	return commerce.ParseName(s, maxBytes)
}

func parseProvider(s string) (string, error) { return commerce.ParseProvider(s) }

// parseFulfillmentID parses the ID of a fulfillment, which is a ULID like the ID of an order.
func parseFulfillmentID(s string) (commerce.FulfillmentID, error) {
	id, err := commerce.ParseOrderID(s)
	return commerce.FulfillmentID(id), err
}

func parseTrackingNumber(s string) (string, error) {
	return commerce.ParseSearchableName(s, commerce.MaxName)
}

// parseTrackingURL requires an absolute URL, so that a shop can show it as a link.
func parseTrackingURL(s string) (string, error) {
	text, err := commerce.ParseName(s, commerce.MaxTrackingURL)
	if err != nil {
		return "", err
	}
	if u, err := url.Parse(text); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return "", commerce.NewInvalidError("is not a URL that begins with https:// or http://")
	}
	return text, nil
}

func parseCarrier(s string) (string, error) { return commerce.ParseName(s, commerce.MaxName) }

func parseReference(s string) (string, error) { return commerce.ParsePaymentReference(s) }

func parseWebhookRequestURL(c *Validator, url string) string {
	check := c.CheckWebhookURL
	if check == nil {
		check = checkWebhookURL
	}
	for _, e := range commerce.UserErrorsOf(check(url)) {
		c.reject(e)
	}
	return url
}

// checkWebhookURL returns a commerce.InvalidInput if events cannot be sent to a URL.
func checkWebhookURL(text string) error {
	reject := func(format string, args ...any) error {
		return commerce.NewInvalidInput(commerce.FieldPath("url"), format, args...)
	}
	if len(text) > commerce.MaxWebhookURL {
		return reject("has %d bytes: use at most %d", len(text), commerce.MaxWebhookURL)
	}
	switch u, err := url.Parse(text); {
	case err != nil || u.Scheme != "https" || u.Hostname() == "":
		return reject("is not a complete URL that begins with https://")
	case u.User != nil:
		return reject("contains a user or a password: remove them, because each request is signed")
	case u.Fragment != "":
		return reject("contains a fragment: remove the # and what follows")
	}
	return nil
}

func parseTopics(_ *Validator, topics []commerce.EventType) []commerce.EventType {
	slices.Sort(topics)
	return slices.Compact(topics)
}

func parseStatuses(_ *Validator, statuses []commerce.Status) []commerce.Status {
	slices.Sort(statuses)
	return slices.Compact(statuses)
}

func parseDocumentID(c *Validator, id *string) string {
	return parseOptional(c, func(id string) (string, error) { return id, c.CheckWebhookDocument(id) }, id, "documentId")
}

func parseQuantity(n int32) (int, error) { return commerce.ParseQuantity(int(n)) }

func parseInventoryLevelQuantity(n int32) (int, error) { return commerce.ParseInventoryLevel(int(n)) }

func parseInventoryLevelReorderPoint(n int32) (int, error) {
	return commerce.ParseInventoryLevel(int(n))
}

func parseInventoryTransferQuantity(n int32) (int, error) {
	return commerce.ParseTransferQuantity(int(n))
}

func parseStockBuckets(n int32) (int, error) { return commerce.ParseStockBuckets(int(n)) }

func parseDelta(n int32) (int, error) { return commerce.ParseInventoryDelta(int(n)) }

func parsePhoneNumber(s string) (string, error) {
	return commerce.ParseName(s, commerce.MaxPhoneNumberLength)
}

func parsePhoneNumbers(c *Validator, numbers []string) []string {
	if len(numbers) > commerce.MaxPhoneNumbers {
		c.reject(commerce.NewInvalidInput(commerce.FieldPath("phoneNumbers"), "has %d phone numbers: use at most %d", len(numbers), commerce.MaxPhoneNumbers))
		return nil
	}
	parsed := make([]string, len(numbers))
	for i, number := range numbers {
		parsed[i] = parseValue(c, parsePhoneNumber, number, "phoneNumbers", strconv.Itoa(i))
	}
	return parsed
}

func parseAdd(c *Validator, tags []string) []string { return parseTags(c, "add", tags) }

func parseRemove(c *Validator, tags []string) []string { return parseTags(c, "remove", tags) }

func parseTags(c *Validator, field string, tags []string) []string {
	if len(tags) > commerce.MaxTags {
		c.reject(commerce.NewInvalidInput(commerce.FieldPath(field), "has %d tags: use at most %d", len(tags), commerce.MaxTags))
		return nil
	}
	parsed := make([]string, len(tags))
	for i, tag := range tags {
		parsed[i] = parseValue(c, parseTag, tag, field, strconv.Itoa(i))
	}
	return parsed
}

func parseTag(tag string) (string, error) { return commerce.ParseSearchableName(tag, commerce.MaxTag) }

func parseShippingAddress(c *Validator, in *AddressInput) commerce.Address {
	return *parseAddress(c, in, "shippingAddress")
}

func parseBillingAddress(c *Validator, in *AddressInput) *commerce.Address {
	return parseAddress(c, in, "billingAddress")
}

// parseAddress parses the address in an input field. If in is nil, it returns nil.
func parseAddress(c *Validator, in *AddressInput, field string) *commerce.Address {
	if in == nil {
		return nil
	}
	return &commerce.Address{
		Recipient:   parseValue(c, parseName, in.Recipient, field, "recipient"),
		Line1:       parseValue(c, parseName, in.Line1, field, "line1"),
		Line2:       parseOptional(c, parseOptionalName, in.Line2, field, "line2"),
		City:        parseValue(c, parseName, in.City, field, "city"),
		Region:      parseOptional(c, parseOptionalName, in.Region, field, "region"),
		PostalCode:  parseOptional(c, parseOptionalName, in.PostalCode, field, "postalCode"),
		CountryCode: parseValue(c, commerce.ParseCountry, in.CountryCode, field, "countryCode"),
	}
}

func parseContact(c *Validator, in *OrderContactInput) *commerce.OrderContact {
	return parseContactIn(c, "contact", in)
}

func parseContactIn(c *Validator, field string, in *OrderContactInput) *commerce.OrderContact {
	if in == nil {
		return nil
	}
	if cmp.Or(in.Email, in.Phone, in.Name) == nil {
		c.reject(commerce.NewInvalidInput(commerce.FieldPath(field), "is empty: set at least one field"))
	}
	return &commerce.OrderContact{
		Email: parseOptional(c, parseEmail, in.Email, field, "email"),
		Phone: parseOptional(c, parsePhoneNumber, in.Phone, field, "phone"),
		Name:  parseOptional(c, parseName, in.Name, field, "name"),
	}
}

func parseAdjustments(c *Validator, in []*OrderAdjustmentInput) []commerce.OrderAdjustment {
	if len(in) > commerce.MaxAdjustments {
		c.reject(commerce.NewInvalidInput(commerce.FieldPath("adjustments"), "has %d adjustments: use at most %d", len(in), commerce.MaxAdjustments))
		return nil
	}
	var parsed []commerce.OrderAdjustment
	for i, a := range in {
		parsed = append(parsed, parseAdjustment(c, a, strconv.Itoa(i)))
	}
	return parsed
}

// parseAdjustment parses an adjustment. Its amount has no currency yet, because the line items of
// the order determine it.
func parseAdjustment(c *Validator, in *OrderAdjustmentInput, index string) commerce.OrderAdjustment {
	const field = "adjustments"
	a := commerce.OrderAdjustment{
		Kind:     in.Kind,
		Label:    parseValue(c, parseAdjustmentLabel, in.Label, field, index, "label"),
		Amount:   parseValue(c, parseAdjustmentAmount, in.Amount, field, index, "amount"),
		Line:     parseOptional(c, commerce.ParseID[commerce.SKU], in.Line, field, index, "line"),
		Included: in.Included,
	}
	return parseValue(c, func(a commerce.OrderAdjustment) (commerce.OrderAdjustment, error) { return a, a.Validate() }, a, field, index)
}

func parseAdjustmentLabel(s string) (string, error) {
	return commerce.ParseName(s, commerce.MaxAdjustmentLabel)
}

func parseAdjustmentAmount(s string) (commerce.Money, error) { return commerce.ParseMoney(s, "") }

func parsePaymentRecordReason(s string) (string, error) { return parseReturnReason(s) }

func parseReturnReason(s string) (string, error) {
	return commerce.ParseName(s, commerce.MaxReturnReason)
}

// Command validates the input and returns a commerce.ReturnDecision.
func (in ApproveReturnInput) Command(c *Validator) commerce.ReturnDecision {
	return commerce.ReturnDecision{
		OrderID:  parseValue(c, commerce.ParseOrderID, in.OrderID, "orderId"),
		ReturnID: parseValue(c, commerce.ParseID[commerce.ReturnID], in.ReturnID, "returnId"),
		To:       commerce.ReturnApproved,
	}
}

// Command validates the input and returns a commerce.ReturnDecision.
func (in RejectReturnInput) Command(c *Validator) commerce.ReturnDecision {
	cmd := ApproveReturnInput{OrderID: in.OrderID, ReturnID: in.ReturnID}.Command(c)
	cmd.To, cmd.Reason = commerce.ReturnRejected, parseValue(c, parseReturnReason, in.Reason, "reason")
	return cmd
}

func parseReturnRequestLines(c *Validator, in []*ReturnLineInput) []commerce.ReturnLine {
	return parseReturnLines(c, in, 1, parseReturnLine, func(line commerce.ReturnLine) commerce.SKU { return line.SKU })
}

func parseReturnLine(c *Validator, in *ReturnLineInput, index string) commerce.ReturnLine {
	const field = "lines"
	return commerce.ReturnLine{
		SKU:      parseValue(c, commerce.ParseID[commerce.SKU], in.Sku, field, index, "sku"),
		Quantity: parseValue(c, parseQuantity, in.Quantity, field, index, "quantity"),
		Reason:   parseValue(c, parseReturnReason, in.Reason, field, index, "reason"),
	}
}

func parseReturnReceiptLines(c *Validator, in []*RestockedLineInput) []commerce.RestockedLine {
	return parseReturnLines(c, in, 0, parseRestockedLine, func(line commerce.RestockedLine) commerce.SKU { return line.SKU })
}

func parseRestockedLine(c *Validator, in *RestockedLineInput, index string) commerce.RestockedLine {
	const field = "lines"
	return commerce.RestockedLine{
		SKU:       parseValue(c, commerce.ParseID[commerce.SKU], in.Sku, field, index, "sku"),
		Restocked: parseValue(c, parseQuantity, in.Restocked, field, index, "restocked"),
	}
}

// parseReturnLines parses at least this many lines. Each of them has another product.
func parseReturnLines[In, L any](c *Validator, in []In, least int, parse func(*Validator, In, string) L, product func(L) commerce.SKU) (lines []L) {
	if len(in) < least || len(in) > commerce.MaxReturnLines {
		c.reject(commerce.NewInvalidInput(commerce.FieldPath("lines"), "has %d lines: use %d to %d", len(in), least, commerce.MaxReturnLines))
		return nil
	}
	for i, line := range in {
		index := strconv.Itoa(i)
		parsed := parse(c, line, index)
		if sku := product(parsed); slices.ContainsFunc(lines, func(l L) bool { return product(l) == sku }) {
			c.reject(commerce.NewInvalidInput(commerce.FieldPath("lines", index, "sku"), "is %s, as in another line: use one line for each product", sku))
		}
		lines = append(lines, parsed)
	}
	return lines
}

// parseUnitPrice parses the price of a product. If the input has no currency code, c.currency
// applies.
func parseUnitPrice(c *Validator, in *MoneyInput) commerce.Money {
	return parseMoney(c, commerce.ParsePrice, in, "unitPrice")
}

// parseAmount parses the amount of a payment. If the input has no currency code, c.currency
// applies.
func parseAmount(c *Validator, in *MoneyInput) commerce.Money {
	return parseMoney(c, commerce.ParsePaymentAmount, in, "amount")
}

// parseExpectedTotal parses the total that the client expects for an order. It allows more digits
// than parseUnitPrice, because other software can write product prices with more digits to the
// table.
func parseExpectedTotal(c *Validator, in *MoneyInput) *commerce.Money {
	if in == nil {
		return nil
	}
	total := parseMoney(c, commerce.ParseMoney, in, "expectedTotal")
	return &total
}

// parseMoney parses the amount of money in an input field. If the input has no currency code,
// c.currency applies.
func parseMoney(c *Validator, parse func(string, commerce.Currency) (commerce.Money, error), in *MoneyInput, field string) commerce.Money {
	currency := c.currency
	if in.CurrencyCode != nil {
		currency = parseValue(c, parseCurrencyCode, *in.CurrencyCode, field, "currencyCode")
	}
	return parseValue(c, func(amount string) (commerce.Money, error) { return parse(amount, currency) }, in.Amount, field, "amount")
}

func parseCurrencyCode(s commerce.Currency) (commerce.Currency, error) {
	return commerce.ParseCurrency(string(s))
}

// parseProductChangeUnitPrice parses a new product price. If the input has no currency code, the
// mutation later validates the amount in the product's currency.
func parseProductChangeUnitPrice(c *Validator, in *MoneyInput) *commerce.Price {
	if in == nil {
		return nil
	}
	p := commerce.Price{Amount: in.Amount, Currency: parseOptional(c, parseCurrencyCode, in.CurrencyCode, "unitPrice", "currencyCode")}
	if p.Currency != "" {
		parseUnitPrice(c, in)
	}
	return &p
}

// parseExpectedVersion returns the version that a record must have for the mutation to succeed. nil
// means any version.
func parseExpectedVersion(_ *Validator, v *int32) *int {
	if v == nil {
		return nil
	}
	n := int(*v)
	return &n
}

// Command validates the input and returns a commerce.AccountRepChange.
func (in AssignAccountRepInput) Command(c *Validator) commerce.AccountRepChange {
	if !in.EmployeeID.IsSet() {
		// An omitted employee ID is an error. If it meant null, a client that forgets to send the
		// variable would remove the account rep by mistake.
		c.reject(commerce.NewInvalidInput(commerce.FieldPath("employeeId"), "is missing: set an employee ID, or null to remove the account rep"))
	}
	return commerce.AccountRepChange{
		CustomerID:      parseValue(c, commerce.ParseID[commerce.CustomerID], in.CustomerID, "customerId"),
		EmployeeID:      parseOptional(c, commerce.ParseID[commerce.EmployeeID], in.EmployeeID.Value(), "employeeId"),
		ExpectedVersion: parseExpectedVersion(c, in.ExpectedVersion),
	}
}

// Command validates the input and returns a commerce.OrderRequest.
func (in PlaceOrderInput) Command(c *Validator) commerce.OrderRequest {
	customer, contact := parseOptional(c, commerce.ParseID[commerce.CustomerID], in.CustomerID, "customerId"), parseContact(c, in.Contact)
	switch {
	case in.CustomerID == nil && in.Guest == nil:
		c.reject(commerce.NewInvalidInput(commerce.FieldPath("customerId"), "is missing: set either customerId or guest"))
	case in.CustomerID != nil && in.Guest != nil:
		c.reject(commerce.NewInvalidInput(commerce.FieldPath("guest"), "cannot be combined with customerId: set either customerId or guest"))
	case in.Guest != nil && contact != nil:
		c.reject(commerce.NewInvalidInput(commerce.FieldPath("contact"), "cannot be combined with guest: set only guest"))
	case in.Guest != nil && in.Guest.Email == nil:
		c.reject(commerce.NewInvalidInput(commerce.FieldPath("guest", "email"), "is missing: set the guest's email address"))
	case in.Guest != nil:
		contact = parseContactIn(c, "guest", in.Guest)
		customer, _ = commerce.GuestID(contact.Email) // an invalid address is already reported
	}
	return commerce.OrderRequest{
		CustomerID:      customer,
		Lines:           parseOrderLines(c, in.Items),
		ShippingAddress: parseAddress(c, in.ShippingAddress, "shippingAddress"),
		BillingAddress:  parseBillingAddress(c, in.BillingAddress),
		Contact:         contact,
		Adjustments:     parseAdjustments(c, in.Adjustments),
		ExpiresAt:       in.ExpiresAt,
		ExpectedTotal:   parseExpectedTotal(c, in.ExpectedTotal),
		CustomFields:    parseCustomFields(c, in.CustomFields),
	}
}

// Request validates the input and returns an order with its lines and adjustments. The lines
// contain at most commerce.MaxLines different products.
//
// If the input is invalid, Request returns commerce.UserErrors with InvalidInput and TooManyLines
// errors.
func (in QuoteInput) Request() (commerce.OrderRequest, error) {
	c := NewValidator("")
	request := commerce.OrderRequest{Lines: parseOrderLines(c, in.Items), Adjustments: parseAdjustments(c, in.Adjustments)}
	parseCustomFields(c, in.CustomFields)
	if err := c.Err(); err != nil {
		return commerce.OrderRequest{}, err
	}
	if _, err := commerce.MergeLines(request.Lines); err != nil {
		return commerce.OrderRequest{}, err
	}
	return request, nil
}

// Quote returns the quote that the function price computes for the requested order. If the input is
// invalid, Quote does not call price, and the quote contains only the user errors.
func (in QuoteInput) Quote(ctx context.Context, price func(context.Context, commerce.OrderRequest) (*commerce.Quote, error)) (*commerce.Quote, error) {
	request, err := in.Request()
	if err != nil {
		return new(commerce.InvalidQuote(commerce.UserErrorsOf(err))), nil
	}
	return price(ctx, request)
}

func parseOrderLines(c *Validator, items []*OrderLineInput) []commerce.OrderLine {
	if len(items) > maxValidatedLines {
		c.reject(commerce.NewTooManyLines(commerce.FieldPath("items"), len(items), commerce.MaxLines))
		return nil
	}
	lines := make([]commerce.OrderLine, len(items))
	for i, item := range items {
		lines[i] = parseOrderLine(c, item, strconv.Itoa(i))
	}
	return lines
}

func parseOrderLine(c *Validator, in *OrderLineInput, index string) commerce.OrderLine {
	return commerce.OrderLine{
		SKU:          parseValue(c, commerce.ParseID[commerce.SKU], in.Sku, "items", index, "sku"),
		Quantity:     parseValue(c, parseQuantity, in.Quantity, "items", index, "quantity"),
		CustomFields: parseCustomFields(c, in.CustomFields, "items", index),
	}
}

// maxValidatedLines is the maximum number of order lines in an input. It exceeds commerce.MaxLines,
// because lines with the same product are combined later. Longer inputs are rejected before their
// lines are validated.
const maxValidatedLines = 10 * commerce.MaxLines

// parseStatusChange returns the command that changes the status of an order. The new status is in
// the parameter named to.
func parseStatusChange(c *Validator, to commerce.Status, id string, note *string, version *int32) commerce.OrderStatusChange {
	return commerce.OrderStatusChange{
		OrderID:         parseValue(c, commerce.ParseOrderID, id, "orderId"),
		To:              to,
		Note:            parseOptional(c, parseNote, note, "note"),
		ExpectedVersion: parseExpectedVersion(c, version),
	}
}

// Command validates the input and returns a commerce.OrderStatusChange.
func (in ConfirmOrderInput) Command(c *Validator) commerce.OrderStatusChange {
	return parseStatusChange(c, commerce.Confirmed, in.OrderID, in.Note, in.ExpectedVersion)
}

// Command validates the input and returns a commerce.OrderStatusChange.
func (in DeliverOrderInput) Command(c *Validator) commerce.OrderStatusChange {
	return parseStatusChange(c, commerce.Delivered, in.OrderID, in.Note, in.ExpectedVersion)
}

// Command validates the input and returns a commerce.OrderStatusChange.
func (in CancelOrderInput) Command(c *Validator) commerce.OrderStatusChange {
	return parseStatusChange(c, commerce.Cancelled, in.OrderID, in.Note, in.ExpectedVersion)
}

// parseLines parses the lines of a fulfillment. If lines is nil, the fulfillment contains
// everything.
func parseLines(c *Validator, lines []*FulfillmentLineInput) []commerce.FulfillmentLine {
	if lines == nil {
		return nil
	}
	if len(lines) == 0 || len(lines) > maxValidatedLines {
		c.reject(commerce.NewInvalidInput(commerce.FieldPath("lines"), "has %d elements: use 1 to %d, or omit the field for all open units", len(lines), commerce.MaxLines))
		return nil
	}
	parsed := make([]commerce.FulfillmentLine, len(lines))
	for i, line := range lines {
		parsed[i] = parseFulfillmentLine(c, line, strconv.Itoa(i))
	}
	return parsed
}

// parseItemsCancellationLines parses the lines of an ItemsCancellation.
func parseItemsCancellationLines(c *Validator, lines []*FulfillmentLineInput) []commerce.FulfillmentLine {
	if lines == nil {
		lines = []*FulfillmentLineInput{} // reject it
	}
	return parseLines(c, lines)
}

func parseFulfillmentLine(c *Validator, in *FulfillmentLineInput, index string) commerce.FulfillmentLine {
	return commerce.FulfillmentLine{
		SKU:      parseValue(c, commerce.ParseID[commerce.SKU], in.Sku, "lines", index, "sku"),
		Quantity: parseValue(c, parseQuantity, in.Quantity, "lines", index, "quantity"),
	}
}

// parseFulfillmentStatus returns the command that changes the status of a fulfillment.
func parseFulfillmentStatus(c *Validator, to commerce.FulfillmentStatus, order, fulfillment string, version *int32) commerce.FulfillmentStatusChange {
	return commerce.FulfillmentStatusChange{
		OrderID:         parseValue(c, commerce.ParseOrderID, order, "orderId"),
		FulfillmentID:   parseValue(c, parseFulfillmentID, fulfillment, "fulfillmentId"),
		To:              to,
		ExpectedVersion: parseExpectedVersion(c, version),
	}
}

// Command validates the input and returns a commerce.FulfillmentStatusChange.
func (in DeliverFulfillmentInput) Command(c *Validator) commerce.FulfillmentStatusChange {
	return parseFulfillmentStatus(c, commerce.FulfillmentDelivered, in.OrderID, in.FulfillmentID, in.ExpectedVersion)
}

// Command validates the input and returns a commerce.FulfillmentStatusChange.
func (in CancelFulfillmentInput) Command(c *Validator) commerce.FulfillmentStatusChange {
	return parseFulfillmentStatus(c, commerce.FulfillmentCancelled, in.OrderID, in.FulfillmentID, in.ExpectedVersion)
}

// Command validates the input and returns a commerce.OrderStatusChange.
func (in ShipOrderInput) Command(c *Validator) commerce.OrderStatusChange {
	m := parseStatusChange(c, commerce.Shipped, in.OrderID, in.Note, in.ExpectedVersion)
	m.WarehouseID = parseValue(c, commerce.ParseID[commerce.WarehouseID], in.WarehouseID, "warehouseId")
	m.TrackingNumber = parseOptional(c, parseOptionalName, in.TrackingNumber, "trackingNumber")
	m.WithoutAddress = in.WithoutAddress
	m.Carrier = parseOptional(c, parseOptionalName, in.Carrier, "carrier")
	return m
}

// Command validates the input and returns a commerce.OrderItemChange.
func (in RemoveOrderItemInput) Command(c *Validator) commerce.OrderItemChange {
	return commerce.OrderItemChange{
		OrderID:         parseValue(c, commerce.ParseOrderID, in.OrderID, "orderId"),
		SKU:             parseValue(c, commerce.ParseID[commerce.SKU], in.Sku, "sku"),
		ExpectedVersion: parseExpectedVersion(c, in.ExpectedVersion),
	}
}

package dynamo

import "github.com/ordergraph/ordergraph/commerce"

func customerKey(b *keyBuilder, id commerce.CustomerID) keys {
	return keys{PK: b.key(entityCustomer.PK, string(id)), SK: b.key(entityCustomer.SK)}
}

func emailClaimKey(b *keyBuilder, email string) keys {
	return keys{PK: b.key(entityEmailClaim.PK, email), SK: b.key(entityEmailClaim.SK)}
}

// customerRecords are all records of a customer: the customer, the claim of the e-mail address, and
// the edge to the account rep where there is one.
func customerRecords(b *keyBuilder, c commerce.Customer) []record {
	email, err := commerce.ParseEmail(c.Email)
	if err != nil && b.err == nil {
		b.err = commerce.For("email", err)
	}
	records := []record{customerRecord(b, c), emailClaimRecord(b, email, c.ID)}
	if c.AccountRepID != "" {
		records = append(records, customerRepRecord(b, c))
	}
	return records
}

func customerRecord(b *keyBuilder, c commerce.Customer) record {
	k := customerKey(b, c.ID)
	k.IndexPK = b.sharded(entityCustomer.IndexPK, string(c.ID))
	k.IndexSK = b.key(entityCustomer.IndexSK, timestamp(c.CreatedAt), string(c.ID))
	r := k.attributes().with(customerAttributes(entityCustomer, c))
	if c.OrderCount != nil {
		r["orderCount"] = num(*c.OrderCount)
	}
	return r
}

// emailClaimRecord says whose an address is, in the form of commerce.ParseEmail.
func emailClaimRecord(b *keyBuilder, email string, id commerce.CustomerID) record {
	return emailClaimKey(b, email).attributes().with(record{"entity": str(entityEmailClaim.Name), "customerId": str(string(id))})
}

// customerRepRecord is the edge by which a customer stands in the account rep's list. It has no
// orderCount, or it would have to be written again with every order.
func customerRepRecord(b *keyBuilder, c commerce.Customer) record {
	k := customerRepKey(b, c.ID)
	k.IndexPK = b.key(entityCustomerRep.IndexPK, string(c.AccountRepID))
	k.IndexSK = b.key(entityCustomerRep.IndexSK, string(c.ID))
	return k.attributes().with(customerAttributes(entityCustomerRep, c))
}

func customerRepKey(b *keyBuilder, id commerce.CustomerID) keys {
	return keys{PK: b.key(entityCustomerRep.PK, string(id)), SK: b.key(entityCustomerRep.SK)}
}

func customerAttributes(e Entity, c commerce.Customer) record {
	r := record{
		"entity": str(e.Name), "customerId": str(string(c.ID)), "name": str(c.Name), "email": str(c.Email),
		"phoneNumbers": texts(c.PhoneNumbers), "createdAt": str(timestamp(c.CreatedAt)),
		"updatedAt": str(timestamp(c.UpdatedAt)), attrVersion: num(c.Version),
	}
	if c.AccountRepID != "" {
		r["accountRepId"] = str(string(c.AccountRepID))
	}
	return r
}

// decodeCustomer reads a customer's record or REP edge.
//
// Errors: ErrCorrupt.
func (codec *Codec) decodeCustomer(r reader) (*commerce.Customer, error) {
	c := &commerce.Customer{
		ID:           commerce.CustomerID(r.mustText("customerId")),
		Name:         r.mustText("name"),
		Email:        r.mustText("email"),
		PhoneNumbers: r.texts("phoneNumbers"),
		AccountRepID: commerce.EmployeeID(r.textOrKey("accountRepId", &entityCustomerRep)),
		OrderCount:   r.count("orderCount"),
		CreatedAt:    r.mustTime("createdAt"),
		Version:      r.number(attrVersion),
	}
	c.UpdatedAt = r.updatedOr(c.CreatedAt)
	return c, r.err()
}

// decodeEmailClaim reads whose an e-mail address is.
//
// Errors: ErrCorrupt.
func decodeEmailClaim(r reader) (commerce.CustomerID, error) {
	return commerce.CustomerID(r.mustText("customerId")), r.err()
}

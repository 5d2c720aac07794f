package model

import "github.com/ordergraph/ordergraph/commerce"

// CustomerKeys returns the keys of a customer.
func CustomerKeys(b *KeyBuilder, id commerce.CustomerID) Keys {
	return Keys{PK: b.Key(EntityCustomer.PK, string(id)), SK: b.Key(EntityCustomer.SK)}
}

// EmailClaimKeys returns the keys of the claim of an e-mail address.
func EmailClaimKeys(b *KeyBuilder, email string) Keys {
	return Keys{PK: b.Key(EntityEmailClaim.PK, email), SK: b.Key(EntityEmailClaim.SK)}
}

// CustomerRecords are all records of a customer: the customer, the claim of the e-mail address, and
// the edge to the account rep where there is one.
func CustomerRecords(b *KeyBuilder, c commerce.Customer) []Record {
	email, err := commerce.ParseEmail(c.Email)
	if err != nil && b.Err == nil {
		b.Err = commerce.For("email", err)
	}
	records := []Record{CustomerRecord(b, c), EmailClaimRecord(b, email, c.ID)}
	if c.AccountRepID != "" {
		records = append(records, CustomerRepRecord(b, c))
	}
	return records
}

// CustomerRecord returns the record of a customer.
func CustomerRecord(b *KeyBuilder, c commerce.Customer) Record {
	k := CustomerKeys(b, c.ID)
	k.IndexPK = b.sharded(EntityCustomer.IndexPK, string(c.ID))
	k.IndexSK = b.Key(EntityCustomer.IndexSK, Timestamp(c.CreatedAt), string(c.ID))
	r := k.Attributes().With(CustomerAttributes(EntityCustomer, c))
	if c.OrderCount != nil {
		r["orderCount"] = Num(*c.OrderCount)
	}
	return r
}

// EmailClaimRecord says whose an address is, in the form of commerce.ParseEmail.
func EmailClaimRecord(b *KeyBuilder, email string, id commerce.CustomerID) Record {
	return EmailClaimKeys(b, email).Attributes().With(Record{"entity": Str(EntityEmailClaim.Name), "customerId": Str(string(id))})
}

// CustomerRepRecord is the edge by which a customer stands in the account rep's list. It has no
// orderCount, or it would have to be written again with every order.
func CustomerRepRecord(b *KeyBuilder, c commerce.Customer) Record {
	k := CustomerRepKeys(b, c.ID)
	k.IndexPK = b.Key(EntityCustomerRep.IndexPK, string(c.AccountRepID))
	k.IndexSK = b.Key(EntityCustomerRep.IndexSK, string(c.ID))
	return k.Attributes().With(CustomerAttributes(EntityCustomerRep, c))
}

// CustomerRepKeys returns the keys of the edge to a customer's account rep.
func CustomerRepKeys(b *KeyBuilder, id commerce.CustomerID) Keys {
	return Keys{PK: b.Key(EntityCustomerRep.PK, string(id)), SK: b.Key(EntityCustomerRep.SK)}
}

// CustomerAttributes returns the attributes of a customer, for the record or for the edge.
func CustomerAttributes(e Entity, c commerce.Customer) Record {
	r := Record{
		"entity": Str(e.Name), "customerId": Str(string(c.ID)), "name": Str(c.Name), "email": Str(c.Email),
		"phoneNumbers": Texts(c.PhoneNumbers), "createdAt": Str(Timestamp(c.CreatedAt)),
		"updatedAt": Str(Timestamp(c.UpdatedAt)), AttrVersion: Num(c.Version),
	}
	if c.AccountRepID != "" {
		r["accountRepId"] = Str(string(c.AccountRepID))
	}
	return r
}

// DecodeCustomer reads a customer's record or REP edge.
//
// Errors: ErrCorrupt.
func (codec *Codec) DecodeCustomer(r Reader) (*commerce.Customer, error) {
	c := &commerce.Customer{
		ID:           commerce.CustomerID(r.MustText("customerId")),
		Name:         r.MustText("name"),
		Email:        r.MustText("email"),
		PhoneNumbers: r.Texts("phoneNumbers"),
		AccountRepID: commerce.EmployeeID(r.textOrKey("accountRepId", &EntityCustomerRep)),
		OrderCount:   r.count("orderCount"),
		CreatedAt:    r.MustTime("createdAt"),
		Version:      r.Number(AttrVersion),
	}
	c.UpdatedAt = r.UpdatedOr(c.CreatedAt)
	return c, r.Err()
}

// decodeEmailClaim reads whose an e-mail address is.
//
// Errors: ErrCorrupt.
func decodeEmailClaim(r Reader) (commerce.CustomerID, error) {
	return commerce.CustomerID(r.MustText("customerId")), r.Err()
}

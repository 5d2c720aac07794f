package model

import "github.com/ordergraph/ordergraph/commerce"

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
	return b.record(&EntityCustomer, CustomerAttributes(EntityCustomer, c))
}

// EmailClaimRecord says whose an address is, in the form of commerce.ParseEmail.
func EmailClaimRecord(b *KeyBuilder, email string, id commerce.CustomerID) Record {
	return EmailClaim.Key(b, email).Attributes().With(Record{"entity": Str(EntityEmailClaim.Name), "customerId": Str(string(id))})
}

// CustomerRepRecord is the edge by which a customer stands in the account rep's list. It has no
// orderCount, or it would have to be written again with every order.
func CustomerRepRecord(b *KeyBuilder, c commerce.Customer) Record {
	return b.record(&EntityCustomerRep, CustomerAttributes(EntityCustomerRep, c))
}

// CustomerRepKeys returns the keys of the edge to a customer's account rep.
func CustomerRepKeys(b *KeyBuilder, id commerce.CustomerID) Keys {
	return Keys{PK: b.Key(EntityCustomerRep.PK, string(id)), SK: b.Key(EntityCustomerRep.SK)}
}

// CustomerAttributes returns the attributes of a customer, for the record or for the edge.
func CustomerAttributes(e Entity, c commerce.Customer) Record {
	if e.Name == EntityCustomerRep.Name {
		c.OrderCount = nil
	}
	return written(customerAttributes, c).With(Record{"entity": Str(e.Name)})
}

func customerAttributes(a *attributes, c *commerce.Customer) {
	text(a, AttrCustomerID, &c.ID, commerce.MaxIDLength)
	text(a, "name", &c.Name, commerce.MaxName)
	text(a, "email", &c.Email, commerce.MaxEmail)
	a.texts("phoneNumbers", &c.PhoneNumbers, commerce.MaxPhoneNumbers, commerce.MaxPhoneNumber)
	listedText(a, "accountRepId", &c.AccountRepID, commerce.MaxIDLength, &EntityCustomerRep, optional)
	a.count(AttrOrderCount, &c.OrderCount, nil)
	a.createdAt(&c.CreatedAt)
	a.updatedAt(&c.UpdatedAt, c.CreatedAt)
	a.version(&c.Version)
}

// DecodeCustomer reads a customer's record or REP edge.
//
// Errors: ErrCorrupt.
func (codec *Codec) DecodeCustomer(r Reader) (*commerce.Customer, error) {
	a, c := attributes{Reader: r}, &commerce.Customer{}
	customerAttributes(&a, c)
	return c, a.Err()
}

// decodeEmailClaim reads whose an e-mail address is.
//
// Errors: ErrCorrupt.
func decodeEmailClaim(r Reader) (commerce.CustomerID, error) {
	return commerce.CustomerID(r.MustText("customerId")), r.Err()
}

package model

import (
	"github.com/ordergraph/ordergraph/commerce"
)

// CustomerRecords returns the same records as EncodeWithEdges. If the email address is invalid, so that
// no record can reserve it, it also sets b.Err.
func CustomerRecords(b *KeyBuilder, c commerce.Customer) []Record {
	if _, err := commerce.EmailKey(c.Email); err != nil && b.Err == nil {
		b.Err = commerce.ErrorWithArgument("email", err)
	}
	return EncodeWithEdges(b, &c)
}

func customerAttributes(a *attributeVisitor, c *commerce.Customer) {
	idAttribute(a, AttrCustomerID, &c.ID, commerce.MaxIDLength)
	textAttribute(a, "name", &c.Name, commerce.MaxName)
	personal(a, &c.Name)
	textAttribute(a, "email", &c.Email, commerce.MaxEmail)
	personal(a, &c.Email)
	if a.mode == modeMaximizing {
		c.Email = "x@" + c.Email[2:] // only an address has an edge
	}
	a.texts("phoneNumbers", &c.PhoneNumbers, commerce.MaxPhoneNumbers, commerce.MaxPhoneNumberLength)
	personal(a, &c.PhoneNumbers)
	indexedTextAttribute(a, "accountRepId", &c.AccountRepID, commerce.MaxIDLength, repKey, presenceOptional)
	a.optionalCounter(AttrOrderCount, &c.OrderCount, nil)
	a.flag(AttrSpendingComplete, &c.SpendingComplete)
	a.customFields("Customer", &c.CustomFields)
	a.createdAt(&c.CreatedAt)
	a.updatedAt(&c.UpdatedAt, c.CreatedAt)
	a.version(&c.Version)
}

// DeletedCustomerRecord returns the record which states that a customer was deleted. A customer with
// this record has no other record of its own, no edges and no email claim
// (docs/adr/0041-deleted-customers.md).
func DeletedCustomerRecord(b *KeyBuilder, c commerce.DeletedCustomer) Record {
	return b.record(&EntityDeletedCustomer, encode(deletedCustomerAttributes, c))
}

func deletedCustomerAttributes(a *attributeVisitor, c *commerce.DeletedCustomer) {
	idAttribute(a, AttrCustomerID, &c.ID, commerce.MaxIDLength)
	if a.mode == modeReading {
		c.DeletedAt = a.RequiredTime("deletedAt")
	} else {
		a.putTime("deletedAt", &c.DeletedAt, presenceRequired)
	}
	optionalTextAttribute(a, "erasure", &c.Erasure, len(commerce.ErasureIncomplete))
	optionalTextAttribute(a, "erasedTo", &c.ErasedTo, commerce.ULIDLength+len(" EVENT#")+commerce.ULIDLength)
}

// DecodeDeletedCustomer decodes the record which states that a customer was deleted.
//
// Errors: ErrCorrupt.
func DecodeDeletedCustomer(r Reader) (*commerce.DeletedCustomer, error) {
	return codecFor[commerce.DeletedCustomer](deletedCustomerAttributes).read(&Codec{}, r)
}

// DecodeCustomer decodes a customer's record or one of its edges.
//
// Errors: ErrCorrupt.
func (codec *Codec) DecodeCustomer(r Reader) (*commerce.Customer, error) {
	a, c := attributeVisitor{Reader: r}, &commerce.Customer{}
	customerAttributes(&a, c)
	return c, a.Err()
}

// Package access decides who may read which records, and which records a mutation may change. A
// Policy grants permissions to roles. The owner of a record is declared in package model.
//
// The package imports only package commerce of the module.
package access

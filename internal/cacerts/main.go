// Command cacerts prints the CA certificates that Mozilla trusts, in PEM format, for the image of a
// release. Mozilla trusts some certificates only under conditions. PEM cannot express conditions, so
// the output omits such certificates.
package main

import (
	"encoding/pem"
	"fmt"
	"os"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

func main() {
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		if err := pem.Encode(os.Stdout, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			fmt.Fprintf(os.Stderr, "cacerts: %v\n", err)
			os.Exit(1)
		}
	}
}

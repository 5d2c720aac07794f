// Package model defines the contents of the DynamoDB table: the entities and their keys, the access
// patterns, the write patterns, the encoding of each record, and its capacity units. It imports
// commerce and the types of the AWS SDK, but no DynamoDB client.
package model

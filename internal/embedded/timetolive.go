package embedded

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// updateTimeToLive only keeps the setting. DynamoDB does not guarantee when it deletes expired
// records, either, so no code may depend on it.
//
// It returns ResourceNotFoundException, or ValidationException if nothing would change or another
// attribute is set.
func (s *Store) updateTimeToLive(_ context.Context, in *dynamodb.UpdateTimeToLiveInput) (*dynamodb.UpdateTimeToLiveOutput, error) {
	t, err := s.table(in.TableName)
	if err != nil {
		return nil, err
	}
	spec := in.TimeToLiveSpecification
	if spec == nil || aws.ToString(spec.AttributeName) == "" {
		return nil, invalid("TimeToLiveSpecification has no AttributeName")
	}
	name, enabled := *spec.AttributeName, aws.ToBool(spec.Enabled)
	switch {
	case t.expiry == "" && !enabled:
		return nil, invalid("TimeToLive is already disabled")
	case t.expiry != "" && t.expiry != name:
		return nil, invalid("TimeToLive is active on a different AttributeName")
	case t.expiry != "" && enabled:
		return nil, invalid("TimeToLive is already enabled")
	}
	t.expiry = ""
	if enabled {
		t.expiry = name
	}
	return &dynamodb.UpdateTimeToLiveOutput{TimeToLiveSpecification: spec}, nil
}

// describeTimeToLive returns the setting. It returns ResourceNotFoundException.
func (s *Store) describeTimeToLive(_ context.Context, in *dynamodb.DescribeTimeToLiveInput) (*dynamodb.DescribeTimeToLiveOutput, error) {
	t, err := s.table(in.TableName)
	if err != nil {
		return nil, err
	}
	d := &types.TimeToLiveDescription{TimeToLiveStatus: types.TimeToLiveStatusDisabled}
	if t.expiry != "" {
		d = &types.TimeToLiveDescription{TimeToLiveStatus: types.TimeToLiveStatusEnabled, AttributeName: aws.String(t.expiry)}
	}
	return &dynamodb.DescribeTimeToLiveOutput{TimeToLiveDescription: d}, nil
}

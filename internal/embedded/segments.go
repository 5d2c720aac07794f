package embedded

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"

	"github.com/truora/minidyn/server"
)

// scan returns a segment's share of each page of the engine, which has no segments. As in DynamoDB,
// a page may be empty although more pages follow.
func (s *Store) scan(ctx context.Context, in *server.ScanInput) (*server.ScanOutput, error) {
	out, err := s.engine.Scan(ctx, in)
	if err != nil || in.Segment == nil && in.TotalSegments == nil {
		return out, err
	}
	if in.Segment == nil || in.TotalSegments == nil {
		return nil, invalid("Segment and TotalSegments must be set together")
	}
	if *in.Segment < 0 || *in.Segment >= *in.TotalSegments {
		return nil, invalid("Segment is %d, want a number below TotalSegments, %d", *in.Segment, *in.TotalSegments)
	}
	t, err := s.table(in.TableName)
	if err != nil {
		return nil, err
	}
	share := []record{}
	for _, r := range out.Items {
		hash, there := r[t.hash]
		if !there {
			return nil, invalid("the embedded store needs %s for segments, but the projection lacks it", t.hash)
		}
		text, err := json.Marshal(hash)
		if err != nil {
			return nil, fmt.Errorf("encode a partition key: %w", err)
		}
		sum := fnv.New32a()
		sum.Write(text) // never fails
		if sum.Sum32()%uint32(*in.TotalSegments) == uint32(*in.Segment) {
			share = append(share, r)
		}
	}
	out.Items, out.Count = share, int32(len(share))
	return out, nil
}

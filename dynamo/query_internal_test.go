package dynamo

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
)

// A merge returns the first rows in order for any distribution of rows over partitions, including
// long runs in one partition. It reads at most three pages and one row per partition. It stays
// within its bound of rounds and requests. The test simulates queries and runs the real rounds of
// Store.read. So it runs often enough to find rare worst-case distributions.
func TestMergesStayWithinBounds(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range longtest.Size(4_000, 40_000) {
		partitions := make([]string, 2+random.IntN(14))
		limit, total, change := 1+random.IntN(20), random.IntN(120), random.Float64()
		// left are the rows of each partition that no Query has read.
		left := make([][]row, len(partitions))
		var want []string
		for at, n := 0, 0; n < total; n++ {
			if random.Float64() < change {
				at = random.IntN(len(partitions))
			}
			r := row{position: fmt.Sprintf("%04d", n), record: model.Reader{Record: model.Record{model.AttrPK: model.Str(fmt.Sprint(n))}}}
			left[at] = append(left[at], r)
			want = append(want, r.position)
		}
		page := PageRequest{Limit: limit, DetectMore: random.IntN(2) == 0}
		want = want[:min(len(want), page.fetchLimit())]

		read, rounds, requests := 0, 0, 0
		l := listQuery{pattern: &model.Timeline.AccessPattern, page: page}
		rows, err := l.readGroup(nil, model.Segment{Partitions: partitions}, func(readers []*partitionReader) error {
			rounds++
			for i, pr := range readers {
				if pr.need == 0 {
					continue
				}
				n := min(pr.need, len(left[i]))
				pr.rows, left[i] = append(pr.rows, left[i][:n]...), left[i][n:]
				pr.recordQuery(n, n == pr.need, true)
				requests, read = requests+1, read+n
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range rows {
			got = append(got, r.position)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("a page of %d over %d partitions is %v, want %v", limit, len(partitions), got, want)
		}
		if most := 3*limit + len(partitions); read > most {
			t.Fatalf("a page of %d over %d partitions read %d rows, want at most %d", limit, len(partitions), read, most)
		}
		if most := maxMergeCost(len(partitions), page); rounds > most.rounds || requests > most.requests || read > most.rows {
			t.Fatalf("a page of %d over %d partitions took %d rounds, %d requests and %d rows, want at most %+v", limit, len(partitions), rounds, requests, read, most)
		}
	}
}

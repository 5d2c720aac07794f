package dynamo

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/longtest"
)

// However rows are spread over partitions, in long runs of one of them too, a merge gives the first
// rows in order, reads at most three pages and one row a partition, and takes no more rounds and
// requests than its bound. The rounds are those of Store.read; only the Queries are simulated, so
// that there can be enough of them to find the rare spread that is worst.
func TestMergesReadNoMoreThanTheyMay(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range longtest.Size(4_000, 40_000) {
		partitions := make([]string, 2+random.IntN(14))
		limit, total, change := 1+random.IntN(20), random.IntN(120), random.Float64()
		// left are the rows of each stream that no Query has read yet.
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
		page := Page{Limit: limit, More: random.IntN(2) == 0}
		want = want[:min(len(want), page.want())]

		read, rounds, requests := 0, 0, 0
		l := listing{pattern: &model.Timeline.AccessPattern, page: page}
		rows, err := l.readLevel(nil, partitions, func(streams []*stream) error {
			rounds++
			for i, st := range streams {
				if st.need == 0 {
					continue
				}
				n := min(st.need, len(left[i]))
				st.rows, left[i] = append(st.rows, left[i][:n]...), left[i][n:]
				st.took(n, n == st.need, true)
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
			t.Fatalf("a page of %d over %d partitions read %d rows, more than %d", limit, len(partitions), read, most)
		}
		if most := merged(len(partitions), page); rounds > most.rounds || requests > most.requests || read > most.rows {
			t.Fatalf("a page of %d over %d partitions took %d rounds, %d requests and %d rows, more than %+v", limit, len(partitions), rounds, requests, read, most)
		}
	}
}

package replay

import "testing"

func fingerprint(target, body string) (uint64, bool) {
	var r fingerprinter
	r.body.WriteString(body)
	return r.fingerprint(target)
}

func TestFingerprintsIgnoreOrder(t *testing.T) {
	const batch = `{"RequestItems":{"t":{"Keys":[{"pk":{"S":"A"},"sk":{"S":"B"}},{"pk":{"S":"C"},"sk":{"S":"D"}}]}}}`
	same := []string{
		batch,
		`{"RequestItems":{"t":{"Keys":[{"sk":{"S":"B"},"pk":{"S":"A"}},{"pk":{"S":"C"},"sk":{"S":"D"}}]}}}`,
		` { "RequestItems" : {"t":{"Keys":[{"pk":{"S":"C"},"sk":{"S":"D"}}, {"sk":{"S":"B"},"pk":{"S":"A"}}]}} } `,
	}
	want, ok := fingerprint("Get", batch)
	if !ok {
		t.Fatal("a valid request has no fingerprint")
	}
	for _, body := range same {
		if got, ok := fingerprint("Get", body); !ok || got != want {
			t.Errorf("%s has a different fingerprint from an equal request (%v)", body, ok)
		}
	}
	var again fingerprinter
	again.body.WriteString(batch)
	if n := testing.AllocsPerRun(100, func() { again.fingerprint("Get") }); n > 0 {
		t.Errorf("a fingerprint makes %v allocations", n)
	}
	seen := map[uint64]string{want: batch}
	for _, body := range []string{
		`{"RequestItems":{"t":{"Keys":[{"pk":{"S":"B"},"sk":{"S":"A"}},{"pk":{"S":"C"},"sk":{"S":"D"}}]}}}`, // pk and sk are swapped
		`{"RequestItems":{"t":{"Keys":[{"pk":{"S":"A"},"sk":{"S":"D"}},{"pk":{"S":"C"},"sk":{"S":"B"}}]}}}`, // sort keys are swapped
		`{"RequestItems":{"t":{"Keys":[{"pk":{"S":"A"},"sk":{"S":"B"}}]}}}`,
		`{"RequestItems":{"t":{"Keys":[{"pk":{"S":"A"},"sk":{"S":"B"}},{"pk":{"S":"A"},"sk":{"S":"B"}}]}}}`,
		`{"RequestItems":{"u":{"Keys":[{"pk":{"S":"A"},"sk":{"S":"B"}},{"pk":{"S":"C"},"sk":{"S":"D"}}]}}}`,
		`{}`, `[]`, `""`, `{"a":[]}`, `{"a":{}}`, `{"a":[[]]}`, `{"Limit":1}`, `{"Limit":"1"}`, `{"Limit":-1}`, `true`, `{"a":"\""}`,
	} {
		got, ok := fingerprint("Get", body)
		if other := seen[got]; !ok || other != "" {
			t.Errorf("%s has the same fingerprint as %s (%v)", body, other, ok)
		}
		seen[got] = body
	}
	if got, _ := fingerprint("Put", batch); got == want {
		t.Error("requests of different operations have the same fingerprint")
	}
	for _, body := range []string{``, `{`, `{"a"}`, `{"a":}`, `{"a":1,}`, `[1,]`, `[1 2]`, `{} {}`, `"`, `"\`, `{1:2}`} {
		if _, ok := fingerprint("Get", body); ok {
			t.Errorf("%s is accepted as JSON", body)
		}
	}
}

package graph

// boundedAnswer is what a walk writes, and all that it ever holds of it: a little more than Limits.Answer.
//
// What is too long cannot just end the walk: a null further up may yet take away what made it so, and the errors behind it are told too. So
// what does not fit is dropped but still measured, and offsets are those in the answer as if it were whole.
type boundedAnswer struct {
	out []byte
	// most is how much of out is kept; dropped is how long what followed it was.
	most, dropped int
}

// answerSlack is how much is written before what does not fit is dropped, so that not each value has to look.
const answerSlack = 64 << 10

// offset is how long the answer is so far.
func (a *boundedAnswer) offset() int { return a.dropped + len(a.out) }

// bound drops what does not fit.
func (a *boundedAnswer) bound() {
	if len(a.out) > a.most+answerSlack {
		a.dropped += len(a.out) - a.most
		a.out = a.out[:a.most]
	}
}

// truncate goes back to an offset. What was dropped behind it is not missed.
func (a *boundedAnswer) truncate(offset int) {
	if a.dropped == 0 {
		a.out = a.out[:offset]
		return
	}
	a.out = a.out[:min(offset, a.most)]
	a.dropped = offset - len(a.out)
}

// isNull tells whether null is all that was written behind an offset. Where something was dropped there is no telling, nor any need: see
// walkTree.answer.
func (a *boundedAnswer) isNull(offset int) bool {
	return a.dropped == 0 && string(a.out[offset:]) == "null"
}

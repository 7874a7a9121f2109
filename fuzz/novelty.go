package fuzz

import (
	"strings"

	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// Traces are told apart by their shape: the kinds, names and outcomes of the
// entries of the normal form, without what messages and results hold. The shape
// is invariant under what the normal form forgives, and costs a small part of it.

const (
	offset64 = 14695981039346656037
	prime64  = 1099511628211
)

type digest uint64

func (d digest) text(s string) digest {
	for i := range len(s) {
		d = (d ^ digest(s[i])) * prime64
	}
	return (d ^ 0xff) * prime64
}

func (d digest) flag(b bool) digest {
	if b {
		return (d ^ 1) * prime64
	}
	return d * prime64
}

func (d digest) mix(o digest) digest { return (d^o)*prime64 ^ (d^o)>>29 }

// shapeOf is the shape of a trace, and scan tells of each entry's token: what it
// is, without ids and numbers.
func shapeOf(t *trace.Trace, scan func(token digest)) uint64 {
	shape := digest(offset64)
	open := digest(0) // of entries of one step that may come in any order
	step := -1
	for i := range t.Entries {
		e := &t.Entries[i]
		if e.Step != step {
			shape, open, step = shape.mix(open), 0, e.Step
		}
		token := tokenOf(e)
		whole := token.text(e.Name).text(e.Label).text(idOf(e))
		if unordered(e) {
			open += whole
		} else {
			shape = shape.mix(open).mix(whole)
			open = 0
		}
		scan(token)
	}
	return uint64(shape.mix(open))
}

// unordered reports whether the normal form may move the entry within its step.
func unordered(e *trace.Entry) bool {
	switch e.Kind {
	case trace.KindCancelled:
		return true
	case trace.KindEvent:
		return e.Event.Type == trace.ToolExecutionUpdate || e.Event.Type == trace.ToolExecutionEnd
	case trace.KindCall:
		return e.Payload != nil && e.Payload.ToolCallID != "" || strings.Contains(e.Name, "/tool_execution_")
	default:
	}
	return false
}

func idOf(e *trace.Entry) string {
	if e.Event == nil {
		return ""
	}
	return e.Event.ToolCallID
}

// tokenOf is what an entry is.
func tokenOf(e *trace.Entry) digest {
	d := digest(offset64).text(string(e.Kind)).text(string(e.Outcome)).flag(e.Aborted)
	switch {
	case e.Kind == trace.KindAction:
		return d.text(wordsOf(e.Label))
	case e.Event == nil:
		return d.text(wordsOf(e.Name)).flag(e.Answer != nil && e.Answer.Throw != nil)
	}
	d = d.text(e.Event.Type).flag(e.Event.IsError != nil && *e.Event.IsError)
	if m := e.Event.Message; m != nil {
		d = d.text(m.Role).text(m.StopReason)
	}
	return d
}

// wordsOf leaves the ids and numbers out of a name or label: what is left is its
// first word and its last, of hooks and listeners also the second or third.
func wordsOf(name string) string {
	parts := strings.SplitN(name, "/", 4)
	switch {
	case len(parts) == 1:
		return name
	case parts[0] == "hook":
		return parts[1]
	case parts[0] == "listener" && len(parts) > 2:
		return parts[2]
	case len(parts) > 2:
		return parts[0] + "/" + parts[2]
	}
	return parts[0]
}

// gramBits is the size of the table of word pairs and triples, as a power of 2.
const gramBits = 18

// novelty remembers what was seen, within bounds.
type novelty struct {
	shapes map[uint64]struct{}
	capped bool
	grams  []uint64 // a bit for each hash of two or three tokens
	corpus []sample
	next   int
}

// sample is a case that showed something new.
type sample struct {
	scenario *harness.Scenario
	schedule []string
}

const (
	maxShapes = 1 << 20
	maxCorpus = 256
)

func newNovelty() *novelty {
	return &novelty{shapes: map[uint64]struct{}{}, grams: make([]uint64, 1<<gramBits/64)}
}

// look is what a trace shows: its shape and the pairs and triples of tokens that
// were not known when it was looked at.
type look struct {
	shape uint64
	grams []uint32
}

// look may be called by several goroutines, but not while something is added.
func (n *novelty) look(t *trace.Trace) look {
	var l look
	var one, two digest
	gram := func(d digest) {
		bit := uint32(d>>20) & (1<<gramBits - 1)
		if n.grams[bit/64]&(1<<(bit%64)) == 0 {
			l.grams = append(l.grams, bit)
		}
	}
	l.shape = shapeOf(t, func(token digest) {
		pair := one.mix(token)
		gram(pair)
		gram(two.mix(pair))
		one, two = token, one
	})
	return l
}

// add takes in what a trace showed and reports whether the case is worth being
// kept, because it has a new pair or triple.
func (n *novelty) add(l look) bool {
	if len(n.shapes) < maxShapes {
		n.shapes[l.shape] = struct{}{}
	} else if _, known := n.shapes[l.shape]; !known {
		n.capped = true
	}
	fresh := false
	for _, bit := range l.grams {
		if n.grams[bit/64]&(1<<(bit%64)) == 0 {
			n.grams[bit/64] |= 1 << (bit % 64)
			fresh = true
		}
	}
	return fresh
}

// keep puts a case among those that are varied; the oldest makes room.
func (n *novelty) keep(s sample) {
	if len(n.corpus) < maxCorpus {
		n.corpus = append(n.corpus, s)
		return
	}
	n.corpus[n.next%maxCorpus] = s
	n.next++
}

// vary draws one of the kept cases and changes its schedule, now and then also its
// scenario. What follows the labels that are left is drawn at random.
func (n *novelty) vary(c Chooser, seed uint64) (*harness.Scenario, harness.Policy) {
	s := n.corpus[c.Choose("case", len(n.corpus))]
	scenario := clone(s.scenario)
	if c.Choose("cut", 4) == 3 {
		all := cuts(scenario)
		all[c.Choose("which", len(all))](scenario)
		tidy(scenario)
	}
	labels := append([]string(nil), s.schedule...)
	for range 1 + c.Choose("changes", 3) {
		labels = change(c, labels)
	}
	replay := harness.NewReplay(labels)
	if c.Choose("then", 2) == 1 {
		replay.Then(harness.NewRandom(seed))
	}
	return scenario, replay
}

// change moves a label, swaps two, drops one, or cuts the tail.
func change(c Chooser, labels []string) []string {
	if len(labels) < 2 {
		return labels
	}
	at := func(what string) int { return c.Choose(what, len(labels)) }
	switch c.Choose("change", 4) {
	case 0:
		i := c.Choose("swap", len(labels)-1)
		labels[i], labels[i+1] = labels[i+1], labels[i]
	case 1:
		from := at("from")
		label := labels[from]
		labels = append(labels[:from], labels[from+1:]...)
		to := at("to")
		labels = append(labels[:to], append([]string{label}, labels[to:]...)...)
	case 2:
		i := at("drop")
		labels = append(labels[:i], labels[i+1:]...)
	case 3:
		labels = labels[:at("keep")]
	}
	return labels
}

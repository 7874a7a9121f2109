package conformance

import (
	"slices"

	"github.com/pi-conform/pi-conform/harness/edition"
	"github.com/pi-conform/pi-conform/harness/trace"
)

// Level says what it means that a rule is broken.
type Level string

// The levels.
const (
	Must   Level = "must"   // the loop does not conform
	Should Level = "should" // reported and counted apart
	Robust Level = "robust" // better than any release of the original loop; reported and counted apart
)

// Family is a group of rules about one thing; it is the first part of their
// ids.
type Family string

// The families, in the order of the catalogue.
const (
	FamilyRun      Family = "RUN"
	FamilyTurn     Family = "TURN"
	FamilyMessage  Family = "MSG"
	FamilyTool     Family = "TOOL"
	FamilyParallel Family = "PAR"
	FamilyUpdate   Family = "UPD"
	FamilyLength   Family = "LEN"
	FamilyAbort    Family = "ABRT"
	FamilyQueue    Family = "QUE"
	FamilyState    Family = "STATE"
	FamilyListener Family = "LIS"
	FamilyContext  Family = "CTX"
	FamilySession  Family = "SESS"
	FamilyView     Family = "VIEW"
)

// Rule is one sentence of the contract and the means to judge it.
type Rule struct {
	ID       string // never changes once released
	Family   Family
	Level    Level
	Sentence string // what must hold
	Why      string // why it matters to a user
	Source   string // where the sentence comes from: K, U, P or R, and the section

	// From and Until bound the editions in which the rule holds: from From,
	// inclusive, to Until, exclusive. Empty means no bound.
	From, Until edition.Edition
	// MustFrom is the edition from which the rule has its Level; in older ones
	// it is robust. Empty means that it has its Level always.
	MustFrom edition.Edition
	// Forms in which the rule can be judged. Nil means all of the loop's own for a
	// rule that looks at events and actions alone, and the awaited ones for any other: in the
	// plain event stream events lag behind callbacks.
	Forms []trace.Form
	Needs []trace.Evidence
	// Edges are the numbers of the edges under which the rule does not apply.
	Edges []int
	// AfterFailure lets the rule apply also to what follows an e2 or e11.
	AfterFailure bool

	check   func(h *history, j *judge)
	compare func(base, twin *history, j *judge)

	ready bounds // what the fields above say, ready to be compared
}

// bounds are a rule's conditions as numbers.
type bounds struct {
	from, until, mustFrom int // orders of editions; 0 means no bound
	needs                 evidenceSet
	tooOld, tooNew        string // reasons
}

// prepare makes the bounds. Every rule of the catalogue is prepared.
func (r *Rule) prepare() {
	order := func(e edition.Edition) int {
		if e == "" {
			return 0
		}
		return e.Order()
	}
	r.ready = bounds{from: order(r.From), until: order(r.Until), mustFrom: order(r.MustFrom)}
	r.ready.tooOld = "edition: holds from " + string(r.From)
	r.ready.tooNew = "edition: holds before " + string(r.Until)
	for _, need := range r.Needs {
		r.ready.needs.add(need)
	}
}

// LevelIn is the rule's level in an edition.
func (r *Rule) LevelIn(e edition.Edition) Level {
	if r.MustFrom != "" && !e.AtLeast(r.MustFrom) {
		return Robust
	}
	return r.Level
}

// NeedsTwin reports whether the rule is judged by [Compare] alone.
func (r *Rule) NeedsTwin() bool { return r.check == nil }

// Finding is one place where a trace breaks a rule. Nothing in it varies
// between two recordings of the same case.
type Finding struct {
	Rule    string
	Level   Level
	Message string
	// Entries are the indices of the entries that clash, in rising order,
	// usually two. The last one is where the violation became evident.
	Entries []int
}

// Position is the index of the entry at which the violation became evident.
func (f *Finding) Position() int {
	if len(f.Entries) == 0 {
		return 0
	}
	return f.Entries[len(f.Entries)-1]
}

// notApplicable says why the rule cannot be applied to a trace; empty if it can.
func (r *Rule) notApplicable(h *history) string {
	switch {
	case h.order < r.ready.from:
		return r.ready.tooOld
	case r.ready.until != 0 && h.order >= r.ready.until:
		return r.ready.tooNew
	case !r.in(h.form):
		return cannotJudge(h.form)
	case h.evidence&r.ready.needs == r.ready.needs:
		return ""
	}
	for _, need := range r.Needs {
		if !h.has(need) {
			return lacking(need)
		}
	}
	return ""
}

// cannotJudge is the reason for a form in which a rule cannot be judged.
func cannotJudge(form trace.Form) string {
	if form == trace.FormAgent {
		return "form: cannot be judged in the form agent" // by far the most common
	}
	return "form: cannot be judged in the form " + string(form)
}

// lacking is the reason for a kind of evidence that a trace does not have.
func lacking(e trace.Evidence) string {
	for i, kind := range evidenceKinds {
		if kind == e {
			return lackingReasons[i]
		}
	}
	return "evidence: the trace has no " + string(e)
}

var lackingReasons = func() (reasons [len(evidenceKinds)]string) {
	for i, kind := range evidenceKinds {
		reasons[i] = "evidence: the trace has no " + string(kind)
	}
	return reasons
}()

func (r *Rule) in(form trace.Form) bool {
	if r.Forms == nil && form == trace.FormAgent {
		return true
	}
	if r.Forms != nil {
		return slices.Contains(r.Forms, form)
	}
	if form == trace.FormSession { // one prompt, many runs
		return false
	}
	return form != trace.FormStream || !slices.ContainsFunc(r.Needs, isOfCallbacks)
}

func isOfCallbacks(e trace.Evidence) bool {
	return e == needC || e == needL || e == needR || e == needPolls || e == needReads
}

// The evidence that a rule may need.
const (
	needE     = trace.EvidenceEvents
	needS     = trace.EvidenceState
	needL     = trace.EvidenceListeners
	needC     = trace.EvidenceCallbacks
	needR     = trace.EvidenceRequests
	needA     = trace.EvidenceActions
	needK     = trace.EvidenceKept
	needV     = trace.EvidenceViews
	needPolls = trace.EvidencePolls
	needReads = trace.EvidenceReads
)

var (
	inAgent    = []trace.Form{trace.FormAgent}
	inAwaited  = []trace.Form{trace.FormAgent, trace.FormLoop}
	inStream   = []trace.Form{trace.FormStream}
	inSession  = []trace.Form{trace.FormSession}
	inAny      = []trace.Form{trace.FormAgent, trace.FormLoop, trace.FormStream, trace.FormSession}
	onFailures = []int{2, 11} // the edges that most rules have
)

type evidence = []trace.Evidence

// judge collects what one rule has to say about one trace.
type judge struct {
	h        *history
	rule     *Rule
	level    Level
	seen     int // occasions on which the rule was exercised
	excused  int // occasions that an edge takes away
	findings []Finding
}

// expect records one occasion to keep the rule. If ok is false the rule is
// broken at the two entries; an entry of none is left out, and one that never
// came stands for the end of the trace.
func (j *judge) expect(ok bool, a, b int, message string) {
	if ok && len(j.h.failed) == 0 {
		j.seen++ // nearly always
		return
	}
	j.weigh(ok, a, b, message)
}

func (j *judge) weigh(ok bool, a, b int, message string) {
	last := len(j.h.entries) - 1
	a, b = min(a, last), min(b, last)
	if !j.rule.AfterFailure && j.h.off(max(a, b)) {
		j.excused++
		return
	}
	j.seen++
	if !ok {
		j.fail(a, b, message)
	}
}

func (j *judge) fail(a, b int, message string) {
	if a > b {
		a, b = b, a
	}
	var entries []int
	if a >= 0 && a != b {
		entries = append(entries, a)
	}
	if b >= 0 {
		entries = append(entries, b)
	}
	j.findings = append(j.findings, Finding{Rule: j.rule.ID, Level: j.level, Message: message, Entries: entries})
}

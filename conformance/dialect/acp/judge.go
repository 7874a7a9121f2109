package acp

import (
	"fmt"
	"slices"

	"github.com/pi-conform/pi-conform/conformance"
)

// Judge reads a log line by line. What it keeps is bounded by the requests that
// are open and by the calls of each session.
type Judge struct {
	Findings []Finding
	Notes    []string

	profile  Profile
	seen     map[string]int
	broken   map[string]bool
	messages int

	both     bool   // the client's side is there
	whole    bool   // the log begins with initialize
	version  string // of the protocol, where it is not 1
	asked    *capabilities
	requests [3]map[string]*request // by who asked
	answered [3]map[string]int      // by who asked: line of the answer
	sessions map[string]*session
	kinds    map[string]bool // of updates, that no version knows
}

// capabilities are what the client said that it can do.
type capabilities struct{ read, write, terminal bool }

type request struct {
	method, session, call string
	line                  int
}

// New gives a judge of one log.
func New(p Profile) *Judge {
	j := &Judge{profile: p, seen: map[string]int{}, broken: map[string]bool{}, sessions: map[string]*session{}, kinds: map[string]bool{}}
	for i := range j.requests {
		j.requests[i], j.answered[i] = map[string]*request{}, map[string]int{}
	}
	return j
}

// expect records one occasion to keep a rule, which is broken if ok is false.
func (j *Judge) expect(ok bool, rule, message string, lines ...int) {
	j.expectAt(ok, "", rule, message, lines...)
}

// expectAt is expect with a level of its own, if that is not empty.
func (j *Judge) expectAt(ok bool, level conformance.Level, rule, message string, lines ...int) {
	j.seen[rule]++
	if ok {
		return
	}
	j.broken[rule] = true
	if level == "" {
		level = j.profile.level(ruleOf(rule))
	}
	lines = slices.DeleteFunc(lines, func(n int) bool { return n == 0 })
	slices.Sort(lines)
	j.Findings = append(j.Findings, Finding{Rule: rule, Level: level, Message: message, Lines: slices.Compact(lines)})
}

func ruleOf(id string) *Rule {
	return &rules[slices.IndexFunc(rules[:], func(r Rule) bool { return r.ID == id })]
}

// Line takes in one line of the log. A line that is no message breaks a rule.
func (j *Judge) Line(n int, line []byte) {
	if j.version != "" {
		return
	}
	m, err := parse(line)
	if err != nil {
		j.expect(false, "ACP-1", "no JSON-RPC object: "+err.Error(), n)
		return
	}
	first := j.messages == 0
	j.messages++
	if why := malformed(&m); why != "" {
		j.expect(false, "ACP-1", why, n)
		return
	}
	if first {
		j.whole = string(m.method) == "initialize"
	}
	j.both = j.both || m.from == client
	switch {
	case m.isRequest():
		j.request(n, &m)
	case m.isResponse():
		j.response(n, &m)
	default:
		j.notification(n, &m)
	}
}

func malformed(m *message) string {
	switch {
	case m.version != "2.0":
		return `the message has no "jsonrpc": "2.0"`
	case m.method != nil && (m.result != nil || m.error != nil):
		return "a message is a call and an answer at once"
	case m.method == nil && m.id == nil:
		return "a message has neither method nor id"
	case m.method == nil && m.result == nil && m.error == nil:
		return "an answer has neither result nor error"
	case m.method == nil && m.result != nil && m.error != nil:
		return "an answer has both result and error"
	}
	return ""
}

func (j *Judge) request(n int, m *message) {
	from := m.from
	open := j.requests[from][string(m.id)]
	r := &request{method: string(m.method), session: text(m.params, "sessionId"), line: n}
	if open != nil {
		j.expect(false, "ACP-1", "an id is used again before it was answered", open.line, n)
	}
	j.requests[from][string(m.id)] = r
	delete(j.answered[from], string(m.id))
	switch r.method {
	case "initialize":
		j.capabilities(m.params)
	case "session/load":
		j.session(r.session).load(r)
	case "session/prompt":
		j.session(r.session).begin(r)
	case "session/request_permission":
		r.call = text(m.params, "toolCall", "toolCallId")
		j.permission(n, r)
	default:
		j.service(n, r, m.params)
	}
}

func (j *Judge) capabilities(params []byte) {
	is := func(path ...string) bool {
		return string(member(params, append([]string{"clientCapabilities"}, path...)...)) == "true"
	}
	j.asked = &capabilities{read: is("fs", "readTextFile"), write: is("fs", "writeTextFile"), terminal: is("terminal")}
}

// service looks at what an agent asks of its client's files and terminals.
func (j *Judge) service(n int, r *request, params []byte) {
	if j.asked == nil {
		return
	}
	can := true
	switch r.method {
	case "fs/read_text_file":
		can = j.asked.read
	case "fs/write_text_file":
		can = j.asked.write
	case "terminal/create", "terminal/output", "terminal/release", "terminal/wait_for_exit", "terminal/kill":
		can = j.asked.terminal
	default:
		return
	}
	j.expect(can, "ACP-9", r.method+" without the client's capability", n)
	if path := member(params, "path"); path != nil {
		j.expectAbsolute(n, text(params, "path"))
	}
}

// find gives the request that an answer belongs to.
func (j *Judge) find(m *message) (from side, r *request) {
	if m.from != unknown {
		return m.from.other(), j.requests[m.from.other()][string(m.id)]
	}
	asked, called := j.requests[client][string(m.id)], j.requests[agent][string(m.id)]
	switch {
	case called != nil && (asked == nil || fits(called.method, m.result)):
		return agent, called
	case asked != nil:
		return client, asked
	}
	if r := j.requests[unknown][string(m.id)]; r != nil {
		return unknown, r
	}
	return client, nil
}

// fits reports whether a result can be that of a method which the agent calls.
func fits(method string, result []byte) bool {
	names := map[string]string{
		"session/request_permission": "outcome", "fs/read_text_file": "content", "terminal/create": "terminalId", "terminal/output": "output",
	}
	name, ok := names[method]
	return !ok || member(result, name) != nil
}

func (j *Judge) response(n int, m *message) {
	from, r := j.find(m)
	id := string(m.id)
	if before := j.answered[from][id]; r == nil && before > 0 {
		j.expect(false, "ACP-1", "a request is answered twice", before, n)
		return
	}
	if r == nil {
		if j.both && j.whole {
			j.expect(false, "ACP-1", "an answer to a request that was never made", n)
		}
		j.guessed(n, m)
		return
	}
	j.expect(true, "ACP-1", "")
	delete(j.requests[from], id)
	j.remember(from, id, n)
	switch r.method {
	case "initialize":
		j.initialized(m)
	case "session/new", "session/fork":
		j.create(n, m)
	case "session/load":
		j.loaded(n, r, m)
	case "session/prompt":
		j.prompted(n, r, m)
	case "session/request_permission":
		j.permitted(r)
	}
}

// remember keeps which requests were answered, as many as are likely to be
// answered again.
func (j *Judge) remember(from side, id string, n int) {
	const most = 4096
	if len(j.answered[from]) >= most {
		clear(j.answered[from])
	}
	j.answered[from][id] = n
}

// guessed takes in an answer whose request the log does not show, by what it
// looks like.
func (j *Judge) guessed(n int, m *message) {
	switch {
	case member(m.result, "protocolVersion") != nil:
		j.initialized(m)
	case member(m.result, "sessionId") != nil:
		j.create(n, m)
	case member(m.result, "stopReason") != nil && len(j.sessions) == 1 && !j.both:
		for id, s := range j.sessions {
			j.prompted(n, &request{session: id, line: s.turn}, m)
		}
	}
}

func (j *Judge) initialized(m *message) {
	if version := member(m.result, "protocolVersion"); version != nil && string(version) != "1" {
		j.version = string(version)
		j.Findings = nil
	}
}

func (j *Judge) notification(n int, m *message) {
	switch string(m.method) {
	case "session/cancel":
		j.session(text(m.params, "sessionId")).cancel(n)
	case "session/update":
		j.update(n, text(m.params, "sessionId"), member(m.params, "update"))
	}
}

// End says that the log holds no more.
func (j *Judge) End() {
	var open []string
	for _, requests := range j.requests {
		for id, r := range requests {
			open = append(open, fmt.Sprintf("line %d: %s (id %s) is not answered in this log", r.line, r.method, id))
		}
	}
	slices.Sort(open)
	j.Notes = append(j.Notes, open[:min(len(open), 10)]...)
	for kind := range j.kinds {
		j.Notes = append(j.Notes, "an update of the unknown kind "+kind+" was kept and not judged")
	}
	switch {
	case j.version != "":
		j.Notes = []string{"the log is of version " + j.version + " of the protocol, which is not covered"}
	case !j.both && j.messages > 0:
		j.Notes = append(j.Notes, "the log holds only the agent's side")
	case !j.whole && j.messages > 0:
		j.Notes = append(j.Notes, "the log does not begin with initialize: what came before is not known")
	}
}

// needClient are the rules that the agent's side alone cannot show.
var needClient = map[string]bool{"ACP-6": true, "ACP-7": true, "ACP-12": true}

// Results are what the log says about each rule.
func (j *Judge) Results() []conformance.RuleResult {
	results := make([]conformance.RuleResult, len(rules))
	for i := range rules {
		r := &rules[i]
		result := conformance.RuleResult{Rule: r.ID, Level: j.profile.level(r), Exercised: j.seen[r.ID]}
		switch {
		case j.version != "":
			result.Status, result.Reason, result.Exercised = conformance.StatusNotApplicable, "edition: version "+j.version+" of the protocol is not covered", 0
		case j.broken[r.ID]:
			result.Status = conformance.StatusFail
		case result.Exercised > 0:
			result.Status = conformance.StatusPass
		case needClient[r.ID] && !j.both:
			result.Status, result.Reason = conformance.StatusNotApplicable, "evidence: the log holds only the agent's side"
		default:
			result.Status = conformance.StatusNotExercised
		}
		results[i] = result
	}
	return results
}

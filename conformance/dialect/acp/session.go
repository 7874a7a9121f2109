package acp

import (
	"hash/maphash"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pi-conform/pi-conform/conformance"
)

// session is what the log has shown of one session.
type session struct {
	known   int      // line of the response that created or loaded it, or of the load request; 0 if none
	loading *request // it is being loaded
	loaded  int      // line of the load response, until the first prompt after it
	prompt  *request // that is not answered
	turn    int      // line of the last prompt
	over    int      // line of the last prompt's response; 0 while there is none
	asked   int      // line at which the prompt was cancelled, or 0
	stopped int      // the last prompt was cancelled and answered so, at that line; or 0
	cards   map[string]*card
	replay  map[string]*card
}

// card is one tool call, as a client shows it.
type card struct {
	line     int // of its tool_call, or of the first update if it has none
	turn     int // prompt during which it was announced
	orphan   bool
	rank     int // of its status
	terminal int // line at which it ended, or 0
	updates  int
	asking   *request          // for permission, not answered
	members  map[string]uint64 // as its tool_call and its end made them
}

func (j *Judge) session(id string) *session {
	s := j.sessions[id]
	if s == nil {
		s = &session{cards: map[string]*card{}}
		j.sessions[id] = s
	}
	return s
}

func (j *Judge) create(n int, m *message) {
	id := text(m.result, "sessionId")
	if id == "" {
		return
	}
	if s := j.sessions[id]; s == nil || s.known == 0 {
		j.expect(true, "ACP-8", "")
	}
	j.session(id).known = n
}

func (s *session) load(r *request) {
	s.loading, s.replay, s.loaded = r, map[string]*card{}, 0
	if s.known == 0 {
		s.known = r.line
	}
}

func (s *session) begin(r *request) {
	s.prompt, s.turn, s.over, s.asked, s.stopped, s.loaded = r, r.line, 0, 0, 0, 0
}

func (s *session) cancel(n int) {
	if s.prompt != nil {
		s.asked = n
	}
}

// turnContent are the kinds of updates that belong to a turn.
var turnContent = map[string]bool{
	"user_message_chunk": true, "agent_message_chunk": true, "agent_thought_chunk": true, "tool_call": true, "tool_call_update": true, "plan": true,
}

// otherContent are the other kinds that are known.
var otherContent = map[string]bool{
	"available_commands_update": true, "current_mode_update": true, "config_option_update": true, "session_info_update": true, "usage_update": true,
}

func (j *Judge) update(n int, id string, update []byte) {
	if j.whole && j.both {
		s := j.sessions[id]
		j.expect(s != nil && s.known > 0, "ACP-8", "an update for a session that is not known yet", n)
	}
	s := j.session(id)
	kind := text(update, "sessionUpdate")
	if !turnContent[kind] {
		if !otherContent[kind] {
			j.kinds[kind] = true
		}
		return
	}
	if s.turn == 0 {
		s.turn = n
	}
	if s.loading == nil && s.prompt == nil && j.both {
		j.late(n, s)
	}
	switch kind {
	case "tool_call":
		j.announced(n, s, update)
	case "tool_call_update":
		j.changed(n, id, s, update)
	}
}

// late is for content of a turn that comes while there is no turn.
func (j *Judge) late(n int, s *session) {
	switch {
	case s.loaded > 0:
		j.expect(false, "ACP-8", "a replay goes on after the response to session/load", s.loaded, n)
	case s.stopped > 0:
		j.expect(false, "ACP-6", "an update of a turn that was cancelled and answered", s.stopped, n)
	case s.over > 0:
		j.expect(false, "ACP-7", "content of a turn after its response", s.over, n)
	}
}

// shown are the cards that an update belongs to.
func (s *session) shown() map[string]*card {
	if s.loading != nil {
		return s.replay
	}
	return s.cards
}

func (j *Judge) announced(n int, s *session, update []byte) {
	name := text(update, "toolCallId")
	if c := s.shown()[name]; c != nil {
		switch {
		case c.orphan:
		case c.terminal == 0:
			j.expect(false, "ACP-5", "a call is announced twice", c.line, n)
		case c.turn == s.turn && j.both:
			j.expect(false, "ACP-3", "a call is announced again after its end", c.terminal, n)
		}
	}
	c := &card{line: n, turn: s.turn, members: map[string]uint64{}}
	s.shown()[name] = c
	j.expect(true, "ACP-5", "")
	c.fold(update)
	j.status(n, c, text(update, "status"))
	if s.loading != nil {
		c.terminal = 0 // a replayed call says at once how it ended, and its update says it again
	}
	j.paths(n, update)
}

func (j *Judge) changed(n int, id string, s *session, update []byte) {
	name, status := text(update, "toolCallId"), text(update, "status")
	c := s.shown()[name]
	elsewhere := j.liveElsewhere(id, name)
	j.expect(c != nil, "ACP-2", "an update of a call that was not announced in this session", n)
	if c == nil {
		if elsewhere != nil {
			j.expect(false, "ACP-11", "an update of a call that was announced in another session", elsewhere.line, n)
		}
		c = &card{line: n, turn: s.turn, orphan: true, members: map[string]uint64{}}
		s.shown()[name] = c
	} else if elsewhere != nil {
		j.expect(c.terminal == 0, "ACP-11", "an update of a call that has ended here and runs in another session", c.terminal, elsewhere.line, n)
	}
	c.updates++
	if s.loading == nil {
		j.expect(c.terminal == 0, "ACP-3", "an update of a call that has ended", c.terminal, n)
	}
	if c.terminal > 0 {
		return
	}
	if c.asking != nil {
		j.expect(status != "in_progress", "ACP-10", "a call is in progress before its permission was answered", c.asking.line, n)
	}
	if s.loading != nil {
		j.expect(isTerminal(status), "ACP-12", "a replay holds an update that does not end its call", c.line, n)
	}
	if isTerminal(status) {
		c.fold(update)
	}
	j.status(n, c, status)
	j.paths(n, update)
}

// liveElsewhere is a call of the same id that runs in another session, if there
// is one.
func (j *Judge) liveElsewhere(session, id string) *card {
	for other, s := range j.sessions {
		if c := s.cards[id]; other != session && c != nil && c.terminal == 0 && !c.orphan {
			return c
		}
	}
	return nil
}

var ranks = map[string]int{"pending": 1, "in_progress": 2, "completed": 3, "failed": 3}

func isTerminal(status string) bool { return ranks[status] == 3 }

func (j *Judge) status(n int, c *card, status string) {
	rank := ranks[status]
	if rank == 0 {
		return
	}
	j.expect(rank >= c.rank, "ACP-5", "the status of a call goes back", c.line, n)
	c.rank = rank
	if isTerminal(status) {
		c.terminal = n
	}
}

// folded are the members of which a client makes a card.
var folded = []string{"title", "kind", "status", "content", "locations", "rawInput", "rawOutput"}

var seed = maphash.MakeSeed()

// fold takes in what an update says. What is absent stays.
func (c *card) fold(update []byte) {
	for _, name := range folded {
		raw := member(update, name)
		if raw == nil {
			continue
		}
		value := jsontext.Value(raw).Clone()
		if value.Canonicalize() != nil {
			value = raw
		}
		c.members[name] = maphash.Bytes(seed, value)
	}
}

func (j *Judge) paths(n int, update []byte) {
	for _, item := range elements(member(update, "content")) {
		if text(item, "type") == "diff" {
			j.expectAbsolute(n, text(item, "path"))
		}
	}
	for _, place := range elements(member(update, "locations")) {
		j.expectAbsolute(n, text(place, "path"))
	}
}

var drive = regexp.MustCompile(`^[A-Za-z]:[\\/]`)

func (j *Judge) expectAbsolute(n int, name string) {
	ok := path.IsAbs(name) || drive.MatchString(name) || strings.HasPrefix(name, `\\`)
	j.expect(ok, "ACP-9", "a path is not absolute", n)
}

func (j *Judge) permission(n int, r *request) {
	c := j.session(r.session).cards[r.call]
	announced := c != nil && !c.orphan && c.terminal == 0
	j.expect(announced, "ACP-10", "permission is asked for a call that is not announced and live", n)
	if !announced {
		return
	}
	j.expect(c.rank < ranks["in_progress"], "ACP-10", "permission is asked for a call that is in progress already", c.line, n)
	if j.both {
		c.asking = r
	}
}

func (j *Judge) permitted(r *request) {
	if c := j.session(r.session).cards[r.call]; c != nil && c.asking == r {
		c.asking = nil
	}
}

func (j *Judge) prompted(n int, r *request, m *message) {
	s := j.session(r.session)
	stop := text(m.result, "stopReason")
	j.expectEnded(n, s, r, stop)
	if s.asked > 0 {
		j.expect(stop == "cancelled", "ACP-6", "a cancelled prompt is not answered with stopReason cancelled", s.asked, n)
	}
	s.prompt, s.over, s.stopped = nil, n, 0
	if s.asked > 0 || stop == "cancelled" {
		s.stopped = n
	}
	if j.both && stop != "cancelled" {
		j.expect(true, "ACP-7", "")
	}
}

// expectEnded expects that every call of a prompt has ended at its response.
func (j *Judge) expectEnded(n int, s *session, r *request, stop string) {
	var level conformance.Level
	if stop == "cancelled" && j.profile == Spec {
		level = conformance.Robust // for information
	}
	var open []int
	for name, c := range s.cards {
		if c.orphan || c.turn != r.line && j.both {
			continue
		}
		if c.terminal > 0 {
			j.expect(true, "ACP-4", "")
			continue
		}
		open = append(open, c.line)
		if !j.both {
			delete(s.cards, name)
		}
	}
	slices.Sort(open)
	for _, line := range open {
		j.expectAt(false, level, "ACP-4", "a call has not ended when its prompt is answered", line, n)
	}
}

func (j *Judge) loaded(n int, r *request, m *message) {
	s := j.session(r.session)
	s.loading = nil
	if m.error != nil {
		return
	}
	s.loaded = n
	j.expect(true, "ACP-8", "")
	for _, name := range sorted(s.replay) {
		c := s.replay[name]
		j.expect(!c.orphan && c.terminal > 0 && c.updates == 1, "ACP-12", "a replayed call is not one tool_call and one update that ends it", c.line, n)
		live := s.cards[name]
		if live != nil && live.terminal > 0 && !live.orphan {
			j.expect(sameCard(live, c), "ACP-12", "a replayed call folds to another card than the live one", live.terminal, c.line)
		}
	}
	for _, name := range sorted(s.cards) {
		if live := s.cards[name]; live.terminal > 0 && !live.orphan && s.replay[name] == nil {
			j.expect(false, "ACP-12", "a call is missing in the replay", live.line, n)
		}
	}
	for name, c := range s.replay {
		if s.cards[name] == nil {
			s.cards[name] = c
		}
	}
	s.replay = nil
}

func sorted(cards map[string]*card) []string {
	names := make([]string, 0, len(cards))
	for name := range cards {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func sameCard(a, b *card) bool {
	for _, name := range folded {
		if a.members[name] != b.members[name] {
			return false
		}
	}
	return true
}

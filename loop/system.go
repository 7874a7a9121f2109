package loop

import (
	"bytes"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// From edition 0.86 the transcript itself says what the system prompt is and
// which tools the model may call: system messages add to the prompt, and their
// toolsAdded and toolsRemoved change the tools. What the loop can execute still
// stands in the context; before each request the difference is declared.

// toolChanges are the members of a system message that change the tools.
type toolChanges struct {
	Added   []toolDeclaration `json:"toolsAdded,omitempty"`
	Removed []toolName        `json:"toolsRemoved,omitempty"`
}

// toolDeclaration is a tool as the transcript describes it.
type toolDeclaration struct {
	Name        string      `json:"name"`
	Description string      `json:"description"`
	Parameters  trace.Value `json:"parameters,omitzero"`
}

type toolName struct {
	Name string `json:"name"`
}

func (c toolChanges) none() bool { return len(c.Added) == 0 && len(c.Removed) == 0 }

func declarationOf(t *Tool) toolDeclaration {
	return toolDeclaration{Name: t.Name, Description: t.Description, Parameters: t.Parameters}
}

func (d toolDeclaration) equal(other toolDeclaration) bool {
	return d.Name == other.Name && d.Description == other.Description && sameJSON(d.Parameters, other.Parameters)
}

func sameJSON(a, b trace.Value) bool {
	if bytes.Equal(a, b) {
		return true
	}
	a, b = slices.Clone(a), slices.Clone(b)
	return a.Compact() == nil && b.Compact() == nil && bytes.Equal(a, b)
}

// initialSystemMessage is the message that opens a transcript, or nil if it would
// say nothing.
func initialSystemMessage(prompt string, tools []*Tool) *trace.Message {
	if prompt == "" && len(tools) == 0 {
		return nil
	}
	var changes toolChanges
	for _, t := range tools {
		changes.Added = append(changes.Added, declarationOf(t))
	}
	return withToolChanges(&trace.Message{Role: trace.RoleSystem, Content: plain(prompt)}, changes)
}

func plain(text string) trace.Content { return trace.Content{Text: text, IsText: true} }

// withToolChanges is the message with its changes of tools replaced.
func withToolChanges(m *trace.Message, changes toolChanges) *trace.Message {
	changed := *m
	changed.Extra = withoutMember(withoutMember(m.Extra, "toolsAdded"), "toolsRemoved")
	if len(changes.Added) > 0 {
		changed.Extra = withMember(changed.Extra, "toolsAdded", encoded(changes.Added))
	}
	if len(changes.Removed) > 0 {
		changed.Extra = withMember(changed.Extra, "toolsRemoved", encoded(changes.Removed))
	}
	return &changed
}

func encoded(v any) trace.Value {
	b, err := json.Marshal(v)
	if err != nil {
		return trace.Value("[]") // a tool whose schema is no JSON fails when it is called
	}
	return b
}

// systemPrompt is what all system messages together say.
func systemPrompt(messages []*trace.Message) string {
	var parts []string
	for _, m := range messages {
		if m.Role != trace.RoleSystem {
			continue
		}
		if text := m.Content.PlainText(); text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "\n\n")
}

// foldedSystemMessage says in one message what all system messages together
// say; nil if there are none.
func foldedSystemMessage(messages []*trace.Message) *trace.Message {
	first := slices.IndexFunc(messages, isSystem)
	if first < 0 {
		return nil
	}
	folded := &trace.Message{
		Role: trace.RoleSystem, Content: plain(systemPrompt(messages)), Timestamp: messages[first].Timestamp,
	}
	return withToolChanges(folded, toolChanges{Added: declarations{}.tools(messages)})
}

func isSystem(m *trace.Message) bool { return m.Role == trace.RoleSystem }

// declarations remembers what system messages were read to say. Messages never
// change, so each is read once.
type declarations map[*trace.Message]toolChanges

func (d declarations) of(m *trace.Message) toolChanges {
	changes, known := d[m]
	if !known && m.Extra != nil {
		_ = json.Unmarshal(m.Extra, &changes) // what is not well formed declares nothing
		d[m] = changes
	}
	return changes
}

// tools are those that the messages declare, in the order of declaration.
func (d declarations) tools(messages []*trace.Message) (tools []toolDeclaration) {
	for _, m := range messages {
		if m.Role != trace.RoleSystem {
			continue
		}
		changes := d.of(m)
		for _, gone := range changes.Removed {
			tools = slices.DeleteFunc(tools, func(t toolDeclaration) bool { return t.Name == gone.Name })
		}
		for _, added := range changes.Added {
			if i := indexOf(tools, added.Name); i >= 0 {
				tools[i] = added
			} else {
				tools = append(tools, added)
			}
		}
	}
	return tools
}

func indexOf(tools []toolDeclaration, name string) int {
	return slices.IndexFunc(tools, func(t toolDeclaration) bool { return t.Name == name })
}

// executable are those tools that the messages declare.
func (d declarations) executable(messages []*trace.Message, tools []*Tool) (declared []*Tool) {
	for _, want := range d.tools(messages) {
		i := slices.IndexFunc(tools, func(t *Tool) bool { return t.Name == want.Name })
		if i >= 0 {
			declared = append(declared, tools[i])
		}
	}
	return declared
}

// changesTo are the changes that make declared tools the current ones. A tool
// that is described differently goes and comes.
func changesTo(current []*Tool, declared []toolDeclaration) (changes toolChanges) {
	for _, tool := range current {
		i := indexOf(declared, tool.Name)
		if i < 0 || !declared[i].equal(declarationOf(tool)) {
			changes.Added = append(changes.Added, declarationOf(tool))
		}
	}
	for _, d := range declared {
		i := slices.IndexFunc(current, func(t *Tool) bool { return t.Name == d.Name })
		if i < 0 || !d.equal(declarationOf(current[i])) {
			changes.Removed = append(changes.Removed, toolName{Name: d.Name})
		}
	}
	return changes
}

// declareTools makes the messages that are about to join the transcript declare
// how the tools have changed: the last system message among them does, or else a
// new one before the first message of another role.
func (r *run) declareTools(pending []*trace.Message) []*trace.Message {
	if !r.is.systemMessages {
		return pending
	}
	if r.told == nil {
		r.told = declarations{}
	}
	at := lastSystem(pending)
	baseline := pending
	if at >= 0 {
		baseline = slices.Clone(pending)
		baseline[at] = withToolChanges(pending[at], toolChanges{})
	}
	changes := changesTo(r.context.Tools, r.told.tools(joined(r.context.Messages, baseline)))
	switch {
	case at >= 0 && changes.none() && r.told.of(pending[at]).none(), at < 0 && changes.none():
		return pending
	case at >= 0:
		baseline[at] = withToolChanges(pending[at], changes)
		return baseline
	}
	update := &trace.Message{Role: trace.RoleSystem, Content: plain(""), Timestamp: r.rt.Now().UnixMilli()}
	first := slices.IndexFunc(pending, func(m *trace.Message) bool { return !isSystem(m) })
	if first < 0 {
		first = len(pending)
	}
	return slices.Insert(slices.Clone(pending), first, withToolChanges(update, changes))
}

func lastSystem(messages []*trace.Message) int {
	for i := len(messages) - 1; i >= 0; i-- {
		if isSystem(messages[i]) {
			return i
		}
	}
	return -1
}

package protocol

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// lines are written by a subject, or could be. Each is read in forms that differ in
// what the memory looks away from.
var linesToRemember = []string{
	`{"type":"ok","re":%[1]d}`,
	`{"type":"ok","re":0%[1]d}`,
	`{"type":"ok","re":-%[1]d}`,
	`{"type":"ok","re":%[1]d.5}`,
	`{"type":"ok","session":"s%[1]d"}`,
	`{"type":"ok","re":%[1]d,"re":%[1]d}`,
	`{"type":"synced","re":%[1]d,"idle":false,"waitingOn":["tool/c1"],"events":10}`,
	`{"re":%[1]d,"type":"ok"}`,
	`{"type":"event","session":"s%[1]d","n":3,"event":{"type":"agent_start"}}`,
	`{"type":"event","session":"s%[1]d","n":3,"event":{"type":"agent_start"}`,
	`{"type":"event","session":"s%[1]d","session":"s","n":3,"event":{"type":"agent_start"}}`,
	`{"type":"event","session":"\u0073%[1]d","n":3,"event":{"type":"agent_start"}}`,
	`{"type":"event","session":"","n":3,"event":{"type":"agent_start","timestamp":%[1]d}}`,
	`{"type":"event","session":"s","event":{"type":"agent_start"}}`,
	`{"type":"event","session":"s","n":1,"event":{"type":"message_end","message":{"role":"user","content":"go","timestamp":%[1]d}}}`,
	`{"type":"event","session":"s","n":1,"event":{"type":"message_end","message":{"timestamp":%[1]d,"role":"user","content":",\"timestamp\":%[1]d,"}}}`,
	`{"type":"event","session":"s","n":1,"event":{"type":"message_end","message":{"role":"user","timestamp":0}}}`,
	`{"type":"event","session":"s","n":1,"event":{"type":"message_end","message":{"role":"user","timestamp":-%[1]d,"details":{"timestamp":%[1]d}}}}`,
	`{"type":"event","session":"s","n":1,"event":{"type":"message_end","message":{"role":"user","timestamp":%[1]de2}}}`,
	`{"type":"event","session":"s","n":1,"event":{"type":"message_end","message":{"role":"user","timestamp":0%[1]d}}}`,
	`{"type":"event","session":"s","n":1,"event":{"type":"message_end","message":{"role":"user","timestamp":%[1]d99999999999999999999}}}`,
	`{"type":"event","session":"s","n":1,"event":{"type":"message_end","message":{"role":"user","timestamp":%[1]d,"timestamp":%[1]d}}}`,
	`{"type":"event","session":"s","n":1,"event":{"type":"agent_end","messages":[{"role":"user","timestamp":%[1]d},{"role":"user"},{"role":"user","timestamp":2%[1]d}]}}`,
	`{"type":"event","session":"s","n":1,"event":{"toolResults":[{"role":"toolResult","timestamp":%[1]d}],"message":{"role":"assistant","timestamp":2%[1]d},"type":"turn_end"}}`,
	`{"type":"event","session":"s","n":1,"event":{"type":"message_update","assistantMessageEvent":{"type":"start","partial":{"role":"assistant","timestamp":%[1]d}}}}`,
	`{"type":"call","session":"s","name":"hook/getSteeringMessages/0","payload":{},"auto":true,"answer":{"messages":[{"role":"user","timestamp":%[1]d}]}}`,
	`{"type":"retained","session":"s","changed":[{"timestamp":%[1]d}]}`,
	`{"type":"x%[1]d`,
	`{"type":"`,
	``,
	`[]`,
}

// TestAMemoryChangesNothing: a line comes to the same, or to the same error, whether
// one that is like it was read before or not.
func TestAMemoryChangesNothing(t *testing.T) {
	m := &memory{}
	for _, form := range linesToRemember {
		for _, n := range []int{7, 7, 1, 1234, 0} {
			text := form
			if strings.Contains(form, "%") {
				text = fmt.Sprintf(form, n)
			}
			line := Line{Number: n, Offset: int64(n), Bytes: []byte(text)}
			want, fault := DecodeReply(line)
			got, err := m.decode(line)
			if !reflect.DeepEqual(fault, err) {
				t.Errorf("%s: the error is %v, without memory %v", text, err, fault)
			}
			if err != nil || fault != nil {
				continue
			}
			whole := *got.Reply
			whole.Re, whole.Session, whole.Event, whole.line, whole.offset = got.Re, got.Session, got.Event, got.line, got.offset
			if !reflect.DeepEqual(&whole, want) {
				t.Errorf("%s comes to %+v, without memory to %+v", text, whole, want)
			}
		}
	}
	if len(m.known) < 8 {
		t.Errorf("only %d lines are remembered", len(m.known))
	}
}

// TestAMemoryIsBounded: whatever a subject writes, it does not grow for ever.
func TestAMemoryIsBounded(t *testing.T) {
	m := &memory{}
	filler := strings.Repeat("x", 30<<10)
	for i := range 1000 {
		text := fmt.Sprintf(`{"type":"log","session":"s","text":"%d %s"}`, i, filler)
		if _, err := m.decode(Line{Bytes: []byte(text)}); err != nil {
			t.Fatal(err)
		}
		if m.bytes > maxMemory || len(m.known) > maxMemory/len(filler) {
			t.Fatalf("%d lines of %d bytes are remembered", len(m.known), m.bytes)
		}
	}
}

package harness_test

import (
	"reflect"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/pi-conform/pi-conform/harness"
	"github.com/pi-conform/pi-conform/harness/trace"
	"github.com/pi-conform/pi-conform/scriptedmodel"
)

func TestAScriptSurvivesTheWayToASubject(t *testing.T) {
	oops := "oops"
	sc := &harness.Scenario{
		Model: []scriptedmodel.Turn{
			{Text: "look", Calls: []scriptedmodel.Call{{ID: "c1", Name: "read"}}, Stream: scriptedmodel.StreamDeltas},
			{Gate: true, Text: "more"},
			{End: scriptedmodel.EndSilent, Result: "other"},
			{End: scriptedmodel.EndRefuses, Throw: "no"},
			{Stream: scriptedmodel.StreamBare, End: scriptedmodel.EndStalls},
		},
		Calls: map[string]harness.ToolScript{
			"c1":   {Sync: []*trace.Result{{Content: trace.TextContent("half")}}},
			"c1~1": {Throw: &oops, Abort: true},
			"c2":   {Gate: true},
		},
		Hooks: map[string]harness.HookScript{
			trace.HookBeforeToolCall:   {Answers: map[string]harness.HookReply{"c1": {Throw: &oops}}, Else: harness.HookReply{Value: trace.HookAnswer{Block: true}}},
			trace.HookTransformContext: {Gate: true},
		},
	}
	sc.Complete()
	script := harness.ScriptOf(sc)
	if got := script.Tools["c1"].Result.Content.PlainText(); got != "rc1" {
		t.Errorf("c1 returns %q", got)
	}
	if !script.Hooks[trace.HookTransformContext].Gate {
		t.Error("a gated hook is not marked")
	}
	sent, err := json.Marshal(script, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	var received harness.Script
	if err := json.Unmarshal(sent, &received); err != nil {
		t.Fatal(err)
	}
	var there harness.Scenario
	received.Surround(&there)
	there.Complete()
	again, err := json.Marshal(harness.ScriptOf(&there), json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(sent, again) {
		t.Errorf("sent  %s\nagain %s", sent, again)
	}
}

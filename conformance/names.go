package conformance

import (
	"strconv"
	"strings"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// callbackKind is what a callback is for.
type callbackKind uint8

const (
	callOther callbackKind = iota
	callModel
	callTool
	callListener
	callPrepareArguments
	callBefore
	callAfter
	callTransform
	callConvert
	callKey
	callPrepareNext
	callShouldStop
	callFinishTurn
	callPrepareRequest
	callSteering
	callFollowUp
)

// isHook reports whether the callback is a hook or a poll of a queue.
func (k callbackKind) isHook() bool { return k >= callPrepareArguments }

// isOfTool reports whether the callback prepares or executes one tool call.
func (k callbackKind) isOfTool() bool {
	return k == callPrepareArguments || k == callBefore || k == callTool
}

func hookKind(name string) callbackKind {
	switch name {
	case trace.HookPrepareArguments:
		return callPrepareArguments
	case trace.HookBeforeToolCall:
		return callBefore
	case trace.HookAfterToolCall:
		return callAfter
	case trace.HookTransformContext:
		return callTransform
	case trace.HookConvertToLlm:
		return callConvert
	case trace.HookGetAPIKey:
		return callKey
	case trace.HookPrepareNextTurn:
		return callPrepareNext
	case trace.HookShouldStopAfterTurn:
		return callShouldStop
	case trace.HookFinishTurn:
		return callFinishTurn
	case trace.HookPrepareRequest:
		return callPrepareRequest
	case trace.HookPollSteering:
		return callSteering
	case trace.HookPollFollowUp:
		return callFollowUp
	}
	return callOther
}

// parseCallback takes the name of a callback apart: what it is for, the tool
// call id where it has one, and the number of the listener.
func parseCallback(name string) (kind callbackKind, id string, listener int) {
	head, rest, _ := strings.Cut(name, "/")
	switch head {
	case "model":
		return callModel, "", none
	case "tool":
		return callTool, rest, none
	case "listener":
		number, _, _ := strings.Cut(rest, "/")
		n, err := strconv.Atoi(number)
		if err != nil {
			n = none
		}
		return callListener, "", n
	case "hook":
		hook, id, _ := strings.Cut(rest, "/")
		return hookKind(hook), id, none
	}
	return callOther, "", none
}

// userKind is what the user does.
type userKind uint8

const (
	noUser userKind = iota
	userPrompt
	userContinue
	userSteer
	userFollowUp
	userAbort
	userReset
	userClearQueue
	userWaitForIdle
	userSubscribe
	userUnsubscribe
)

func userKindOf(label string) userKind {
	head, _, _ := strings.Cut(label, "/")
	switch head {
	case "prompt":
		return userPrompt
	case "continue":
		return userContinue
	case "steer":
		return userSteer
	case "followUp":
		return userFollowUp
	case "abort":
		return userAbort
	case "reset":
		return userReset
	case "clearQueue":
		return userClearQueue
	case "waitForIdle":
		return userWaitForIdle
	case "subscribe":
		return userSubscribe
	case "unsubscribe":
		return userUnsubscribe
	}
	return noUser
}

// evidenceSet is a set of kinds of evidence, as bits.
type evidenceSet uint16

var evidenceKinds = [...]trace.Evidence{
	trace.EvidenceEvents, trace.EvidenceState, trace.EvidenceListeners, trace.EvidenceCallbacks,
	trace.EvidenceRequests, trace.EvidenceActions, trace.EvidenceKept, trace.EvidenceViews,
	trace.EvidenceTwin, trace.EvidencePolls, trace.EvidenceReads,
}

func (s *evidenceSet) add(e trace.Evidence) {
	for bit, kind := range evidenceKinds {
		if kind == e {
			*s |= 1 << bit
		}
	}
}

func (s evidenceSet) has(e trace.Evidence) bool {
	for bit, kind := range evidenceKinds {
		if kind == e {
			return s&(1<<bit) != 0
		}
	}
	return false
}

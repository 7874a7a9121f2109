package harness

import (
	"slices"

	"github.com/pi-conform/pi-conform/harness/trace"
)

// userForm is a user action: its kind alone, or a mapping of the kind to what
// it carries.
var userForm = form[UserAction]{
	read: func(r *caseReader, n *node, to *UserAction) {
		kind, value := n.text, (*node)(nil)
		switch {
		case n.kind == nodeObject && len(n.pairs) == 1:
			kind, value = n.pairs[0].name, n.pairs[0].value
		case n.kind != nodeString:
			r.wrong(n, "a list of actions such as abort or prompt: text")
			return
		}
		if !slices.Contains(userKinds, kind) {
			r.fault(n.line, "unknown action %q%s", kind, didYouMean(kind, userKinds))
			return
		}
		to.Kind = UserKind(kind)
		outer := r.at
		r.at = kind
		r.carried(n, value, to)
		r.at = outer
	},
	write: func(from *UserAction) *node {
		value := carries(from)
		if value == nil {
			return textNode(string(from.Kind))
		}
		return &node{kind: nodeObject, pairs: []pair{{name: string(from.Kind), value: value}}}
	},
	zero: func(*UserAction) bool { return false },
}

// carried reads what the action carries; value is nil if there is nothing.
func (r *caseReader) carried(n, value *node, to *UserAction) {
	switch to.Kind {
	case UserPrompt:
		r.need(n, value, "text or messages", func() { r.prompt(value, to) })
	case UserContinue, UserReset:
		if value != nil {
			r.readFields(value, string(to.Kind), []field{member("busy", &to.Busy, flagForm)})
		}
	case UserSteer, UserFollowUp:
		r.need(n, value, "a message", func() { queuedForm.read(r, value, &to.Answer.Messages) })
	case UserSubscribe, UserUnsubscribe:
		r.need(n, value, "the number of a listener", func() { pointerTo(numberForm).read(r, value, &to.Answer.Listener) })
	case UserAbort, UserClearQueue, UserWaitForIdle:
		if value != nil {
			r.fault(n.line, "%s carries nothing", to.Kind)
		}
	}
}

func (r *caseReader) need(n, value *node, what string, read func()) {
	if value == nil {
		r.fault(n.line, "%s needs %s", r.at, what)
		return
	}
	read()
}

func (r *caseReader) prompt(value *node, to *UserAction) {
	if value.kind != nodeObject {
		textForm.read(r, value, &to.Answer.Text)
		return
	}
	r.readFields(value, "a prompt", promptFields(to))
	hasText := slices.ContainsFunc(value.pairs, func(p pair) bool { return p.name == "text" })
	switch {
	case hasText && to.Answer.Messages != nil:
		r.fault(value.line, "a prompt is text, perhaps with images, or a list of messages, not both")
	case !hasText && to.Answer.Images != nil:
		r.fault(value.line, "images go with the text of a prompt")
	case !hasText && to.Answer.Messages == nil:
		r.fault(value.line, "a prompt needs text or messages")
	}
}

func promptFields(a *UserAction) []field {
	return []field{
		member("text", &a.Answer.Text, textForm),
		member("images", &a.Answer.Images, listOf(blockForm)),
		member("messages", &a.Answer.Messages, listOf(messageForm)),
		member("busy", &a.Busy, flagForm),
	}
}

// queuedForm is a message, or a list of them.
var queuedForm = form[[]*trace.Message]{
	read: func(r *caseReader, n *node, to *[]*trace.Message) {
		if n.kind == nodeList {
			listOf(messageForm).read(r, n, to)
			return
		}
		*to = make([]*trace.Message, 1)
		messageForm.read(r, n, &(*to)[0])
	},
	write: func(from *[]*trace.Message) *node {
		if len(*from) == 1 {
			return messageForm.write(&(*from)[0])
		}
		return listOf(messageForm).write(from)
	},
	zero: func(from *[]*trace.Message) bool { return len(*from) == 0 },
}

// carries is what the action carries, nil for nothing.
func carries(a *UserAction) *node {
	switch a.Kind {
	case UserPrompt:
		if a.Answer.Messages == nil && a.Answer.Images == nil && !a.Busy {
			return textNode(a.Answer.Text)
		}
		fields := promptFields(a)
		if a.Answer.Messages == nil {
			fields[0].write = func() *node { return textNode(a.Answer.Text) }
		}
		return writeFields(fields)
	case UserContinue, UserReset:
		if a.Busy {
			return writeFields([]field{member("busy", &a.Busy, flagForm)})
		}
	case UserSteer, UserFollowUp:
		return queuedForm.write(&a.Answer.Messages)
	case UserSubscribe, UserUnsubscribe:
		if a.Answer.Listener != nil {
			return numberForm.write(a.Answer.Listener)
		}
	case UserAbort, UserClearQueue, UserWaitForIdle:
	}
	return nil
}

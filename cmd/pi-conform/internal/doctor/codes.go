package doctor

// Code names one thing that can be wrong with an adapter.
type Code string

// Ailment is a code with what people need to know of it.
type Ailment struct {
	Code  Code
	Stage string // in which it is found
	Sign  string // what was seen
	Cause string // what it most often comes from
	Cure  string
}

// The stages, in the order in which they are gone through.
const (
	StageStart   = "starts"
	StageSpeak   = "speaks"
	StageUnknown = "handles unknown messages"
	StageLines   = "splits lines"
	StageOpen    = "opens a session"
	StageBarrier = "comes to rest"
	StageNames   = "names callbacks"
	StageAnswer  = "takes answers"
	StageAbort   = "passes the abort signal"
	StageUpdate  = "takes a late update"
	StageSettle  = "settles"
	StageAgain   = "serves again"
	StageShow    = "tells of progress"
	StageBye     = "ends on bye"
	StageEnd     = "ends with its input"
)

// Stages are all stages, in order.
func Stages() []string {
	return []string{
		StageStart, StageSpeak, StageUnknown, StageLines, StageOpen, StageBarrier, StageNames, StageAnswer,
		StageAbort, StageUpdate, StageSettle, StageAgain, StageShow, StageBye, StageEnd,
	}
}

// Ailments are all that the doctor knows, stage by stage.
func Ailments() []Ailment { return append([]Ailment(nil), ailments...) }

func ailment(code Code) Ailment {
	for _, a := range ailments {
		if a.Code == code {
			return a
		}
	}
	return Ailment{Code: code}
}

var ailments = []Ailment{
	{
		"no-program", StageStart, "The command cannot be run.",
		"There is no such program, or the file may not be executed.",
		"Give the whole command, with the interpreter, as you would type it: pi-conform doctor -- python3 adapter.py.",
	},
	{
		"ends-early", StageStart, "The process ended before it answered hello.",
		"It failed while it was loading: a module is missing, a version is wrong. What it wrote to standard error says which.",
		"Start the command by hand: it has to wait for its input.",
	},
	{
		"noise", StageSpeak, "Standard output has a line that is no JSON object.",
		"Something prints: a banner, a debugging line, a library's warning.",
		"Send prints to standard error before the loop is loaded; standard output belongs to the protocol.",
	},
	{
		"unflushed", StageSpeak, "hello is answered only when the input ends.",
		"The answer stays in a buffer, as standard output is buffered when it is no terminal. Or the input is read as a whole before anything is done.",
		"Flush standard output after each message, and read the input line by line.",
	},
	{
		"silent", StageSpeak, "hello is not answered.",
		"The program does not read its standard input, waits for more than one line, or has no answer to hello.",
		"Read one line, parse it, and answer hello with helloOk.",
	},
	{
		"bad-hello", StageSpeak, "The answer to hello is not a right helloOk.",
		"A member is missing or was made up: re, protocol 1, the nonce as it came, subject, editions, barrier, capabilities with at least one form, or with what needs none.",
		"Compare it with the table of helloOk in docs/PROTOCOL.md; «pi-conform schema from-subject» has it for machines.",
	},
	{
		"unknown-type", StageUnknown, "A message of an unknown type is not answered with the error unsupported.",
		"The dispatch has no last branch, or it throws.",
		`Answer every type that you do not know with {"type":"error","re":ID,"code":"unsupported","message":"…"} and go on.`,
	},
	{
		"unknown-member", StageUnknown, "A message with a member that is not known is refused.",
		"Messages are parsed strictly.",
		"Ignore members that you do not know: the next harness may send some.",
	},
	{
		"line-separator", StageLines, "A message that holds the character U+2028 is not taken as one line.",
		"The input is split by something that knows more line ends than LF, such as str.splitlines in Python or readline in JavaScript.",
		"Split at LF alone, before decoding.",
	},
	{
		"carriage-return", StageLines, "A line that ends in CR LF is not understood.",
		"The CR is taken for a part of the message.",
		"Cut one CR off the end of each line.",
	},
	{
		"long-line", StageLines, "A line of two million bytes is not understood.",
		"The line reader has a limit, as bufio.Scanner in Go (64 KiB) and asyncio's StreamReader (64 KiB) have, or takes one read for one line.",
		"Allow lines of 16 MiB and gather a line from as many reads as it takes.",
	},
	{
		"no-open", StageOpen, "A session in a declared form and edition cannot be opened.",
		"The loop refuses the configuration; the error's message and stack say where.",
		"Make a loop of any configuration that needs no more than you declared. Do not declare a form that you do not have.",
	},
	{
		"no-prompt", StageOpen, "The prompt is not taken.",
		"The adapter waits for the run before it answers, or the loop threw at once.",
		"Answer ok when the prompt was handed to the loop, and report with settled how the run went.",
	},
	{
		"no-rest", StageBarrier, "A sync is not answered.",
		"The barrier waits for something that never comes: for the run to end, or for a gated callback.",
		"Answer synced as soon as every task of the loop waits for a callback or has ended.",
	},
	{
		"early-rest", StageBarrier, "Something is written after synced although nobody asked for it.",
		"The barrier is too short: the loop still had something to do.",
		"Wait until the loop's tasks are all blocked; see the table of barriers in docs/PROTOCOL.md. If there is no way to know, declare the barrier none.",
	},
	{
		"events-miscounted", StageBarrier, "The numbers of events have gaps, or synced counts otherwise.",
		"The number is not the session's, or some events are counted and not written.",
		"Count from 0 in each session, in one place, when an event is written.",
	},
	{
		"not-idle", StageBarrier, "synced says that the loop is idle while a run is under way, or busy when there is none.",
		"idle is read from something else than the loop's own running state, or too late.",
		"Read it at the barrier.",
	},
	{
		"no-model-call", StageNames, "The model is not asked, or the request is not reported.",
		"The loop was given another model than the scripted one, or its stream function does not report the call.",
		"Report a call before anything else is done in the stream function.",
	},
	{
		"call-names", StageNames, "A callback has another name than the one that follows from the scenario.",
		"Counts do not begin at 0, or a tool is named by its name instead of its call's id.",
		"See the names of callbacks in docs/PROTOCOL.md: model/0, tool/ID, hook/NAME/ID.",
	},
	{
		"not-waiting", StageNames, "A gated callback is reported, but synced does not say that it waits.",
		"Automatic and gated callbacks are mixed up, or waitingOn is not kept.",
		"Add a gated callback to waitingOn when it begins, and remove it when its answer has come.",
	},
	{
		"answer-lost", StageAnswer, "After the model's message the tool that it calls is not executed.",
		"The answer did not reach the loop's stream, or the stream's result was not settled.",
		"An answer with the event done, error, or with ends or throw is the stream's last: settle its result too.",
	},
	{
		"answer-refused", StageAnswer, "An answer to a callback that waits is refused.",
		"The callback is kept under another name than it is reported by.",
		"Keep what waits in one map, by the name that was written.",
	},
	{
		"no-cancel", StageAbort, "The capability signals is declared, and an abort during a tool gives no cancelled.",
		"The abort does not reach the loop, or the tool is not given the loop's signal.",
		"Hand the abort to the loop, and watch the signal that it passes to each callback. If it passes none, do not declare signals.",
	},
	{
		"late-update", StageUpdate, "A progress update of a tool that has returned breaks the adapter.",
		"The callback for updates was forgotten when the tool returned, or the loop crashes.",
		"Keep it for the whole session, call it all the same, and answer ok: what the loop makes of it is what is judged.",
	},
	{
		"never-settles", StageSettle, "The run is over and the prompt was never reported as settled, or the run does not end.",
		"Nobody follows the promise of the prompt, or the model's last request is not answered by an abort.",
		"Report settled with the name of the action when what the prompt gave back is fulfilled or fails.",
	},
	{
		"not-again", StageAgain, "A second session does not do what the first did.",
		"State is kept outside of sessions: counts, queues, or what waits.",
		"Make everything anew in open, and forget it in close.",
	},
	{
		"no-progress", StageShow, "The capability progress is declared, and a plain execution with one report is not told of.",
		"A message of the type progress is refused, or what was seen is not written before synced.",
		"Do each act when it comes, and write an entry for each thing that is seen; see the channel of progress in docs/PROTOCOL.md. Else do not declare progress.",
	},
	{
		"bye-ignored", StageBye, "The process goes on after bye.",
		"Only the end of the input is noticed, or something keeps the process alive.",
		"Answer ok, then exit.",
	},
	{
		"bye-exit-code", StageBye, "The process ends after bye with an exit code other than 0.",
		"It is ended by an error, such as reading an input that has been closed.",
		"Exit with code 0.",
	},
	{
		"end-ignored", StageEnd, "The process goes on when its input has ended.",
		"A thread, a timer or a child keeps it alive, or the reader waits for more.",
		"Exit when reading gives the end of input.",
	},
	{
		"dies", StageSettle, "The process ended in the middle of a session.",
		"Something in the loop or the adapter was not caught, in the background perhaps. What it wrote to standard error says what.",
		"Catch what nobody waits for, for the whole process, and report it with log.",
	},
}

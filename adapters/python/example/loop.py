"""A small agent loop: ask the model, run the tools that it calls, feed the results
back, and tell listeners what happens. It is here to be judged before your own loop
is; once that is joined in adapter.py, delete it."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Any, Awaitable, Callable, Optional

# PI_CONFORM_PLANT=late-update makes the loop pass on progress updates of a tool that
# has returned already, so that you see what a finding looks like.
LATE_UPDATES = os.environ.get("PI_CONFORM_PLANT") == "late-update"

NO_USAGE = {
    "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0,
    "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0},
}

Listener = Callable[[dict, asyncio.Event], Awaitable]


class Busy(Exception):
    def __init__(self) -> None:
        super().__init__("a run is active")


class Tool:
    def __init__(self, name: str, parameters: Optional[dict], sequential: bool, execute: Callable):
        self.name, self.parameters, self.sequential, self.execute = name, parameters, sequential, execute


class Queue:
    def __init__(self, mode: str):
        self.mode = mode
        self.waiting: list = []

    def put(self, message: dict) -> None:
        self.waiting.append(message)

    def drain(self) -> list:
        n = len(self.waiting) if self.mode == "all" else 1
        drained, self.waiting = self.waiting[:n], self.waiting[n:]
        return drained


class Agent:
    """Keeps the transcript, the queues and the listeners, and has at most one run at a time."""

    # What the loop calls out to; hooks that are not there are None.
    stream: Callable  # (messages, signal) -> an async iterator with result()
    before_tool_call: Optional[Callable] = None
    after_tool_call: Optional[Callable] = None
    on_poll: Callable[[str, list], Any] = staticmethod(lambda queue, drained: None)

    def __init__(self, model: str, tools: list, messages: list, sequential: bool, steering_mode: str, follow_up_mode: str):
        self.model, self.tools, self.sequential = model, tools, sequential
        self.messages = list(messages)
        self.steering, self.follow_ups = Queue(steering_mode), Queue(follow_up_mode)
        self.listeners: list = []
        self.active: Optional[Run] = None
        self.pending_tool_calls: list = []
        self.streaming_message: Optional[dict] = None
        self.error_message: Optional[str] = None

    async def prompt(self, messages: list) -> None:
        self._refuse_if_busy()
        await self._run(Run(self, messages))

    async def continue_(self) -> None:
        """Goes on from the transcript as it is, or from what is queued."""
        self._refuse_if_busy()
        if not self.messages:
            raise ValueError("there is nothing to continue from")
        if self.messages[-1]["role"] != "assistant":
            return await self._run(Run(self, []))
        steering = self.steering.drain()
        queued = steering or self.follow_ups.drain()
        if not queued:
            raise ValueError("the last message is the assistant's, and nothing is queued")
        await self._run(Run(self, queued, steered=bool(steering)))

    def abort(self) -> None:
        if self.active:
            self.active.signal.set()

    def reset(self) -> None:
        self._refuse_if_busy()
        self.messages = []
        self.error_message = None
        self.clear_queues()

    def clear_queues(self) -> None:
        self.steering.waiting, self.follow_ups.waiting = [], []

    async def wait_for_idle(self) -> None:
        if self.active:
            await self.active.ended.wait()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        if listener not in self.listeners:
            self.listeners.append(listener)
        return lambda: self.listeners.remove(listener) if listener in self.listeners else None

    def _refuse_if_busy(self) -> None:
        if self.active:
            raise Busy()

    async def _run(self, run: "Run") -> None:
        self.active = run
        self.error_message = None
        try:
            try:
                await run.main()
            except Exception as error:
                await run.fail(error)
        finally:
            self.active = None
            self.pending_tool_calls, self.streaming_message = [], None
            run.ended.set()

    def reduce(self, event: dict) -> None:
        """What an event does to the state; it comes before any listener is told."""
        kind = event["type"]
        if kind in ("message_start", "message_update"):
            self.streaming_message = event["message"]
        elif kind == "message_end":
            self.streaming_message = None
            self.messages.append(event["message"])
        elif kind == "tool_execution_start":
            self.pending_tool_calls = [*self.pending_tool_calls, event["toolCallId"]]
        elif kind == "tool_execution_end":
            self.pending_tool_calls = [id for id in self.pending_tool_calls if id != event["toolCallId"]]
        elif kind == "turn_end" and event["message"].get("errorMessage"):
            self.error_message = event["message"]["errorMessage"]


class Run:
    """One run, from agent_start to agent_end."""

    def __init__(self, agent: Agent, prompts: list, steered: bool = False):
        self.agent, self.prompts, self.steered = agent, prompts, steered
        self.signal = asyncio.Event()  # set by abort
        self.ended = asyncio.Event()
        self.over = False
        self.context = [*agent.messages, *prompts]  # what the next request is made of
        self.added = list(prompts)  # what agent_end tells

    async def main(self) -> None:
        await self.emit({"type": "agent_start"})
        await self.emit({"type": "turn_start"})
        for message in self.prompts:
            await self.emit_message(message)
        await self.turns()
        await self.emit({"type": "agent_end", "messages": self.added})
        self.over = True

    async def fail(self, error: Exception) -> None:
        """Ends a run that broke with a message that says why."""
        message = {
            "role": "assistant", "content": [{"type": "text", "text": ""}], "api": "scripted", "provider": "scripted",
            "model": self.agent.model, "usage": NO_USAGE, "stopReason": "aborted" if self.signal.is_set() else "error",
            "errorMessage": str(error), "timestamp": now(),
        }
        await self.emit_message(message)
        await self.emit({"type": "turn_end", "message": message, "toolResults": []})
        await self.emit({"type": "agent_end", "messages": [message]})
        self.over = True

    async def turns(self) -> None:
        queued = [] if self.steered else self.poll("steering")
        first = True
        while True:
            if not first:
                await self.emit({"type": "turn_start"})
            first = False
            for message in queued:
                await self.emit_message(message)
                self.add(message)
            message, results, unanswered = await self.turn()
            await self.emit({"type": "turn_end", "message": message, "toolResults": results})
            if failed(message):
                return
            queued = self.poll("steering")
            if unanswered or queued:
                continue
            queued = self.poll("followUp")
            if not queued:
                return

    async def turn(self) -> tuple:
        """One answer of the model, and what its tool calls come to."""
        message = await self.request()
        self.add(message)
        calls = [Call(self, message, block) for block in message["content"] if block["type"] == "toolCall"]
        if not calls or failed(message):
            return message, [], False
        answered = await self.batch(message, calls)
        results = [call.message for call in answered]
        self.add(*results)
        terminate = message["stopReason"] != "length" and all(call.result.get("terminate") is True for call in answered)
        return message, results, not terminate

    async def request(self) -> dict:
        """Passes the model's stream on. The next event is read when everybody has dealt with the last."""
        messages = [message for message in self.context if message["role"] in ("user", "assistant", "toolResult")]
        stream = await self.agent.stream(messages, self.signal)
        begun = False
        async for event in stream:
            if event["type"] in ("done", "error"):
                break
            if event["type"] == "start":
                begun = True
                await self.emit({"type": "message_start", "message": event["partial"]})
            elif begun and event["type"].split("_")[0] in ("text", "thinking", "toolcall"):
                await self.emit({"type": "message_update", "message": event["partial"], "assistantMessageEvent": event})
        message = await stream.result()
        if not begun:
            await self.emit({"type": "message_start", "message": message})
        await self.emit({"type": "message_end", "message": message})
        return message

    async def batch(self, message: dict, calls: list) -> list:
        """Answers calls; gives those that were begun."""
        if message["stopReason"] == "length":
            return await self.cut_off(calls)
        if self.agent.sequential or any(call.tool and call.tool.sequential for call in calls):
            return await self.one_by_one(calls)
        return await self.together(calls)

    async def cut_off(self, calls: list) -> list:
        """Arguments that were cut off may still parse, so none of these calls can be trusted."""
        for call in calls:
            await call.emit_start()
            call.fail(f"{call.block['name']} was not executed: the answer was cut off, so issue the call again")
            await call.emit_end()
            await call.emit_result()
        return calls

    async def one_by_one(self, calls: list) -> list:
        begun = []
        for call in calls:
            begun.append(call)
            await call.emit_start()
            await call.prepare()
            if not call.done:
                await call.execute()
            await call.emit_end()
            await call.emit_result()
            if self.signal.is_set():
                break
        return begun

    async def together(self, calls: list) -> list:
        """Prepares in order, executes together, gives results in order."""
        begun = []
        for call in calls:
            begun.append(call)
            await call.emit_start()
            await call.prepare()
            if call.done:
                await call.emit_end()
            if self.signal.is_set():
                break
        await wait_for_all([call.execute_and_end() for call in begun if not call.done])
        for call in begun:
            await call.emit_result()
        return begun

    async def emit(self, event: dict) -> None:
        if self.over:
            return
        self.agent.reduce(event)
        told: list = []
        while True:  # listeners may come and go meanwhile
            listener = next((one for one in self.agent.listeners if one not in told), None)
            if listener is None:
                return
            told.append(listener)
            await listener(event, self.signal)

    async def emit_message(self, message: dict) -> None:
        await self.emit({"type": "message_start", "message": message})
        await self.emit({"type": "message_end", "message": message})

    def add(self, *messages: dict) -> None:
        self.context.extend(messages)
        self.added.extend(messages)

    def poll(self, queue: str) -> list:
        drained = (self.agent.steering if queue == "steering" else self.agent.follow_ups).drain()
        self.agent.on_poll(queue, drained)
        return drained


class Call:
    """One tool call, from its start to its result message."""

    def __init__(self, run: Run, assistant: dict, block: dict):
        self.run, self.assistant, self.block = run, assistant, block
        self.args = block["arguments"]
        self.about = {"toolCallId": block["id"], "toolName": block["name"]}
        self.tool: Optional[Tool] = next((tool for tool in run.agent.tools if tool.name == block["name"]), None)
        self.done = False  # there is a result
        self.result: dict = {}
        self.is_error = False
        self.message: dict = {}
        self.updates: list = []
        self.accepting = True

    async def prepare(self) -> None:
        """Whatever goes wrong here is the call's result, and it is not executed."""
        agent, signal = self.run.agent, self.run.signal
        fault = invalid(self.tool.parameters, self.args) if self.tool else f"there is no tool {self.block['name']}"
        if fault:
            return self.fail(fault)
        try:
            answer = await agent.before_tool_call(self, signal) if agent.before_tool_call else None
        except Exception as error:
            return self.fail(str(error))
        if signal.is_set():
            self.fail("the call was aborted")
        elif answer and answer.get("block"):
            self.fail(answer.get("reason") or "the call was blocked", terminate=answer.get("terminate") is True)

    async def execute(self) -> None:
        agent, signal = self.run.agent, self.run.signal
        try:
            self.settle(await self.tool.execute(self.block["id"], self.args, signal, self.update), False)
        except Exception as error:
            self.fail(str(error))
        self.accepting = LATE_UPDATES
        await asyncio.sleep(0)  # a tool that did not wait must not keep the others from beginning
        await wait_for_all(self.updates)
        try:
            change = await agent.after_tool_call(self, signal) if agent.after_tool_call else None
        except Exception as error:
            return self.fail(str(error))
        if change:
            self.change(change)

    async def execute_and_end(self) -> None:
        await self.execute()
        await self.emit_end()

    def update(self, partial: dict) -> None:
        """A tool may keep this function: what it says after it has returned is dropped."""
        if self.accepting:
            event = {"type": "tool_execution_update", **self.about, "args": self.args, "partialResult": partial}
            self.updates.append(asyncio.ensure_future(self.run.emit(event)))

    def settle(self, result: dict, is_error: bool) -> None:
        self.result, self.is_error, self.done = result, is_error, True

    def fail(self, text: str, terminate: bool = False) -> None:
        result = {"content": [{"type": "text", "text": text}], "details": {}}
        self.settle({**result, "terminate": True} if terminate else result, True)

    def change(self, change: dict) -> None:
        """Each member replaces the whole of what there was."""
        given = {k: change[k] for k in ("content", "details", "usage", "terminate") if change.get(k) is not None}
        is_error = change.get("isError")
        self.settle({**self.result, **given}, self.is_error if is_error is None else is_error)

    async def emit_start(self) -> None:
        await self.run.emit({"type": "tool_execution_start", **self.about, "args": self.args})

    async def emit_end(self) -> None:
        await self.run.emit({"type": "tool_execution_end", **self.about, "result": self.result, "isError": self.is_error})

    async def emit_result(self) -> None:
        kept = {k: self.result[k] for k in ("details", "usage") if k in self.result}
        content = self.result.get("content", [])
        self.message = {"role": "toolResult", **self.about, "content": content, **kept, "isError": self.is_error, "timestamp": now()}
        await self.run.emit_message(self.message)


async def wait_for_all(awaitables: list) -> None:
    """Waits for all, also if one fails, and then fails with the first."""
    for outcome in await asyncio.gather(*awaitables, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome


def failed(message: dict) -> bool:
    return message["stopReason"] in ("error", "aborted")


def now() -> int:
    return int(time.time() * 1000)


def user_message(text: str, images: list) -> dict:
    return {"role": "user", "content": [{"type": "text", "text": text}, *images], "timestamp": now()}


JSON_TYPES = {"number": (int, float), "string": str, "boolean": bool, "object": dict, "array": list}


def invalid(schema: Optional[dict], args: dict) -> Optional[str]:
    """What is wrong with arguments: as much of JSON Schema as a toy needs."""
    for name in (schema or {}).get("required", []):
        if name not in args:
            return f"the argument {name} is missing"
    for name, member in (schema or {}).get("properties", {}).items():
        if name in args and not isinstance(args[name], JSON_TYPES.get(member.get("type"), object)):
            return f"the argument {name} has to be a {member['type']}"
    return None

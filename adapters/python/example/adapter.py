"""Joins an agent loop to pi-conform. «pi-conform run» starts this program and speaks
with it on standard input and output; pi_conform_adapter.py does the talking."""

from __future__ import annotations

import pi_conform_adapter as pi_conform

# YOUR LOOP: import it here.
import loop


def open_session(surroundings: pi_conform.Surroundings) -> "Joined":
    """Makes a loop whose model, tools and hooks are those of the surroundings."""
    config = surroundings.config
    level = config.get("thinkingLevel")

    # YOUR LOOP: make it here, and translate what it calls things.
    def tool(scripted: dict) -> loop.Tool:
        async def execute(tool_call_id, args, signal, on_update):
            payload = {"toolCallId": tool_call_id, "toolName": scripted["name"], "args": args, "signal": signal is not None}
            return await surroundings.execute(payload, signal, on_update)

        return loop.Tool(scripted["name"], scripted.get("parameters"), scripted.get("executionMode") == "sequential", execute)

    agent = loop.Agent(
        model=config.get("model", ""),
        tools=[tool(scripted) for scripted in config["tools"]],
        messages=config["messages"],
        sequential=config.get("toolExecution") == "sequential",
        steering_mode=config.get("steeringMode", "one-at-a-time"),
        follow_up_mode=config.get("followUpMode", "one-at-a-time"),
    )

    async def stream(messages, signal):
        payload = {
            "systemPrompt": config.get("systemPrompt"), "model": agent.model, "level": None if level == "off" else level,
            "tools": [tool.name for tool in agent.tools], "messages": pi_conform.tags(messages), "signal": signal is not None,
        }
        return await surroundings.model(payload, signal)

    async def before_tool_call(call, signal):
        return await surroundings.hook("beforeToolCall", call.block["id"], of_call(call, signal), signal)

    async def after_tool_call(call, signal):
        payload = {**of_call(call, signal), "result": call.result, "isError": call.is_error}
        return await surroundings.hook("afterToolCall", call.block["id"], payload, signal)

    def on_poll(queue, drained):
        surroundings.polled("getSteeringMessages" if queue == "steering" else "getFollowUpMessages", drained)

    agent.stream, agent.on_poll = stream, on_poll
    # A hook that the case does not have must be absent, not one that does nothing.
    if surroundings.has_hook("beforeToolCall"):
        agent.before_tool_call = before_tool_call
    if surroundings.has_hook("afterToolCall"):
        agent.after_tool_call = after_tool_call
    return Joined(agent)


def of_call(call, signal) -> dict:
    """What a hook that belongs to a tool call was given."""
    return {
        **call.about, "rawArgs": call.block["arguments"], "args": call.args, "assistant": pi_conform.tag(call.assistant),
        "context": pi_conform.tags(call.run.context), "signal": signal is not None,
    }


class Joined:
    """YOUR LOOP: what its user does, in your loop's words."""

    def __init__(self, agent: loop.Agent):
        self.agent = agent
        self.continue_, self.wait_for_idle, self.reset = agent.continue_, agent.wait_for_idle, agent.reset
        self.abort, self.clear_queue, self.subscribe = agent.abort, agent.clear_queues, agent.subscribe
        self.steer, self.follow_up = agent.steering.put, agent.follow_ups.put

    async def prompt(self, messages, images):
        if isinstance(messages, str):
            messages = [loop.user_message(messages, images)]
        await self.agent.prompt(messages)

    def is_running(self):
        return self.agent.active is not None

    def state(self):
        return {
            "isStreaming": self.agent.active is not None,
            "pendingToolCalls": self.agent.pending_tool_calls,
            "messages": self.agent.messages,
            "streamingMessage": self.agent.streaming_message,
            "errorMessage": self.agent.error_message,
        }


if __name__ == "__main__":
    pi_conform.serve(
        # YOUR LOOP: what it is, which edition of the contract it follows, and what it can do.
        # What is not declared is not judged. docs/PROTOCOL.md of pi-conform lists the capabilities.
        subject={"name": "toy-loop", "version": "0.1.0", "language": "python"},
        editions=["0.84.3"],
        capabilities=[
            "state", "polls", "reads", "listeners", "signals", "retained", "forms:agent",
            "hooks:beforeToolCall", "hooks:afterToolCall",
        ],
        open=open_session,
    )

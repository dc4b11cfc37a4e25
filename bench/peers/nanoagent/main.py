"""Does the work of the peers with nano-agent, the Python library that Plait replaces.

It needs Python 3.12 and the package nano_agent (PYTHONPATH finds a checkout too). Like the other peers, it reads a
question as JSON on each line of its input and writes a reply; see bench/internal/peer.
"""

import asyncio
import gc
import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass

from nano_agent import DAG, Response, Role, TextContent, ToolUseContent, Usage, run
from nano_agent.tools import Tool


@dataclass
class Instant(Tool):
    name: str = "instant"
    description: str = "Does nothing."

    async def __call__(self) -> TextContent:
        return TextContent(text="ok")


class Model:
    """A model that responds at once: with calls, until the last turn. It measures the turns after the first ones."""

    def __init__(self, tools, first, total):
        self.tools, self.first, self.total = tools, first, total
        self.asked = self.began = self.took = 0

    async def send(self, dag):
        self.asked += 1
        if self.asked == self.first + 1:
            self.began = time.process_time_ns()
        if self.asked == self.total + 1:
            self.took = time.process_time_ns() - self.began
            return Response("", "fake", Role.ASSISTANT, [TextContent(text="Done.")], "end_turn", Usage())
        calls = [ToolUseContent(id=f"call_{i}", name="instant", input={}) for i in range(self.tools)]
        return Response("", "fake", Role.ASSISTANT, calls, "tool_use", Usage())


def play(model):
    return asyncio.run(run(model, DAG().tools(Instant()).user("Go.")))


def turns(ask):
    window = max(10, ask["Turns"] // 20)
    took = 0
    for _ in range(ask["Times"]):
        gc.collect()
        model = Model(ask["Tools"], ask["Turns"], ask["Turns"] + window)
        play(model)
        took += model.took
    return {"Cost": {"Value": took / (ask["Times"] * window)}}


def history(ask):
    dag = play(Model(ask["Tools"], 0, ask["Turns"]))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "dag.json")
        dag.save(path)
        work = {"save": lambda: dag.save(path), "load": lambda: DAG.load(path), "fork": lambda: dag.user("And now?")}[ask["Measure"]]

        gc.collect()
        began = time.process_time_ns()
        kept = [work() for _ in range(ask["Times"])]  # all alive, as in the other programs
        took = time.process_time_ns() - began
        return {"Cost": {"Value": took}, "Size": os.path.getsize(path)}


for line in sys.stdin:
    try:
        ask = json.loads(line)
        reply = turns(ask) if ask["Measure"] == "turn" else history(ask)
    except Exception as e:
        reply = {"Error": repr(e)}
    print(json.dumps(reply), flush=True)

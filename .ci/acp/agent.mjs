// An agent by the protocol's own SDK, for a sub-agent of executor/acp: it calls a tool, asks for permission, answers,
// and can be cancelled.
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const waiting = new Map();
acp.agent({ name: "check" })
  .onRequest("initialize", () => ({ protocolVersion: 1, agentCapabilities: {} }))
  .onRequest("session/new", () => ({ sessionId: "s" }))
  .onNotification("session/cancel", ({ params }) => waiting.get(params.sessionId)?.())
  .onRequest("session/prompt", async ({ params, client }) => {
    const { sessionId } = params;
    const update = (update) => client.notify("session/update", { sessionId, update });
    const text = (text) => update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
    await update({ sessionUpdate: "agent_thought_chunk", content: { type: "text", text: "Hm." } });
    await text("I edit ");
    await text("it.");
    await update({ sessionUpdate: "tool_call", toolCallId: "c", title: "Edit a.go", kind: "edit", status: "pending" });
    await update({ sessionUpdate: "notice", content: { type: "text", text: "of a newer version" } }).catch(() => {});
    if (params.prompt[0].text === "wait") {
      await new Promise((resolve) => waiting.set(sessionId, resolve));
      return { stopReason: "cancelled" };
    }
    const { outcome } = await client.request("session/request_permission", {
      sessionId, toolCall: { toolCallId: "c", title: "Edit a.go" },
      options: [{ optionId: "y", name: "Yes", kind: "allow_once" }, { optionId: "n", name: "No", kind: "reject_once" }],
    });
    const done = outcome.outcome === "selected" && outcome.optionId === "y";
    await update({
      sessionUpdate: "tool_call_update", toolCallId: "c", status: done ? "completed" : "failed",
      content: [{ type: "diff", path: "/project/a.go", oldText: "a", newText: "b" }],
    });
    await text("Done.");
    return { stopReason: "end_turn" };
  })
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));

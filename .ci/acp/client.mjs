// Drives "plait acp" as an editor does, with the protocol's own SDK, through every method, and prints what became of it
// as JSON. The SDK checks each message against its schemas. Arguments: the command.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk/unstable";

const files = { "/project/a.go": "package a" };
const asked = [], did = [];
let updates = [];

const app = acp.client({ name: "check" })
  .onNotification("session/update", ({ params }) => void updates.push(params.update))
  .onRequest("session/request_permission", ({ params }) => {
    asked.push(params.toolCall.title);
    return { outcome: { outcome: "selected", optionId: params.options[0].optionId } };
  })
  .onRequest("fs/read_text_file", ({ params }) => ({ content: files[params.path] }))
  .onRequest("fs/write_text_file", ({ params }) => { files[params.path] = params.content; return {}; })
  .onRequest("terminal/create", ({ params }) => { did.push([params.command, ...params.args].join(" ")); return { terminalId: "t" }; })
  .onRequest("terminal/wait_for_exit", () => ({ exitCode: 0 }))
  .onRequest("terminal/output", () => ({ output: "ok", truncated: false }))
  .onRequest("terminal/release", () => { did.push("release"); return {}; });

const out = {};
const kinds = () => updates.map((u) => u.sessionUpdate).filter((k, i, all) => k !== all[i - 1]);

function connect(work) {
  const child = spawn(process.argv[2], process.argv.slice(3), { stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.on("exit", resolve));
  return app.connectWith(acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)), work)
    .finally(() => { child.stdin.end(); return ended; });
}

const hello = {
  protocolVersion: 1, clientInfo: { name: "check", version: "1" },
  clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: true },
};
const place = { cwd: "/project", mcpServers: [] };
let session;

await connect(async (agent) => {
  const can = await agent.request("initialize", hello);
  out.can = [can.protocolVersion, can.agentCapabilities.loadSession, ...Object.keys(can.agentCapabilities.sessionCapabilities).sort()];
  const server = { name: "weather", command: process.env.WEATHER, args: [], env: [] };
  session = await agent.request("session/new", { cwd: "/project", mcpServers: [server] });
  out.modes = session.modes.availableModes.map((m) => m.id);
  const sessionId = session.sessionId;
  const prompt = (...prompt) => agent.request("session/prompt", { sessionId, prompt });
  const text = (text) => ({ type: "text", text });

  out.stops = [(await prompt(text("Fix it."))).stopReason];
  out.kinds = kinds();
  out.plan = updates.filter((u) => u.sessionUpdate === "plan").map((u) => u.entries[0].content);
  out.shown = updates.filter((u) => u.sessionUpdate === "tool_call").map((u) => [u.title, u.kind, u.locations?.[0]?.path, u.content?.[0]?.type]);

  // Without a question, on another model, with an image and a file.
  await agent.request("session/set_mode", { sessionId, modeId: "auto" });
  const options = await agent.request("session/set_config_option", { sessionId, configId: "model", value: "claude-other" });
  out.options = options.configOptions.map((o) => o.currentValue);
  const before = asked.length;
  out.stops.push((await prompt(text("And the weather?"), { type: "image", mimeType: "image/png", data: "aGk=" },
    { type: "resource_link", name: "a.go", uri: "file:///project/a.go" })).stopReason);
  out.unasked = asked.length - before;

  // Two prompts at once, and a cancel.
  const waits = prompt(text("Wait."));
  out.second = await prompt(text("Me too.")).catch((e) => e.code);
  await agent.notify("session/cancel", { sessionId });
  out.stops.push((await waits).stopReason);
  out.unknown = await agent.request("session/prompt", { sessionId: "none", prompt: [text("Hi")] }).catch((e) => e.code);
  await agent.request("session/close", { sessionId });
});

await connect(async (agent) => {
  await agent.request("initialize", hello);
  const list = async () => (await agent.request("session/list", {})).sessions.length;
  const sessionId = session.sessionId;
  out.lists = [await list()];
  updates = [];
  const loaded = await agent.request("session/load", { sessionId, ...place });
  out.loaded = [loaded.modes.currentModeId, kinds()];
  updates = [];
  await agent.request("session/resume", { sessionId, ...place });
  out.resumed = updates.length;
  const fork = await agent.request("session/fork", { sessionId, ...place });
  out.lists.push(await list());
  await agent.request("session/delete", { sessionId });
  out.lists.push(await list());
  const forked = await agent.request("session/prompt", { sessionId: fork.sessionId, prompt: [{ type: "text", text: "Still there?" }] });
  out.stops.push(forked.stopReason);
});

out.asked = asked, out.did = did, out.file = files["/project/a.go"];
console.log(JSON.stringify(out));

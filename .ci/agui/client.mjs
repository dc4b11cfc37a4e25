// Talks to the handler of executor/agui as a web front end does, with the protocol's own client, and prints what became
// of it as JSON. Each event is checked as it is sent, against the JSON Schema of the protocol's own definitions.
import { HttpAgent } from "@ag-ui/client";
import { EventSchema } from "@ag-ui/core/schemas";
import Ajv from "ajv/dist/2020.js";
import { toJSONSchema } from "zod/v4";

// The client accepts members that it does not know. An event must have none.
const schema = toJSONSchema(EventSchema, {
  unrepresentable: "any",
  override: ({ jsonSchema }) => {
    if (jsonSchema.type === "object" && jsonSchema.properties) jsonSchema.additionalProperties = false;
  },
});
const valid = new Ajv({ strict: false }).compile(schema);

const types = [], invalid = [], reading = [];
async function checked(url, init) {
  const response = await fetch(url, init);
  const [ours, theirs] = response.body.tee();
  reading.push(new Response(ours).text().then(check, () => {})); // the client may hang up
  return new Response(theirs, response);
}

function check(text) {
  for (const line of text.split("\n")) {
    if (!line.startsWith("data: ")) continue;
    const event = JSON.parse(line.slice("data: ".length));
    types.push(event.type);
    if (!valid(event)) invalid.push(event);
  }
}

const url = process.argv[2];
const tools = [{ name: "color", description: "Asks for a color.", parameters: { type: "object" } }];
const connect = (o) => new HttpAgent({ url, threadId: "t", fetch: checked, ...o });

const agent = connect({ initialState: { deleted: 0 } });
agent.addMessage({ id: "u1", role: "user", content: "Delete it." });
await agent.runAgent({ tools });
const asked = agent.pendingInterrupts;

const resume = asked.map(({ id }) => ({ interruptId: id, status: "resolved", payload: { approved: true } }));
await agent.runAgent({ tools, resume });
const open = agent.messages.at(-1).toolCalls;
agent.addMessage({ id: "r1", role: "tool", toolCallId: open[0].id, content: "blue" });
await agent.runAgent({ tools });

// A sub-agent, whose events name it.
const helped = connect({ threadId: "helped" });
helped.addMessage({ id: "u2", role: "user", content: "Help." });
await helped.runAgent({});
const look = helped.pendingInterrupts.map(({ id }) => ({ interruptId: id, status: "resolved", payload: { approved: true } }));
await helped.runAgent({ resume: look });

// With a second argument, the runs are durable: the client leaves one in the middle, and another window has its end.
let left = [], found = [];
if (process.argv[3]) {
  const leaving = connect({ threadId: "left" });
  leaving.addMessage({ id: "u3", role: "user", content: "Wait." });
  await leaving.runAgent({}, { onToolCallEndEvent: () => { leaving.abortRun(); } }).catch(() => {});
  left = leaving.messages;
  const finding = connect({ threadId: "left" });
  await finding.runAgent({});
  found = finding.messages;
}

// Another window knows the thread and nothing else.
const window = connect();
await window.runAgent({ tools });

await Promise.all(reading);
const shown = (messages) => messages.filter((m) => m.role !== "reasoning").map((m) => [m.role, m.content ?? ""]);
console.log(JSON.stringify({
  types, invalid, asked: asked.length, open: open.map((c) => c.function.name), state: agent.state,
  messages: shown(agent.messages), window: shown(window.messages), left: shown(left), found: shown(found),
  helped: shown(helped.messages),
}));

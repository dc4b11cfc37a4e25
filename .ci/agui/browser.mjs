// Uses the handler of executor/agui in a headless browser, as a web front end does: with the protocol's own client, on a page of the
// handler's server. Prints what became of it as JSON. The browser is started as for .ci/browser/page. usage: node browser.mjs URL
import { build } from "esbuild";
import { launch } from "../browser/page/browser.mjs";

const bundle = await build({
  stdin: { contents: 'export { HttpAgent } from "@ag-ui/client";', resolveDir: import.meta.dirname },
  bundle: true, write: false, format: "iife", globalName: "agui", platform: "browser", logLevel: "error",
});

const browser = await launch();
setTimeout(() => { console.error("the browser did not finish within 120 s"); process.exit(1); }, 120_000).unref();
const errors = [];

// open is a window that knows the thread and nothing else.
async function open() {
  const page = await browser.newPage();
  page.on("pageerror", (err) => errors.push(String(err)));
  await page.goto(process.argv[2]);
  await page.addScriptTag({ content: bundle.outputFiles[0].text });
  await page.evaluate(() => {
    window.agent = new agui.HttpAgent({ url: "/agent", threadId: "t" });
    window.types = [];
    window.run = (o) => agent.runAgent(o, { onEvent: ({ event }) => { types.push(event.type); } });
    window.known = () => ({
      types, asked: agent.pendingInterrupts.map(({ id }) => id),
      messages: agent.messages.filter((m) => m.role !== "reasoning").map((m) => [m.role, m.content ?? ""]),
    });
  });
  return page;
}

const first = await open();
await first.evaluate(async () => {
  agent.addMessage({ id: "u1", role: "user", content: "Delete <b>it</b>." });
  await run({});
});
const asked = await first.evaluate(() => known());
await first.close();

// Another window is asked the same. It approves, and is closed while the model answers.
const second = await open();
await second.evaluate(() => run({}));
const again = await second.evaluate(() => known());
await second.evaluate(() => {
  const resume = agent.pendingInterrupts.map(({ id }) => ({ interruptId: id, status: "resolved", payload: { approved: true } }));
  run({ resume }).catch(() => {}); // the connection is lost
});
await second.waitForFunction(() => types.filter((type) => type === "TEXT_MESSAGE_CONTENT").length > 0);
await second.close();
await fetch(process.argv[2] + "/idle"); // until the handler has noticed

const third = await open();
await third.evaluate(() => run({}));
const after = await third.evaluate(() => known());
await browser.close();
console.log(JSON.stringify({ asked, again, after, errors }));

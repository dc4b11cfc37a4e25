#!/usr/bin/env node
// Opens a live page in a headless browser and uses it as it is told, step by step, so that whoever tells can let things happen on the
// server in between. usage: node live.mjs URL; each line of standard input is a step, a JSON object, and each line of output says how it
// went: {"ok":true} or {"ok":false,"why":"…"}. At the end of input it says what the page must not have done: {"sins":[…]}.
//   {"wait":"CSS","text":"words"}    until an element that can be seen holds the words
//   {"gone":"CSS"}                   until no such element can be seen
//   {"click":"CSS","text":"words"}   the first one that holds the words
//   {"fill":"CSS","value":"words"}
//   {"press":"KEY"}, {"type":"words"} where the focus is
//   {"size":"390x844"}               of the window
//   {"theme":"dark"}                 by the page's own button
//   {"inside":"CSS"}                 elements that must lie inside the window, and hold no more than is seen
//   {"picture":"FILE"}
import {createInterface} from 'node:readline';
import {launch, within} from './browser.mjs';

const browser = await launch();
const page = await (await browser.newContext({viewport: {width: 1400, height: 900}})).newPage();
page.setDefaultTimeout(15000);
const url = process.argv[2], sins = [];
await page.route('**/*', route => {
  if (new URL(route.request().url()).origin === new URL(url).origin) return route.continue();
  sins.push('request: ' + route.request().url());
  return route.abort();
});
page.on('dialog', dialog => { sins.push('dialog: ' + dialog.message()); dialog.dismiss().catch(() => {}); });
page.on('popup', popup => sins.push('popup: ' + popup.url()));
page.on('pageerror', err => sins.push('error: ' + err.stack));
page.on('console', message => message.type() === 'error' && sins.push('console: ' + message.text()));
await page.addInitScript(() => {
  window.violations = [];
  document.addEventListener('securitypolicyviolation', event => window.violations.push('violation: ' + event.violatedDirective + ' ' + event.blockedURI));
});

const say = what => console.log(JSON.stringify(what));
const one = step => page.locator(step.wait || step.click, step.text === undefined ? {} : {hasText: step.text}).locator('visible=true').first();

async function take(step) {
  if (step.wait) await one(step).waitFor();
  if (step.gone) await page.locator(step.gone).locator('visible=true').first().waitFor({state: 'detached'});
  if (step.click) await one(step).click();
  if (step.fill) await page.locator(step.fill).locator('visible=true').first().fill(step.value);
  if (step.press) await page.keyboard.press(step.press);
  if (step.type) await page.keyboard.type(step.type);
  if (step.size) {
    const [width, height] = step.size.split('x').map(Number);
    await page.setViewportSize({width, height});
  }
  if (step.theme) await page.evaluate(theme => { while (document.documentElement.dataset.theme !== theme) document.getElementById('theme').click(); }, step.theme);
  if (step.inside) {
    const outside = await page.evaluate(css => [...document.querySelectorAll(css)].filter(e => {
      const box = e.getBoundingClientRect();
      return box.width > 0 && (box.left < 0 || box.right > innerWidth || e.scrollWidth > e.clientWidth + 1);
    }).map(e => e.outerHTML.slice(0, 200)), step.inside);
    if (outside.length) throw new Error('outside the window: ' + outside.join('\n'));
  }
  if (step.picture) await page.screenshot({path: step.picture});
}

try {
  await page.goto(url);
  say({ok: true});
} catch (err) {
  say({ok: false, why: String(err)});
}
for await (const line of createInterface({input: process.stdin})) {
  try {
    await within(60000, take(JSON.parse(line)));
    say({ok: true});
  } catch (err) {
    if (err.hangs) {
      say({ok: false, why: String(err)});
      process.exit(1);
    }
    const shown = await page.evaluate(() => document.body.innerText).catch(() => '');
    say({ok: false, why: String(err) + '\nThe page shows:\n' + shown.slice(0, 3000)});
  }
}
say({sins: [...sins, ...await within(60000, page.evaluate(() => window.violations))]});
await browser.close();

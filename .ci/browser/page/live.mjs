#!/usr/bin/env node
// Opens a page in a headless browser and uses it step by step, so that a test can change things on the server in between.
// usage: node live.mjs URL; each line of standard input is a step, a JSON object, and each line of output says how it went:
// {"ok":true} or {"ok":false,"why":"…"}. The first one is about opening the page, with its time in milliseconds as "ms". At the
// end of input it says what the page must not have done: {"sins":[…]}.
//   {"wait":"CSS","text":"words"}    until an element that can be seen holds the words
//   {"gone":"CSS"}                   until no such element can be seen
//   {"click":"CSS","text":"words"}   the first one that holds the words
//   {"press down":"CSS"}, {"let go":""} the two halves of a click; between them, {"holds":""} waits until the page holds an event back
//   {"stop time":""}                 timers of the page wait from now on
//   {"pass time":"200"}              in milliseconds; time goes on by itself afterwards
//   {"fill":"CSS","value":"words"}
//   {"press":"KEY"}, {"type":"words"} where the focus is
//   {"size":"390x844"}               of the window
//   {"theme":"dark"}                 by the page's own button
//   {"inside":"CSS"}                 elements that must lie inside the window, which does not scroll sideways, and hold no more than is seen
//   {"readable":"CSS"}               until one can be seen; then no text on the page is too pale, in the light and in the dark, and axe finds nothing, also at 390 pixels
//   {"address":"#WORDS"}             until the address ends with it; "" for no #
//   {"picture":"FILE"}
import {createInterface} from 'node:readline';
import {barriers, launch, outside, tooPale, watch, within} from './browser.mjs';

const browser = await launch();
const page = await (await browser.newContext({viewport: {width: 1400, height: 900}})).newPage();
page.setDefaultTimeout(60000);
const url = process.argv[2];
const sins = await watch(page, asked => new URL(asked).origin === new URL(url).origin);

const say = what => console.log(JSON.stringify(what));
const one = step => page.locator(step.wait || step.click, step.text === undefined ? {} : {hasText: step.text}).locator('visible=true').first();

const theme = name => page.evaluate(name => { while (document.documentElement.dataset.theme !== name) document.getElementById('theme').click(); }, name);

async function take(step) {
  if (step.wait) await one(step).waitFor();
  if (step.gone) await page.locator(step.gone).locator('visible=true').first().waitFor({state: 'detached'});
  if (step.click) await one(step).click();
  if (step['press down']) {
    await page.locator(step['press down']).locator('visible=true').first().hover();
    await page.mouse.down();
  }
  if (step.holds !== undefined) await page.waitForSelector('body.holds');
  if (step['let go'] !== undefined) await page.mouse.up();
  if (step['stop time'] !== undefined) {
    await page.clock.install();
    await page.clock.pauseAt(Date.now() + 1000);
  }
  if (step['pass time']) {
    await page.clock.runFor(Number(step['pass time']));
    await page.clock.resume();
  }

  if (step.fill) await page.locator(step.fill).locator('visible=true').first().fill(step.value);
  if (step.press) await page.keyboard.press(step.press);
  if (step.type) await page.keyboard.type(step.type);

  if (step.size) {
    const [width, height] = step.size.split('x').map(Number);
    await page.setViewportSize({width, height});
  }

  if (step.theme) await theme(step.theme);
  if (step.readable) {
    await page.locator(step.readable).locator('visible=true').first().waitFor();
    for (const name of ['light', 'dark']) {
      await theme(name);
      const pale = await page.evaluate(tooPale);
      if (pale.length) throw new Error('too pale, ' + name + ': ' + pale.join('; '));
    }
    const size = page.viewportSize();
    for (const one of [size, {width: 390, height: 844}]) {
      await page.setViewportSize(one);
      const found = await barriers(page);
      if (found.length) throw new Error('axe finds ' + found.join('\n'));
    }
    await page.setViewportSize(size);
  }

  if (step.inside) {
    if (await page.evaluate(() => document.documentElement.scrollWidth > innerWidth)) throw new Error('the page scrolls sideways');
    const found = await page.evaluate(outside, step.inside);
    if (found.length) throw new Error('outside the window: ' + found.join('\n'));
  }

  if (step.address !== undefined) await page.waitForURL(now => now.hash === step.address);
  if (step.picture) await page.screenshot({path: step.picture});
}

try {
  const began = performance.now();
  await page.goto(url);
  await page.evaluate(() => new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn))));
  say({ok: true, ms: Math.round(performance.now() - began)});
} catch (err) {
  say({ok: false, why: String(err)});
}

for await (const line of createInterface({input: process.stdin})) {
  try {
    await within(180000, take(JSON.parse(line)));
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

say({sins: await within(180000, sins())});
await browser.close();

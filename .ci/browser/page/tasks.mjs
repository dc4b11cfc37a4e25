#!/usr/bin/env node
// Does the tasks of tasks.json in a headless browser, each by mouse and by keyboard: what a person wants to know of a conversation, in at
// most four steps. usage: node tasks.mjs DIR [--pictures=FOLDER] [TASK …]. DIR has addresses.json, with the address of each page. Each
// line of output is about one task done in one way: {"task":"…","way":"mouse","steps":2,"ok":true,"ms":812}, with "error" if it failed.
// docs/tasks.md is written from the same file.
//
// A step is one of
//   {"open":"PAGE"}                opening a page, with a fresh profile
//   {"click":"CSS","on":"words"}   a click on the first such element with these words, or "" for a field, that is in view: nothing is scrolled for it; "of" is for readers
//   {"press":"KEY"}                one key
//   {"type":"words"}               a text, where the focus is
//   {"openCopied":true}            somebody else, with another profile, opens the address that was copied
// Before a step with "when":"words" the person waits until these are in view. At the end, all texts of "shows" are in view at the same time.
// With "reads", a screen reader finds the texts in these elements, marked with their language.
// With "copies", what was copied is then in the file "TASK by WAY" of DIR.
import {close, inFirefox, newContext} from './browser.mjs';
import {readFileSync, writeFileSync} from 'node:fs';
import path from 'node:path';

const mostSteps = 4, mostBytes = 60 * 1024, patience = 120000; // patience only keeps a failure from hanging: a busy machine is slow
const [dir, ...options] = process.argv.slice(2);
const pictures = options.find(o => o.startsWith('--pictures='))?.slice(11);
const wanted = options.filter(o => !o.startsWith('--'));
const tasks = JSON.parse(readFileSync(new URL('tasks.json', import.meta.url)));
const addresses = JSON.parse(readFileSync(path.join(dir, 'addresses.json')));

// person is somebody with a browser of their own, who does one task.
class Person {
  steps = 0;
  page = null;
  sins = [];

  constructor(way) { this.way = way; }

  // step does a step, and counts it.
  async step(step) {
    this.steps++;
    if (this.steps > mostSteps) throw new Error('it takes more than ' + mostSteps + ' steps');
    if (step.when) await this.shows(step.when);
    if (step.open) await this.open(addresses[step.open + ' by ' + this.way] ?? addresses[step.open]);
    else if (step.openCopied) await this.open(await this.copied());
    else if (step.click) await this.click(step);
    else if (step.press) await this.page.keyboard.press(step.press);
    else if (step.type) await this.page.keyboard.type(step.type);
    else throw new Error('no such step: ' + JSON.stringify(step));
  }

  async open(url) {
    await this.close();
    this.page = await (await newContext({viewport: {width: 1440, height: 900}})).newPage();
    this.page.setDefaultTimeout(patience);
    this.page.on('pageerror', err => this.sins.push(err.stack));
    this.page.on('dialog', dialog => { this.sins.push('dialog: ' + dialog.message()); dialog.dismiss().catch(() => {}); });
    await this.page.addInitScript(() => {
      const copied = [];
      Object.defineProperty(navigator, 'clipboard', {value: {writeText: async text => { copied.push(text); }}});
      window.copiedLast = () => copied.at(-1) ?? '';
    });
    await this.page.goto(url);
  }

  // click clicks on what has stayed at its place for ten frames. If the page moves under the mouse all the same, as on
  // a busy machine, it clicks again.
  async click({click, on}) {
    const find = () => this.until(inView, {css: click, text: on}, '“' + on + '” is not in view');
    for (let tries = 0; tries < 5; tries++) {
      let place, before, still = 0;
      while (still < 10) {
        [before, place] = [place, await find()];
        still = String(before) === String(place) ? still + 1 : 0;
      }
      await this.page.evaluate(noteClick, {css: click, text: on});
      await this.page.mouse.click(...place);
      if (await this.page.evaluate(() => window.clicked)) return;
    }
    throw new Error('“' + on + '” moves under the mouse');
  }

  async shows(text) { await this.until(inView, {css: 'body *', text}, '“' + text + '” is not in view'); }

  copied() { return this.until(() => window.copiedLast(), null, 'nothing was copied'); }

  // until asks the page again with each frame, until the answer is not null.
  async until(ask, argument, what) {
    const end = performance.now() + patience;
    for (;;) {
      await this.page.evaluate(() => new Promise(requestAnimationFrame));
      const answer = await this.page.evaluate(ask, argument);
      if (answer) return answer;
      if (performance.now() > end) throw new Error(what + '. The page shows:\n' + (await this.page.evaluate(() => document.body.innerText)).slice(0, 2000));
    }
  }

  async close() {
    await this.page?.context().close();
    this.page = null;
  }
}

// noteClick runs in the page: window.clicked becomes true if the next click is on such an element with the text.
function noteClick({css, text}) {
  window.clicked = false;
  addEventListener('click', event => {
    window.clicked = Boolean(event.target.closest(css)?.textContent.includes(text));
  }, {capture: true, once: true});
}

// inView runs in the page: it returns where a text can be seen in full, in the innermost elements that match; null if it cannot.
function inView({css, text}) {
  const has = e => e.textContent.includes(text);
  for (const e of document.querySelectorAll(css)) {
    if (text === '' && e.checkVisibility()) { // a field, by its place
      const {left, top, width, height} = e.getBoundingClientRect();
      return [left + width / 2, top + height / 2];
    }
    if (!has(e) || e.closest('script, style, noscript') || css === 'body *' && [...e.children].some(has)) continue;

    // The range of the text, which may lie in several text nodes.
    const start = e.textContent.indexOf(text), end = start + text.length;
    const range = document.createRange(), walker = document.createTreeWalker(e, NodeFilter.SHOW_TEXT);
    for (let at = 0; walker.nextNode(); at += walker.currentNode.length) {
      const after = at + walker.currentNode.length;
      if (at <= start && start < after) range.setStart(walker.currentNode, start - at);
      if (at < end && end <= after) range.setEnd(walker.currentNode, end - at);
    }

    // Text that is cut off or covered has another element at its place.
    const rects = [...range.getClientRects()].filter(r => r.width > 0);
    const seen = rects.length > 0 && rects.every(r => [r.left + 3, (r.left + r.right) / 2, r.right - 3].every(x => e.contains(document.elementFromPoint(x, (r.top + r.bottom) / 2))));
    if (seen) return [(rects[0].left + rects[0].right) / 2, (rects[0].top + rects[0].bottom) / 2];
  }
  return null;
}

// isRead runs in the page: it reports whether an element holds a text that a screen reader can read in its language.
function isRead({in: css, text, lang}) {
  return [...document.querySelectorAll(css + ' *')].some(e => e.textContent.includes(text) && e.closest('[lang]').lang === lang &&
    !e.closest('[aria-hidden=true], [hidden]'));
}

// picture keeps what the person sees, as WebP, which Chromium can write. A picture of much text is compressed more.
async function picture(page, file) {
  const chrome = await page.context().newCDPSession(page);
  for (let quality = 60, bytes; quality > 0 && !(bytes?.length <= mostBytes); quality -= quality > 10 ? 10 : 2) {
    bytes = Buffer.from((await chrome.send('Page.captureScreenshot', {format: 'webp', quality})).data, 'base64');
    writeFileSync(file, bytes);
  }
}

async function perform(task, way) {
  const person = new Person(way), began = performance.now(), verdict = {task: task.name, way, ok: true};
  try {
    for (const step of task[way]) await person.step(step);
    for (const text of task.shows) await person.shows(text);
    for (const text of task.shows) await person.shows(text); // all of them at the end
    for (const text of task.reads || []) await person.until(isRead, text, '“' + text.text + '” is not marked as ' + text.lang);
    if (task.copies) writeFileSync(path.join(dir, task.name + ' by ' + way), await person.copied());
    if (person.sins.length) throw new Error(person.sins.join('\n'));
    if (pictures && !inFirefox && way === 'mouse') await picture(person.page, path.join(pictures, task.name + '.webp'));
  } catch (err) {
    Object.assign(verdict, {ok: false, error: err.message});
    await person.page?.screenshot({path: path.join(dir, task.name + '-' + way + '.png')}).catch(() => {});
  }
  await person.close();
  console.log(JSON.stringify({...verdict, steps: person.steps, ms: Math.round(performance.now() - began)}));
}

for (const task of tasks.filter(t => !wanted.length || wanted.includes(t.name))) for (const way of ['mouse', 'keyboard']) await perform(task, way);
await close();

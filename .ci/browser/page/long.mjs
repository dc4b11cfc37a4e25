#!/usr/bin/env node
// Opens a long page in headless Chromium and measures it: how long until the first row can be read, and until all of it is there, and how
// much memory the page then takes. usage: node long.mjs URL WORDS. All of it is there when the totals at the top hold the words.
// It prints one line of JSON: milliseconds and bytes.
import {launch} from './browser.mjs';
import {readFileSync} from 'node:fs';

const [url, words] = process.argv.slice(2);
const browser = await launch();
const page = await (await browser.newContext({viewport: {width: 1440, height: 900}})).newPage();
page.setDefaultTimeout(300000);

// The page itself notes when the first row is drawn.
await page.addInitScript(() => {
  const look = () => document.querySelector('.row .text') ? window.firstRow = performance.now() : requestAnimationFrame(look);
  requestAnimationFrame(look);
});
await page.goto(url);
await page.waitForFunction(() => window.firstRow);
await page.waitForFunction(words => document.getElementById('totals').textContent.includes(words), words);
const whole = await page.evaluate(() => performance.now());

// What a page holds when nothing is to be collected, and what its process takes from the machine.
const chrome = await page.context().newCDPSession(page);
await chrome.send('HeapProfiler.collectGarbage');
await chrome.send('Performance.enable');
const {metrics} = await chrome.send('Performance.getMetrics');
const heap = metrics.find(m => m.name === 'JSHeapUsedSize').value;
const all = await (await browser.newBrowserCDPSession()).send('SystemInfo.getProcessInfo');
const renderers = all.processInfo.filter(p => p.type === 'renderer').map(p => resident(p.id));
console.log(JSON.stringify({firstRow: Math.round(await page.evaluate(() => window.firstRow)), whole: Math.round(whole), heap, process: Math.max(...renderers)}));
await browser.close();

// resident returns the memory of a process that it does not share with others, where the system tells.
function resident(pid) {
  try {
    const line = readFileSync('/proc/' + pid + '/smaps_rollup', 'utf8').match(/^Private_Dirty: +(\d+) kB/m);
    return Number(line[1]) * 1024;
  } catch {
    return 0;
  }
}

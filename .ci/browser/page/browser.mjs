// Starts the browser of a check: Chromium, or Firefox if PLAIT_BROWSER=firefox. Playwright drives both, Firefox over WebDriver BiDi, so
// a check is written once. CHROMIUM and FIREFOX name other binaries.
import {chromium, firefox} from 'playwright-core';
import {existsSync, mkdtempSync, readFileSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import path from 'node:path';

export const inFirefox = process.env.PLAIT_BROWSER === 'firefox';

const chromiumArgs = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync'];

// launch starts the browser with a new profile. The browser is ended and the profile removed by close, and when this process exits.
export function launch(firefoxUserPrefs = {}) {
  if (!inFirefox) return chromium.launch({executablePath: process.env.CHROMIUM || '/usr/bin/chromium', args: chromiumArgs, timeout: 180000});
  return firefox.launch({channel: 'moz-firefox', executablePath: process.env.FIREFOX || '/usr/bin/firefox-esr', firefoxUserPrefs, downloadsPath: downloads(), timeout: 180000});
}

const browsers = new Map();

// newContext opens a window of its own, as browser.newContext does. Debian's Firefox cannot be asked over WebDriver BiDi for dark colors,
// less motion or no JavaScript. It reads them from its preferences when it starts, so a second browser has the first two, and a third the last.
export async function newContext({colorScheme = 'light', reducedMotion = 'no-preference', javaScriptEnabled = true, ...options} = {}) {
  const other = colorScheme === 'dark' || reducedMotion === 'reduce';
  const preferences = inFirefox ? {
    'layout.css.prefers-color-scheme.content-override': other ? 0 : 1,
    'ui.prefersReducedMotion': other ? 1 : 0,
    'javascript.enabled': javaScriptEnabled,
  } : {};
  const key = JSON.stringify(preferences);
  if (!browsers.has(key)) browsers.set(key, launch(preferences));
  return (await browsers.get(key)).newContext(inFirefox ? options : {colorScheme, reducedMotion, javaScriptEnabled, ...options});
}

// close ends the browsers that newContext started.
export async function close() {
  for (const browser of browsers.values()) await (await browser).close();
}

// watch records what a page must not do: a request that allows(url) refuses, a dialog, another window, an error, a violation of its
// policy, markup that it does not make itself, a script that ran. The function that it returns lists them.
export async function watch(page, allows) {
  const sins = [];
  await page.context().route('**/*', route => {
    const url = route.request().url();
    if (allows(url) || url.startsWith('blob:') || url.startsWith('data:image/')) return route.continue();
    sins.push('request: ' + url);
    return route.abort();
  });
  page.on('dialog', dialog => { sins.push('dialog: ' + dialog.message()); dialog.dismiss().catch(() => {}); });
  page.on('popup', popup => sins.push('popup: ' + popup.url()));
  page.on('pageerror', err => sins.push('error: ' + err.stack));
  page.on('console', message => message.type() === 'error' && sins.push(message.text().replace(/^sin: |^/, word => word ? '' : 'console: ')));
  await page.addInitScript(sentinel);
  return async () => {
    const ran = await page.evaluate(() => !!(window.pwned || window.__pwned));
    return ran ? [...sins, 'a script ran'] : sins;
  };
}

// sentinel runs in the page. It writes to the console, which is still there when the page leads to another one.
function sentinel() {
  const sin = what => console.error('sin: ' + what);
  document.addEventListener('securitypolicyviolation', event => sin('violation: ' + event.violatedDirective + ' ' + event.blockedURI));

  // The elements that a page makes. None has a handler in an attribute, or an address of another origin.
  const known = new Set(('a article b button code dd del details div dl dt form g h1 h2 h3 header hr img input ins label li main mark nav noscript ol option p ' +
    'path pre rect script section select small span summary svg table tbody td text textarea th thead time title tr tspan u ul').split(' '));
  const look = e => {
    const odd = [...e.attributes].find(({name, value}) => name.startsWith('on') || ['action', 'formaction', 'srcdoc'].includes(name) ||
      ['href', 'src', 'xlink:href'].includes(name) && /^\s*[a-z][a-z0-9+.-]*:/i.test(value) && !value.startsWith('blob:'));
    if (odd || !known.has(e.localName)) sin('markup: ' + e.outerHTML.slice(0, 200));
  };
  const lookInto = e => { look(e); e.querySelectorAll('*').forEach(look); };
  addEventListener('DOMContentLoaded', () => {
    document.body.querySelectorAll('*').forEach(look);
    new MutationObserver(changes => changes.forEach(change => change.addedNodes.forEach(e => e.nodeType === 1 && lookInto(e))))
      .observe(document.body, {childList: true, subtree: true});
  });
}

// tooPale lists the visible texts whose contrast with what they lie on is below 4.5 (WCAG AA). It runs in the page.
export function tooPale() {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgba = color => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
  const light = ([r, g, b]) => [r, g, b].map(c => c / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = e => { for (; e; e = e.parentElement) { const color = rgba(getComputedStyle(e).backgroundColor); if (color[3] === 255) return color; } return [255, 255, 255]; };
  const opacity = e => { let all = 1; for (; e; e = e.parentElement) all *= getComputedStyle(e).opacity; return all; };
  const found = new Set();
  for (const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT); walker.nextNode();) {
    const e = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || e.closest('script, noscript, title, .away, .filtered, :disabled') || !e.checkVisibility({visibilityProperty: true})) continue;
    const style = getComputedStyle(e), box = e.closest('svg')?.querySelector(':scope > rect'); // a text of a drawing lies in its box
    const under = box ? rgba(getComputedStyle(box).fill) : behind(e), part = opacity(e);
    const over = rgba(e.closest('svg') ? style.fill : style.color).map((c, i) => c * part + under[i] * (1 - part));
    const [x, y] = [over, under].map(light);
    const ratio = (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
    if (ratio < 4.5) found.add((e.getAttribute('class') || e.localName) + ' in ' + e.parentElement.getAttribute('class') + ' ' + ratio.toFixed(2));
  }
  return [...found];
}

const axe = readFileSync(new URL('node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');

// barriers lists what axe-core finds on a page for people who use it without a mouse or without their eyes. The markup is the same in
// Firefox, where axe takes much longer, so it looks in Chromium alone.
export async function barriers(page) {
  if (inFirefox) return [];
  await page.evaluate(axe + ';0');
  return page.evaluate(async () => (await window.axe.run({resultTypes: ['violations']})).violations.map(({id, nodes}) =>
    id + ': ' + nodes.slice(0, 5).map(node => node.html.slice(0, 160) + ' ' + (node.any[0]?.message || '')).join(' | ')));
}

let folder;

// downloads returns the folder of Firefox's downloads, which is removed when this process exits.
function downloads() {
  if (folder) return folder;
  folder = mkdtempSync(path.join(tmpdir(), 'plait-downloads-'));
  process.on('exit', () => rmSync(folder, {recursive: true, force: true}));
  return folder;
}

// downloaded returns the text of the file that act makes the page download under a name. Playwright does not report a download in
// Firefox, which lies in the folder.
export async function downloaded(page, name, act) {
  if (!inFirefox) {
    const [download] = await Promise.all([page.waitForEvent('download'), act()]);
    if (download.suggestedFilename() !== name) throw new Error('the name of the download: ' + download.suggestedFilename());
    return readFileSync(await download.path(), 'utf8');
  }
  const file = path.join(folder, name);
  rmSync(file, {force: true});
  await act();
  for (let text = '', before; ; before = text) {
    await page.waitForTimeout(100);
    if (existsSync(file)) text = readFileSync(file, 'utf8');
    if (text && text === before) return text;
  }
}

// printed returns the texts of the elements that the page has on paper, and the length of the PDF. In Firefox the page is on paper only
// while it is printed; there, the elements are read by then.
export async function printed(page, css) {
  const read = () => page.evaluate(css => [...document.querySelectorAll(css)].map(e => e.textContent), css);
  if (!inFirefox) {
    await page.emulateMedia({media: 'print'});
    await page.waitForSelector(css, {state: 'attached'});
    return {texts: await read(), bytes: (await page.pdf()).length};
  }
  await page.evaluate(css => addEventListener('beforeprint', () => {
    window.printed = [...document.querySelectorAll(css)].map(e => e.textContent);
  }, {once: true}), css);
  const bytes = (await page.pdf()).length;
  return {texts: await page.evaluate(() => window.printed), bytes};
}

// within fails if the work takes longer than the milliseconds, as it does in a browser that hangs. Its error has hangs set: the caller
// reports it and exits, which ends the browser, too.
export async function within(ms, work) {
  let timer;
  const late = new Promise((_, fail) => {
    timer = setTimeout(() => fail(Object.assign(new Error('the browser did not answer within ' + ms / 1000 + ' s'), {hangs: true})), ms);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

// outside returns which elements of a page lie outside the window, or hold more than is seen. It is for page.evaluate.
export const outside = css => [...document.querySelectorAll(css)].filter(e => {
  const box = e.getBoundingClientRect();
  return box.width > 0 && (box.left < 0 || box.right > innerWidth || e.clientWidth > 0 && e.scrollWidth > e.clientWidth + 1);
}).map(e => e.outerHTML.slice(0, 200));

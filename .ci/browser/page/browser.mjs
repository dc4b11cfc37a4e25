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
  if (!inFirefox) return chromium.launch({executablePath: process.env.CHROMIUM || '/usr/bin/chromium', args: chromiumArgs, timeout: 60000});
  return firefox.launch({channel: 'moz-firefox', executablePath: process.env.FIREFOX || '/usr/bin/firefox-esr', firefoxUserPrefs, downloadsPath: downloads(), timeout: 60000});
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

// Starts the browser of a check: Chromium, or Firefox if PLAIT_BROWSER=firefox. Playwright drives both, Firefox over WebDriver BiDi, so
// a check is written once. CHROMIUM and FIREFOX name other binaries.
import {chromium, firefox} from 'playwright-core';

export const inFirefox = process.env.PLAIT_BROWSER === 'firefox';

const chromiumArgs = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync'];

// launch starts the browser with a new profile. The browser is ended and the profile removed by close, and when this process exits.
// Over WebDriver BiDi, a person's preferences cannot be changed while Firefox runs: a browser that needs others is started with them.
export function launch({dark = false, reducedMotion = false} = {}) {
  if (!inFirefox) return chromium.launch({executablePath: process.env.CHROMIUM || '/usr/bin/chromium', args: chromiumArgs, timeout: 60000});

  const firefoxUserPrefs = {
    'layout.css.prefers-color-scheme.content-override': dark ? 0 : 1,
    'ui.prefersReducedMotion': reducedMotion ? 1 : 0,
  };
  return firefox.launch({channel: 'moz-firefox', executablePath: process.env.FIREFOX || '/usr/bin/firefox-esr', firefoxUserPrefs, timeout: 60000});
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

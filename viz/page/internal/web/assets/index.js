// The list of conversations of a server that has several. Each links to its page.

import {$, el, nextTheme, show} from './dom.js';
import {ask, drawRefused, live, token} from './live.js';
import {config} from './page.js';
import {count} from './words.js';

const list = {text: '', entries: []};

// beginIndex shows the list, and asks for it again while the page is visible.
export async function beginIndex() {
  live.token = token();
  document.querySelector('main').hidden = true;
  for (const id of ['heads', 'open-compare', 'problems', 'share', 'show-help']) $(id).hidden = true;
  $('index').hidden = false;
  $('theme').addEventListener('click', nextTheme);
  $('index-find').addEventListener('input', drawIndex);
  document.addEventListener('keydown', pressInIndex);
  for (;;) {
    if (!document.hidden) await learnIndex();
    if (live.refused) return;
    await new Promise(resolve => setTimeout(resolve, 2000));
  }
}

// learnIndex asks for the list.
async function learnIndex() {
  try {
    const text = await (await ask('list')).text();
    live.known = true;
    if (text !== list.text || live.error) Object.assign(list, {text, entries: JSON.parse(text).entries});
    live.error = '';
  } catch (err) {
    Object.assign(live, {refused: Boolean(err.refused), withoutToken: err.status === 401, error: err.message});
    if (live.refused) drawRefused();
  }
  drawIndex();
}

// drawIndex shows the entries that hold what was typed. Where nothing changed but the time, links keep the focus.
function drawIndex() {
  show($('index-error'),
    live.error && el('div', {class: 'error', role: 'alert'}, 'The list is not up to date: ' + live.error));
  const wanted = $('index-find').value.trim().toLowerCase();
  const shown =
    list.entries.filter(e => [e.key, e.state, e.detail].some(text => (text || '').toLowerCase().includes(wanted)));
  const waits = list.entries.filter(e => e.waits).length;
  show($('totals'),
    list.text && [count(list.entries.length, 'conversation'), waits > 0 && ', ' + waits + ' waiting for a person',
      wanted && ', ' + shown.length + ' shown']);
  document.title = (waits ? '(' + waits + ') ' : '') + config.title;

  const signature = JSON.stringify(shown);
  if (signature !== list.signature) {
    list.signature = signature;
    const focused = document.activeElement?.dataset.path;
    show($('entries'), shown.map(entryRow));
    if (focused) {
      [...document.querySelectorAll('#entries a')].find(a => a.dataset.path === focused)?.focus({preventScroll: true});
    }
  }
  for (const time of document.querySelectorAll('#entries time')) show(time, ago(time.dateTime));
  $('no-entries').hidden = shown.length > 0 || !list.text;
}

// entryRow is the row of a conversation. The token goes to its page in the link.
function entryRow(entry) {
  return el('tr', {class: entry.waits ? 'waits' : null},
    el('td', {}, el('a', {href: entry.path + '#token=' + encodeURIComponent(live.token), 'data-path': entry.path},
      entry.key)),
    el('td', {}, entry.state && el('span', {class: 'badge ' + stateStyle(entry.state)}, entry.state)),
    el('td', {class: 'detail'}, entry.detail),
    el('td', {class: 'number'}, entry.changed && el('time', {datetime: entry.changed, title: entry.changed})));
}

// stateStyle colors a state: what failed, what needs a person, what is under way.
export const stateStyle = state => state === 'failed' ? 'bad' : ['paused', 'in doubt', 'parked'].includes(state) ? 'odd'
  : state === 'running' ? 'on' : '';

// ago is how long ago a time was.
export function ago(time) {
  const seconds = (Date.now() - Date.parse(time)) / 1000;
  for (const {size, name} of [{size: 86400, name: 'd'}, {size: 3600, name: 'h'}, {size: 60, name: 'min'}]) {
    if (seconds >= size) return Math.floor(seconds / size) + ' ' + name + ' ago';
  }
  return 'just now';
}

// pressInIndex moves between the links by keys.
function pressInIndex(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const writing = event.target === $('index-find');
  const links = [...document.querySelectorAll('#entries a')], here = links.indexOf(document.activeElement);
  const step = {ArrowDown: 1, ArrowUp: -1, ...(writing ? {Enter: 1} : {j: 1, k: -1})}[event.key];
  if (step) links[Math.max(0, Math.min(links.length - 1, here + step))]?.focus();
  else if (event.key === '/' && !writing) $('index-find').focus();
  else return;
  event.preventDefault();
}

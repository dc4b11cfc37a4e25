// Keys, and the beginning.

import {$, el, kept, nextTheme, show, status, theme, themes} from '../dom.js';
import {closePanel, compare, detail, openAddress} from './detail.js';
import {data, gone, keyNames, shownAtFirst, view} from './rows.js';
import {nextPath} from './side.js';
import {at, choose, draw, nextBad, onlyCause, onlyPath, shown, sortBack, sortNext, step} from './table.js';

function help() {
  $('help').hidden = !$('help').hidden;
  if (!$('help').hidden) $('help').focus();
}

// escape closes what is open, or else drops the filters.
function escape() {
  if (closePanel()) return;
  view.outcome = view.failure = view.cause = view.words = $('search').value = '';
  view.path = 0;
  draw();
}

// nextGroup groups by the next key, and after the last one not at all.
function nextGroup() {
  const keys = ['', ...keyNames];
  groupBy(keys[(keys.indexOf(view.group) + 1) % keys.length]);
  status(view.group ? 'Grouped by ' + view.group : 'Not grouped');
}

// groupBy groups the rows by a key, with all groups open.
function groupBy(key) {
  view.group = $('group').value = key;
  view.closed.clear();
  draw();
}

const keys = {
  j: () => step(1), ArrowDown: () => step(1), k: () => step(-1), ArrowUp: () => step(-1), PageDown: () => step(10),
  PageUp: () => step(-10),
  Home: () => step(-Infinity), End: () => step(Infinity), e: () => nextBad(1), E: () => nextBad(-1),
  '[': () => nextPath(-1), ']': () => nextPath(1), Enter: () => view.at && detail(view.at),
  x: () => view.at && choose(view.at), ' ': () => view.at && choose(view.at),
  c: compare, '=': compare, p: () => view.at && onlyPath(view.at.path), g: nextGroup, s: sortNext, S: sortBack,
  w: () => view.at && (view.at.cause || view.cause ? onlyCause(view.cause || view.at.cause.kind)
    : status('This conversation did not fail.')),
  '/': () => { $('search').focus(); $('search').select(); }, '?': help, Escape: escape,
};

// press finds what a key does, where nobody is writing.
function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const target = event.target;
  if (target.closest('input[type=search], select')) {
    if (event.key !== 'Escape' && !(event.key === 'Enter' && target.id === 'search')) return;
    event.preventDefault();
    $('scroll').focus();
    return;
  }
  if (target.closest('button, a, summary') && (event.key === 'Enter' || event.key === ' ')) return;
  // the arrow keys scroll there
  if (target.closest('#detail, #compare, #help') && event.key !== 'Escape' && event.key !== '?') return;
  const act = keys[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

// begin shows the table, and the conversation that the address names.
function begin() {
  theme(themes.includes(kept.get('theme')) ? kept.get('theme') : themes[0]);
  data.rows.forEach((row, i) => { row.index = i; });
  show($('group'), el('option', {value: ''}, 'nothing'),
    keyNames.map(key => el('option', {value: key}, key.replace(/^label /, ''))));
  document.addEventListener('keydown', press);
  $('search').addEventListener('input', event => { view.words = event.target.value.trim(); draw(); });
  $('group').addEventListener('change', event => groupBy(event.target.value));
  $('more').addEventListener('click', () => { view.most = Math.max(view.most, shownAtFirst) + shownAtFirst; draw(); });
  $('open-compare').addEventListener('click', compare);
  $('show-help').addEventListener('click', help);
  $('theme').addEventListener('click', nextTheme);
  draw();
  // of the first rows; what went wrong is what most people came for
  const bad = shown.find(row => gone.has(row.outcome));
  if (bad) at(bad);
  $('scroll').focus({preventScroll: true});
  window.addEventListener('hashchange', openAddress);
  openAddress();
}

begin();

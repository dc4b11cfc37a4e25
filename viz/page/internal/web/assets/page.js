// The page: what the person does, and how it begins.

import {closeCompare, comparing, headName, openCompare} from './compare.js';
import {closeShare, drawShare, shareKey, toShare} from './copies.js';
import {$, decodeURIComponentSafe, el, fill, holdBack, kept, nextTheme, show, status, theme, themes} from './dom.js';
import {stepFold, unfoldTo} from './folds.js';
import {markFound} from './found.js';
import {
  apply, byNumber, conversationOf, endOf, graph, headsOf, nodeOf, numberOf, placeOf, siblings, sums,
} from './graph.js';
import {beginIndex} from './index.js';
import {inspect, keyOfID, longText, totals} from './inspector.js';
import {connect, drawLive, drawOrigin, live, post, tokenInAddress, toTail} from './live.js';
import {
  at, crumbs, drawRows, enter, filtering, follow, layRows, passes, reveal, rowOf, rows, scrollToRow, toggle,
} from './outline.js';
import {graphAlone, listenToPanes} from './panes.js';
import {toArguments, toWaiting} from './pause.js';
import {drawPicture, fit, home, layPicture, listenToPicture, look, zoom} from './picture.js';
import {fenced} from './reading.js';
import {toRequest} from './request.js';
import {listenToViews, offerFound, openView, showInView, viewKey} from './views.js';
import {count, isMessage, label, line, words} from './words.js';

export const config = JSON.parse($('config').textContent);
export const deltas = new Map((config.static?.requests || []).map(delta => [delta.key, delta]));

// select goes to a node, wherever it is.
export function select(key, how = {}) {
  if (!graph.places.has(key)) return;
  if (comparing()) closeCompare();
  if (!how.quiet && !how.follow && live.following && config.live) {
    live.following = false;
    drawLive();
  }
  at.selected = key;
  if (!at.onPath.has(key) || conversationOf(key) !== at.owner) {
    follow(endOf(key));
    drawTop();
  }
  reveal(key);
  scrollToRow();
  drawRows(true);
  inspect();
  unfoldTo(key);
  look(key);
  showInView(key);
  crumbs();
  if (!how.first) address();
}

// address follows with a moment's delay: browsers stop pages that change it all the time, as a key that is held down
// does.
let addressTimer;
function address() {
  clearTimeout(addressTimer);
  const before = location.hash;
  addressTimer = setTimeout(() => {
    if (location.hash !== before) return; // it was changed from outside: it names the node to select next
    if (nodeOf(at.selected)) history.replaceState(null, '', linkTo(at.selected));
  }, 200);
}

// linkTo is the address of a node within the page. It names the node by its id: numbers shift when another branch
// grows.
export const linkTo = key => '#' + nodeOf(key).id;

// sharedLink is an address that opens the page elsewhere, at the selected node. That of a live page has the token.
export function sharedLink() {
  const parts = [config.live && 'token=' + encodeURIComponent(live.token), nodeOf(at.selected)?.id];
  return location.href.split('#')[0] + '#' + parts.filter(Boolean).join('&');
}

// drill goes into the conversation inside a node.
export function drill(key) {
  const heads = nodeOf(key).opens;
  if (!heads) return;
  follow(heads[0]);
  drawTop();
  select(at.path[0]);
  status('In ' + line(label(key), 60) + ' of n' + numberOf(key) + '. Backspace goes back.');
}

// back leaves what was opened last: a comparison, a search, a sub-agent.
function back() {
  if (comparing()) closeCompare();
  else if (!$('help').hidden) help(false);
  else if (filtering()) clearFilters();
  else if (at.owner !== null) select(at.owner);
}

// step goes some rows down, or up.
function step(n) {
  let place = rowOf(at.selected);
  if (place < 0) place = n > 0 ? -1 : rows.length;
  for (place += n; rows[place]?.hidden && rows[place + n]; place += n);
  if (rows[place] && !rows[place].hidden) select(rows[place].key);
}

// problem goes to the next problem in reading order, or the one before; round and round.
function problem(n) {
  const keys = [...new Set(graph.problems.map(p => p.key))].filter(key => graph.places.has(key)).sort(byNumber);
  if (!keys.length) {
    status('Nothing went wrong.');
    return;
  }
  select(around(keys, n));
  const bad = nodeOf(at.selected).problems;
  status((keys.indexOf(at.selected) + 1) + ' of ' + keys.length + ': ' + bad.map(p => p.what).join('; '));
}

// around is the key after the selected node, or the one before it, and from the end to the beginning.
export function around(keys, n) {
  const here = numberOf(at.selected) ?? -1;
  return n > 0 ? keys.find(key => numberOf(key) > here) ?? keys[0]
    : keys.findLast(key => numberOf(key) < here) ?? keys[keys.length - 1];
}

// sibling goes to the next sibling, or the one before; round and round.
function sibling(n) {
  const keys = siblings(at.selected);
  const next = keys[(keys.indexOf(at.selected) + n + keys.length) % keys.length];
  if (keys.length < 2) status('It has no siblings.');
  else select(next);
}

// toParent goes to the first parent. From the beginning of a sub-agent's conversation it goes to the call.
function toParent() {
  const [parent] = nodeOf(at.selected)?.parents || [];
  if (parent !== undefined) select(parent);
  else if (at.owner !== null) select(at.owner);
}

// toChild goes to the child on the path, or else to the first one.
function toChild() {
  const kids = nodeOf(at.selected)?.kids || [];
  const kid = kids.find(k => at.onPath.has(k)) ?? kids[0];
  if (kid !== undefined) select(kid);
}

// unfold opens or closes the fold of the selected row. Closing from a row inside goes to the row around it.
function unfold(open) {
  const row = rows[rowOf(at.selected)];
  if (row?.inner && row.open !== open) toggle(row);
  else if (!open && row?.level === 2) {
    select(rows.slice(0, rowOf(at.selected)).findLast(r => r.level === 1 && !r.hidden)?.key);
  }
}

// searchSoon searches while somebody types: at once, or in a pause of the typing where a search takes long.
let searching = {timer: null, took: 0};
function searchSoon(text) {
  clearTimeout(searching.timer);
  const run = () => {
    const began = performance.now();
    search(text);
    searching = {timer: null, took: performance.now() - began};
  };
  if (searching.took < 50) run();
  else searching.timer = setTimeout(run, 250);
}

// search shows the nodes with a text, on the path and in the list of matches.
function search(text) {
  clearTimeout(searching.timer);
  at.query = text.trim().toLowerCase();
  layRows();
  drawPicture();
  found();
  offerFound();
  markFound();
}

// matches are the nodes that the filters leave, on all branches and in all sub-agents.
export function matches() {
  return graph.order.filter(passes);
}

// found shows the number of matches, and how many of them are not on the path.
function found() {
  const all = filtering() ? matches() : [];
  const here = all.filter(key => at.onPath.has(key)).length;
  show($('found'),
    filtering() && matchCount(all.length) + (all.length > here ? ', ' + (all.length - here) + ' elsewhere' : ''));
}

export const matchCount = n => count(n, 'match').replace('matchs', 'matches');

// nextMatch goes to the next match in reading order, or the one before; round and round.
function nextMatch(n) {
  const all = matches();
  if (all.length) select(around(all, n));
}

// clearFilters ends a search and shows all nodes of the path again.
export function clearFilters() {
  at.query = '';
  at.onlyProblems = false;
  at.shown = new Set(['user', 'assistant', 'tools', 'other']);
  $('search').value = '';
  drawFilters();
  layRows();
  if (at.selected !== null) reveal(at.selected);
  scrollToRow();
  drawRows(true);
  drawPicture();
  found();
  offerFound();
  markFound();
}

const filters = [['user', 'user'], ['assistant', 'assistant'], ['tools', 'tools'], ['other', 'setup']];

function drawFilters() {
  const change = act => () => {
    act();
    drawFilters();
    layRows();
    drawPicture();
    found();
  };
  show($('filters'),
    filters.map(([name, text]) => el('button', {'aria-pressed': String(at.shown.has(name)), onclick: change(() => {
    if (!at.shown.delete(name)) at.shown.add(name);
  })}, text)),
  el('button',
    {'aria-pressed': String(at.onlyProblems), title: '!', onclick: onlyProblems}, 'only problems'));
}

// onlyProblems shows the rows with a problem alone, or all again.
function onlyProblems() {
  at.onlyProblems = !at.onlyProblems;
  drawFilters();
  layRows();
  drawPicture();
  found();
}

// drawTop shows what belongs to the conversation as a whole.
export function drawTop() {
  const heads = headsOf(at.owner);
  const keys =
    [...new Set([...heads, ...(at.owner === null ? graph.refs.flatMap(ref => ref.keys) : []),
      ...(at.end === null ? [] : [at.end])])].filter(key => graph.places.has(key));
  show($('heads'), keys.map(key => el('option', {value: key}, headName(key))));
  $('heads').value = String(at.end);
  $('heads').hidden = keys.length < 2;
  $('open-compare').hidden = keys.length < 2;
  const unknown = config.live && !live.known; // nothing has arrived yet: there is nothing to count
  $('problems').hidden = $('totals').hidden = unknown;
  const grave = graph.problems.filter(p => p.grave).length;
  show($('problems'), problemCount(grave, graph.problems.length - grave));
  $('problems').className = grave ? 'bad' : graph.problems.length ? 'odd' : 'fine';
  show($('totals'), totals(sums(graph.order)));
  $('totals').title = $('totals').textContent;
}

// problemCount counts what failed apart from what is merely worth a look.
function problemCount(failures, notes) {
  if (!failures) return notes ? '! ' + count(notes, 'note') : '✓ no problems';
  return '✕ ' + count(failures, 'failure') + (notes ? ', ' + count(notes, 'note') : '');
}

// help opens the list of keys, or closes it.
function help(open = $('help').hidden) {
  $('help').hidden = !open;
  if (open) $('help').focus();
  else $('outline').focus();
}

// paper lays out the whole path for print, where nothing can be opened.
function paper() {
  if ($('paper').childElementCount) return;
  fill($('paper'), [el('h1', {}, config.title), at.path.map(key => el('section', {class: placeOf(key).style},
    el('h2', {}, 'n' + numberOf(key) + ' ' + line(label(key), 80),
      nodeOf(key).problems.some(p => p.grave) && ' · failed'),
    paperText(key)))]);
}

// paperText is the text of a node. Code, and what tools received and returned, is in a monospaced font.
function paperText(key) {
  const text = words(key);
  if (!isMessage(key)) return el('div', {class: 'said mono'}, text);
  return text.length > longText ? el('div', {class: 'said'}, text) : fenced(text);
}

function unpaper() { show($('paper')); }

// keys are what the keyboard does, where nobody is writing.
const keys = {
  j: () => step(1), ArrowDown: () => step(1), k: () => step(-1), ArrowUp: () => step(-1),
  PageDown: () => step(15), PageUp: () => step(-15), Home: () => rows.length && select(rows[0].key),
  End: () => rows.length && select(rows[rows.length - 1].key),
  ArrowRight: () => unfold(true), ArrowLeft: () => unfold(false),
  '[': () => sibling(-1), ']': () => sibling(1), p: toParent, c: toChild,
  e: () => problem(1), E: () => problem(-1), n: () => nextMatch(1), N: () => nextMatch(-1),
  Enter: () => enter(rows[rowOf(at.selected)]), Backspace: back, Escape: back,
  '/': () => { $('search').focus(); $('search').select(); }, '?': () => help(), y: toShare,
  a: toWaiting, i: toArguments, '!': onlyProblems,
  r: toRequest, f: () => stepFold(1), F: () => stepFold(-1), '+': () => zoom(1.25), '-': () => zoom(0.8), 0: fit,
  w: graphAlone,
  '=': () => openCompare(),
  1: () => openView('graph'), 2: () => openView('calls'), 3: () => openView('timeline'), 4: () => openView('cache'),
  5: () => at.query && openView('found-view'),
};

// press finds what a key does: in a field, in a menu or a pane, in the view with the focus, and then on the page.
function press(event) {
  const target = event.target;
  if (target.closest('#waiting') && event.key === 'Enter' && event.shiftKey && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    document.querySelector('#waiting button.all')?.click();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (target.id === 'search' && event.key === 'ArrowDown' && at.query) {
    event.preventDefault();
    openView('found-view');
    return;
  }
  if (target.closest('input, textarea, select')) {
    if (event.key !== 'Escape') return;
    event.preventDefault(); // the field would be emptied
    $('outline').focus();
    return;
  }
  if (target.closest('button, a, summary') && (event.key === 'Enter' || event.key === ' ')) return;
  if (event.key === 'Escape' && closeShare()) {
    event.preventDefault();
    return;
  }
  if (target.closest('#share-menu') && shareKey(event)) {
    event.preventDefault();
    shareKey(event)();
    return;
  }
  if (target.closest('#inspector, #compare, #help') && /^(Arrow|Page|Home|End)/.test(event.key)) return; // they scroll
  const act = viewKey(event) || keys[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

// nameInAddress returns the name of a node in the address, perhaps after a token; '' for none.
export const nameInAddress = () =>
  decodeURIComponentSafe(location.hash.slice(1).split('&').find(part => !part.startsWith('token=')) ?? '');

// fromAddress is the node that the address names: #n12 or #id.
const fromAddress = () => keyNamed(nameInAddress());

// keyNamed returns the key of the node with a number (n12) or an ID; null for none.
export function keyNamed(name) {
  const number = /^n(\d+)$/.exec(name);
  if (number) return graph.order[Number(number[1])] ?? null;
  return name ? keyOfID(name.toLowerCase()) : null;
}

// listen connects the page with its elements and the window.
function listen() {
  document.addEventListener('keydown', press);
  $('outline').addEventListener('scroll', () => drawRows(false), {passive: true});
  new ResizeObserver(() => drawRows(true)).observe($('outline'));

  $('search').addEventListener('input', event => searchSoon(event.target.value));
  $('search').addEventListener('keydown', event => { 
    if (event.key !== 'Enter') return;
    if (at.query !== event.target.value.trim().toLowerCase()) search(event.target.value);
    nextMatch(event.shiftKey ? -1 : 1);
  });

  $('heads').addEventListener('change', event => select(Number(event.target.value)));
  $('problems').addEventListener('click', () => problem(1));
  $('open-compare').addEventListener('click', () => openCompare());
  $('show-help').addEventListener('click', () => help());

  $('theme').addEventListener('click', nextTheme);
  $('closer').addEventListener('click', () => zoom(1.25));
  $('further').addEventListener('click', () => zoom(0.8));
  $('fit').addEventListener('click', fit);
  $('to-waiting').addEventListener('click', toWaiting);

  $('follow').addEventListener('click', () => {
    live.following = !live.following;
    drawLive();
    if (live.following) toTail();
  });

  $('stop').addEventListener('click', () => post('stop', {}).catch(err => status('Not stopped: ' + err.message)));
  $('share').querySelector('summary').addEventListener('click', drawShare);
  document.addEventListener('pointerdown', event => { if (!event.target.closest('#share')) closeShare(); });
  $('alone').addEventListener('click', graphAlone);
  listenToPanes();

  window.addEventListener('hashchange', () => {
    if (config.live && tokenInAddress.test(location.hash)) { // a link was opened in place of this page
      location.reload();
      return;
    }

    const key = fromAddress();
    if (key !== null && key !== at.selected) select(key);
  });

  window.addEventListener('beforeprint', paper);
  window.addEventListener('afterprint', unpaper);
  matchMedia('print').addEventListener('change', event => event.matches ? paper() : unpaper());

  listenToPicture();
  listenToViews();
}

// inPage takes the conversation out of the page: it is in graph then, and need not be there twice. A long one is compressed.
async function inPage() {
  const {type, textContent} = $('patch');
  $('patch').remove();
  if (type === 'application/json') return JSON.parse(textContent);
  const bytes = Uint8Array.from(atob(textContent), c => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))).json();
}

// begin shows the conversation in the page, or the list of a server, and connects a live page.
async function begin() {
  theme(themes.includes(kept.get('theme')) ? kept.get('theme') : themes[0]);
  if (config.index) {
    beginIndex();
    return;
  }

  apply(await inPage());
  listen();
  drawFilters();
  follow(graph.heads[0] ?? null);

  const named = fromAddress();
  drawTop();
  layPicture();
  home();

  holdBack();
  for (const e of document.querySelectorAll('.live-only')) e.hidden = !config.live;
  if (config.live) {
    live.wanted = nameInAddress();
    connect();
    drawLive();
    setInterval(drawOrigin, 10000);
    if (config.up) $('up').href = config.up + '#token=' + encodeURIComponent(live.token);
    $('up').hidden = !config.up;
  }

  if (named !== null) live.following = false;
  // what went wrong is what most people came for
  const first = named ?? graph.problems.find(p => p.grave)?.key ?? at.path[0];
  if (first !== undefined) select(first, {first: true});
  else inspect();

  crumbs();
  $('outline').focus({preventScroll: true});
}

begin();

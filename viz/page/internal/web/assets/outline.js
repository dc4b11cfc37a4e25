// The outline: the path to a head, a row a turn, oldest first. All rows have the same height, so only those in view
// need to exist.

import {$, el, fill, oneLine, show} from './dom.js';
import {isNamed} from './found.js';
import {branches, conversationOf, inside, nodeOf, numberOf, pathTo, placeOf} from './graph.js';
import {drill, select} from './page.js';
import {staleViews} from './views.js';
import {
  count, duration, group, hasFailed, isCall, isResults, label, line, saidText, summary, tally, tokens,
} from './words.js';

export const rowHeight = 30;

// at is where the person is. rows is what the outline shows of it.
export const at = {
  owner: null,      // the conversation: the node that it hangs on, null for the outermost
  end: null,        // the path leads here
  path: [],
  onPath: new Set(),
  selected: null,
  open: new Set(),  // folds that are open, by their first node
  shown: new Set(['user', 'assistant', 'tools', 'other']),
  onlyProblems: false,
  query: '',
};
/** @type {any[]} */
export let rows = [];
let rowPlaces = new Map(); // where in rows the row of a node is, by key

// follow shows the path to a node of a conversation.
export function follow(end) {
  at.end = end;
  at.owner = end === null || end === undefined ? null : conversationOf(end);
  at.path = end === null || end === undefined ? [] : pathTo(end).filter(key => conversationOf(key) === at.owner);
  if (!at.path.length && end !== null && end !== undefined) at.path = [end];
  at.onPath = new Set(at.path);
  layRows();
}

export const filtering = () => at.query !== '' || at.onlyProblems || at.shown.size < 4;

// passes reports whether the filters leave a node.
export function passes(key) {
  if (!at.shown.has(group(key))) return false;
  if (at.onlyProblems && !nodeOf(key).problems.length) return false;
  return at.query === '' || saidText(key).includes(at.query) || isNamed(key, at.query);
}

// layRows makes all rows anew, after a change of the path, the filters or the folds.
export function layRows() {
  rows = filtering() ? filteredRows() : foldedRows();
  rowPlaces = new Map();
  rows.forEach((row, i) => row.hidden || rowPlaces.set(row.key, i));
  // the last node has the longest number
  $('rows').style.setProperty('--digits', String(numberOf(at.path[at.path.length - 1]) ?? 0).length);
  drawRows(true);
  staleViews();
}

// foldedRows has a row a turn. The executions of a tool phase and the message with their results are one row that
// opens.
function foldedRows() {
  const list = [];
  const taken = new Set();
  for (const key of at.path) {
    if (taken.has(key)) continue;
    const members = phase(key);
    if (!members) {
      list.push({key, level: 1});
      continue;
    }
    const calls = members.filter(member => isCall(member));
    const face = calls.length === 1 ? calls[0] : members[members.length - 1];
    const inner = members.filter(member => member !== face);
    for (const member of members) taken.add(member);
    const open = at.open.has(face);
    list.push({key: face, level: 1, calls, inner, open});
    if (open) for (const member of inner) list.push({key: member, level: 2});
  }
  return list;
}

// phase returns an execution, the executions beside it on the path, and the message with their results; null for other
// nodes, and for a single execution without that message.
function phase(key) {
  if (!isCall(key)) return null;
  const caller = nodeOf(key).parents?.[0];
  const calls = caller === undefined ? [key]
    : nodeOf(caller).kids.filter(kid => at.onPath.has(kid) && isCall(kid));
  const end = nodeOf(key).kids.find(kid => at.onPath.has(kid) && isResults(kid));
  if (end === undefined && calls.length === 1) return null;
  return end === undefined ? calls : [...calls, end];
}

// filteredRows has a row for each node that the filters leave, and a connector where they hide some: a node then does
// not seem to follow directly from the row above it. A connector opens.
function filteredRows() {
  const list = [];
  let hidden = [];
  const connect = () => {
    if (!hidden.length) return;
    const open = at.open.has('c' + hidden[0]);
    list.push({key: hidden[0], level: 1, hidden, open});
    if (open) for (const key of hidden) list.push({key, level: 2});
    hidden = [];
  };
  for (const key of at.path) {
    if (passes(key)) {
      connect();
      list.push({key, level: 1});
    } else hidden.push(key);
  }
  connect();
  return list;
}

// rowOf returns the index of the row that shows a node; -1 if the node is in a closed fold, or not on the path.
export const rowOf = key => rowPlaces.get(key) ?? -1;

// reveal opens the fold around a node.
export function reveal(key) {
  if (rowOf(key) >= 0) return;
  const row = rows.find(r => (r.inner || r.hidden || []).includes(key));
  if (!row) return;
  at.open.add(row.hidden ? 'c' + row.key : row.key);
  layRows();
}

// toggle opens or closes the fold of a row. A connector has a name of its own: its first node may be in the list of
// open folds, too.
export function toggle(row) {
  const fold = row.hidden ? 'c' + row.key : row.key;
  if (!at.open.delete(fold)) at.open.add(fold);
  layRows();
}

// drawRows makes the rows in view. With anew they are made even if they were there.
let drawn = [0, 0];
export function drawRows(anew) {
  const box = $('rows');
  const list = $('outline');
  const first = Math.max(0, Math.floor(list.scrollTop / rowHeight) - 10);
  const last = Math.min(rows.length, first + Math.ceil(list.clientHeight / rowHeight) + 20);
  if (!anew && drawn[0] === first && drawn[1] === last) return;
  drawn = [first, last];
  box.style.height = rows.length * rowHeight + 'px';
  show(box, rows.slice(first, last).map((row, i) => drawRow(row, first + i)));
  const place = rowOf(at.selected);
  if (place >= first && place < last) list.setAttribute('aria-activedescendant', 'row' + place);
  else list.removeAttribute('aria-activedescendant');
}

// drawRow makes row number i: a node, or a connector.
function drawRow(row, i) {
  const foldable = Boolean(row.inner || row.hidden);
  const e = el('div', {
    id: 'row' + i, role: 'treeitem', 'aria-level': row.level, 'aria-setsize': rows.length, 'aria-posinset': i + 1,
    'aria-selected': String(!row.hidden && row.key === at.selected),
    'aria-expanded': foldable ? String(row.open) : null,
    class: ['row', 'level' + row.level, row.hidden ? 'connector' : placeOf(row.key).style].join(' '),
    onclick: () => row.hidden ? toggle(row) : select(row.key), ondblclick: () => enter(row),
  });
  e.style.top = i * rowHeight + 'px';
  if (row.hidden) {
    fill(e, [el('span', {class: 'glyph'}, '⋮'),
      el('span', {class: 'text'}, count(row.hidden.length, 'node') + ' hidden')]);
    return e;
  }
  if (nodeOf(row.key).problems.length || row.inner?.some(key => nodeOf(key).problems.length)) {
    e.classList.add('problem');
  }
  if (row.inner?.concat(row.key).some(key => nodeOf(key).problems.some(problem => problem.grave))) {
    e.classList.add('grave');
  }
  if (nodeOf(row.key).problems.some(problem => problem.grave)) e.classList.add('grave');
  fill(e, [
    el('span', {class: 'number'}, 'n' + numberOf(row.key)),
    el('span', {class: 'glyph', 'aria-hidden': 'true'}, glyph(row.key)),
    foldable && el('button', {class: 'fold', tabindex: -1, 'aria-label': row.open ? 'fold' : 'unfold',
      onclick: event => { event.stopPropagation(); toggle(row); }}, row.open ? '▾' : '▸'),
    rowText(row), badges(row),
  ]);
  return e;
}

// rowText has the errors of a row first, in red: they remain where the row is cut.
function rowText(row) {
  if (row.calls?.length > 1) {
    const failed = row.calls.filter(hasFailed);
    const lines = keys => keys.map(key => line(nodeOf(key).line || '', 60)).filter(Boolean).join(' · ');
    const why = failed.map(key => line(label(key) + ' ' + nodeOf(key).line, 100)).join(' · ');
    return el('span', {class: 'text'}, el('b', {}, line(tally(row.calls.map(label)), 60)), ' ',
      oneLine(failed.length > 0 && el('span', {class: 'why'}, why), failed.length > 0 && ' ',
        lines(row.calls.filter(key => !hasFailed(key)))));
  }
  const why = hasFailed(row.key) && nodeOf(row.key).line;
  return el('span', {class: 'text'}, el('b', {}, line(label(row.key), 60)), ' ',
    oneLine(why && el('span', {class: 'why'}, why), why ? '  ' + (nodeOf(row.key).call || '') : summary(row.key)));
}

const glyphs = {
  system: '◇', tools: '◇', user: '○', assistant: '●', results: '◂', 'tool call': '▪', 'sub-graph': '↳', compaction: '≈',
  run: '▸', stop: '■', record: '✎',
};

export const glyph = key => glyphs[nodeOf(key).sort] || '·';

// badges are what a row shows beside its text: what went wrong, branches, sub-agents, names, tokens and time.
function badges(row) {
  const node = nodeOf(row.key);
  const keys = row.inner ? [row.key, ...row.inner] : [row.key];
  const bad = keys.flatMap(key => nodeOf(key).problems);
  const grave = bad.filter(problem => problem.grave).length;
  const opens = keys.filter(key => nodeOf(key).opens);
  const fork = branches(row.key);
  const ms = row.calls?.length > 1 ? row.calls.reduce((most, key) => Math.max(most, nodeOf(key).ms || 0), 0) : node.ms;
  return el('span', {class: 'badges'},
    node.names.map(name => el('span', {class: 'badge name'}, line(name, 30))),
    bad.length > 0 &&
      el('span', {class: grave ? 'badge bad' : 'badge odd', title: bad.map(problem => problem.what).join('\n')},
      grave ? '✕ ' + (grave > 1 ? grave + ' failed' : 'failed') : '! ' + bad.length),
    node.cache?.broke && el('span', {class: 'badge odd', title: node.cache.text}, '✕ cache'),
    fork.length > 1 && el('span', {class: 'badge branch', title: 'branches: [ and ]'},
      'branch ' + (fork.indexOf(row.key) + 1) + '/' + fork.length),
    opens.length > 0 && el('button', {class: 'badge agent', tabindex: -1, title: 'open the sub-agent (Enter)',
      onclick: event => { event.stopPropagation(); drill(opens[0]); }}, '↳ ' + count(inside(opens).size, 'node')),
    node.usage && el('span', {class: 'badge number'}, tokens(node.usage[1]) + ' out'),
    ms > 0 && el('span', {class: 'badge number'}, duration(ms)));
}

// enter is the action of Enter: it goes into a sub-agent, or opens a fold.
export function enter(row) {
  if (!row) return;
  if (!row.hidden && nodeOf(row.key).opens) drill(row.key);
  else if (row.inner || row.hidden) toggle(row);
}

// scrollToRow brings the row of the selected node into view.
export function scrollToRow() {
  const place = rowOf(at.selected);
  const list = $('outline');
  if (place < 0) return;
  const top = place * rowHeight;
  if (top < list.scrollTop + rowHeight) list.scrollTop = Math.max(0, top - rowHeight);
  else if (top + 2 * rowHeight > list.scrollTop + list.clientHeight) {
    list.scrollTop = top + 2 * rowHeight - list.clientHeight;
  }
}

// crumbs is the way to the conversation that is shown.
export function crumbs() {
  const trail = [];
  for (let owner = at.owner; owner !== null; owner = conversationOf(owner)) trail.unshift(owner);
  show($('crumbs'), trail.length > 0 && [
    el('button', {onclick: () => select(trail[0])}, 'conversation'),
    trail.map((owner, i) => [' › ', el('button', {
      'aria-current': i === trail.length - 1 ? 'true' : null,
      onclick: () => i === trail.length - 1 ? select(owner) : drill(owner),
    }, line(label(owner), 40) + ' n' + numberOf(owner))]),
  ].flat(2));
  $('crumbs').hidden = !trail.length;
}

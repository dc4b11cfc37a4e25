// The table of calls: what each request and each tool call took and cost, and totals by model, tool and sub-agent. As
// in the outline, rows have one height, and only those in view exist.

import {$, el, oneLine, show} from './dom.js';
import {graph, nodeOf, numberOf, placeOf} from './graph.js';
import {costText, isAnswer} from './inspector.js';
import {at, filtering, passes, rowHeight} from './outline.js';
import {select} from './page.js';
import {count, duration, isCall, label, line, summary, tokens} from './words.js';

const calls = {
  by: 'call',   // what a row is: one call, or the calls of one model, tool or sub-agent
  only: null,   // a total: the table shows its calls
  sort: {},     // for each by: the column and the direction that somebody chose
  made: '',     // what the rows were made from
  rows: [],
  row: -1,      // the row that the keyboard is at, for totals
};

const callKinds = [['call', 'calls'], ['model', 'by model'], ['tool', 'by tool'], ['agent', 'by sub-agent']];

// A column has the value that it sorts by, undefined where that is unknown or there is none, and the text of a cell.
const callColumns = {
  n: {head: 'n', title: 'number of the node', of: row => row.n, text: row => row.n === undefined ? '' : 'n' + row.n},
  what: {head: 'what', of: row => row.name,
    text: row => [el('b', {}, line(row.name, 80)), (row.why || row.text) && [' ',
      oneLine(row.why && el('span', {class: 'why'}, row.why), row.why && row.text && ' ', row.text)]]},
  calls: {head: 'calls', title: 'number of calls', of: row => row.calls},
  failed: {head: 'failed', title: 'failures', of: row => row.failed || undefined,
    text: row => row.failed ? '✕ ' + (row.calls === undefined ? '' : row.failed) : ''},
  ms: {head: 'took', title: 'how long it took', of: row => row.ms,
    text: row => row.ms === undefined ? unknownIf(row.timed) : duration(row.ms) + (row.untimed ? ' +' : '')},
  longest: {head: 'longest', title: 'the longest call', of: row => row.longest,
    text: row => row.longest === undefined ? '' : duration(row.longest)},
  input: tokenColumn(0, 'in', 'input tokens, neither read from a cache nor written to one'),
  read: tokenColumn(2, 'cached', 'input tokens that were read from a cache'),
  written: tokenColumn(3, 'to cache', 'input tokens that were written to a cache'),
  output: tokenColumn(1, 'out', 'output tokens'),
  cost: {head: 'cost', title: 'cost, by the prices that the program knows', of: row => row.cost,
    text: row => row.cost === undefined ? unknownIf(row.billed)
      : (row.least || row.unpriced ? 'at least ' : '') + costText(row.cost)},
};

// tokenColumn returns the column of one of the numbers in usage.
function tokenColumn(i, head, title) {
  return {head, title, of: row => row.usage?.[i],
    text: row => row.usage ? (row.least ? '≥ ' : '') + tokens(row.usage[i]) : unknownIf(row.billed)};
}

const unknownIf = missing => missing ? el('span', {class: 'quiet'}, 'unknown') : '';

// columnsOf lists the columns of the table that is shown.
function columnsOf(by) {
  const shown = by === 'call' ? ['n', 'what', 'failed', 'cost', 'ms']
    : ['what', 'calls', 'failed', 'cost', 'ms', 'longest'];
  return [...shown, 'input', 'read', 'written', 'output'];
}

// sortOf is the column that the table is sorted by, and whether the largest comes first. At first it is the cost, or
// the time where no price is known.
function sortOf(by) {
  if (calls.sort[by]) return calls.sort[by];
  const priced = graph.totals.some(total => total.priced);
  return {name: priced && by !== 'tool' ? 'cost' : 'ms', down: true};
}

// callRow is the row of a request, named for its model, or of a tool call.
function callRow(key) {
  const node = nodeOf(key), grave = node.problems.filter(problem => problem.grave);
  const asked = isAnswer(key);
  // the text of a tool call begins with its error
  const why = asked ? grave.map(problem => problem.what).join('; ') : '';
  return {
    key, n: numberOf(key), name: asked ? node.model || 'unknown model' : label(key), text: summary(key),
    failed: grave.length, why,
    usage: node.usage, least: node.least, ms: node.ms, cost: node.cost, timed: true, billed: asked,
  };
}

// totalRow is the row of a total. Its cost is unknown if none of its calls has a price.
function totalRow(total) {
  const name = total.name || (total.by === 'agent' ? 'main conversation' : 'unknown model');
  return {
    total, name, calls: total.calls, failed: total.failed || 0, usage: total.usage, least: total.least, ms: total.ms,
    untimed: total.untimed, longest: total.longest,
    cost: total.priced ? total.cost || 0 : undefined, unpriced: total.unpriced, timed: total.untimed,
    billed: total.unpriced,
  };
}

// agentOf is the sub-agent whose conversation holds a node, as totals name it.
export const agentOf = key => graph.frames[placeOf(key).frame]?.title ?? '';

// belongs reports whether a total has a call in it.
function belongs(key, {by, name}) {
  if (by === 'agent') return agentOf(key) === name;
  return by === 'model' ? isAnswer(key) && (nodeOf(key).model || '') === name : isCall(key) && label(key) === name;
}

// layCalls finds the rows and sorts them, if anything has changed that they depend on, and reports whether it has.
function layCalls() {
  const {by, only} = calls, {name, down} = sortOf(by);
  const made = [graph.version, by, only?.by, only?.name, name, down, at.query, at.onlyProblems, ...at.shown].join('\n');
  if (made === calls.made) return false;
  calls.made = made;
  const keep = key => (isAnswer(key) || isCall(key)) && (!only || belongs(key, only)) && (!filtering() || passes(key));
  const list = by === 'call' ? graph.order.filter(keep).map(callRow)
    : graph.totals.filter(total => total.by === by).map(totalRow);

  // What is unknown comes last, whichever way the table is sorted.
  const {of} = callColumns[name];
  calls.rows = list.sort((a, b) => {
    const x = of(a), y = of(b);
    if (x === undefined || y === undefined) return Number(x === undefined) - Number(y === undefined);
    return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1);
  });
  calls.row = by === 'call' ? calls.rows.findIndex(row => row.key === at.selected)
    : Math.min(calls.row, list.length - 1);
  return true;
}

// drawCalls makes the table anew: its head, and the rows in view.
export function drawCalls() {
  if (!layCalls()) return drawCallRows(true);
  const {by, only} = calls, sorted = sortOf(by);
  const had = document.activeElement?.closest('#calls') && document.activeElement.dataset.name;
  const kept = $('calls-grid')?.scrollTop || 0;
  show($('calls'), el('div', {class: 'viewbar'},
    el('div', {role: 'group', 'aria-label': 'rows'},
      callKinds.map(([kind, text]) => el('button',
        {'aria-pressed': String(kind === by), 'data-name': 'by ' + kind, onclick: () => callsBy(kind)}, text))),
    only && el('button', {class: 'link', onclick: () => callsBy('call')}, line(totalRow(only).name, 60) + ' ✕'),
    el('span', {class: 'quiet', role: 'status'}, count(calls.rows.length, by === 'call' ? 'call' : 'row'))),
  el('div', {id: 'calls-grid', role: 'grid', tabindex: 0, 'aria-label': 'calls', 'aria-rowcount': calls.rows.length + 1,
    class: 'by-' + by, onscroll: () => drawCallRows(false)},
    el('div', {role: 'row', class: 'callrow callhead', 'aria-rowindex': 1}, columnsOf(by).map(name => el('div', {
      role: 'columnheader', class: 'col-' + name,
      'aria-sort': name !== sorted.name ? 'none' : sorted.down ? 'descending' : 'ascending',
    }, el('button', {title: callColumns[name].title || null, 'data-name': name, onclick: () => sortCalls(name)},
    callColumns[name].head + (name !== sorted.name ? '' : sorted.down ? ' ↓' : ' ↑'))))),
    el('div', {id: 'call-rows', role: 'rowgroup'}),
    !calls.rows.length && el('p', {class: 'quiet none'}, filtering() ? 'No call is left by the search and the filters.'
      : 'There are no calls.')));
  $('calls-grid').style.setProperty('--digits', String(graph.order.length).length);
  $('call-rows').style.height = calls.rows.length * rowHeight + 'px';
  $('calls-grid').scrollTop = kept;
  drawCallRows(true);
  if (had) [...$('calls').querySelectorAll('[data-name]')].find(e => e.dataset.name === had)?.focus();
}

let callsDrawn = [0, 0];
function drawCallRows(anew) {
  const grid = $('calls-grid');
  const first = Math.max(0, Math.floor(grid.scrollTop / rowHeight) - 10);
  const last = Math.min(calls.rows.length, first + Math.ceil(grid.clientHeight / rowHeight) + 20);
  if (!anew && callsDrawn[0] === first && callsDrawn[1] === last) return;
  callsDrawn = [first, last];
  show($('call-rows'), calls.rows.slice(first, last).map((row, i) => drawCall(row, first + i)));
  if (calls.row >= first && calls.row < last) grid.setAttribute('aria-activedescendant', 'call' + calls.row);
  else grid.removeAttribute('aria-activedescendant');
}

// drawCall makes row number i.
function drawCall(row, i) {
  const e = el('div', {
    id: 'call' + i, role: 'row', 'aria-rowindex': i + 2, 'aria-selected': String(i === calls.row),
    class: row.failed ? 'callrow bad' : 'callrow', title: row.why || null,
    onclick: () => toCall(i), ondblclick: () => enterCall(i),
  }, columnsOf(calls.by)
    .map(name => el('div', {role: 'gridcell', class: 'col-' + name}, cellText(row, callColumns[name]))));
  e.style.top = i * rowHeight + 'px';
  return e;
}

const cellText = (row, column) => column.text ? column.text(row) : String(column.of(row) ?? '');

// callsBy shows rows of another sort, or the calls of one total.
function callsBy(by, only = null) {
  Object.assign(calls, {by, only, row: 0});
  drawCalls();
  $('calls-grid').scrollTop = 0;
  drawCallRows(true);
  $('calls-grid').focus();
}

// sortCalls sorts by a column: the largest first, and the other way round if it was so already.
function sortCalls(name) {
  const before = sortOf(calls.by);
  const words = name === 'n' || name === 'what';
  calls.sort[calls.by] = {name, down: before.name === name ? !before.down : !words};
  drawCalls();
  $('calls-grid').scrollTop = 0;
  drawCallRows(true);
}

// toCall goes to a row: its node is selected, and the outline and the inspector follow.
function toCall(i) {
  if (!calls.rows.length) return;
  calls.row = Math.min(Math.max(i, 0), calls.rows.length - 1);
  const row = calls.rows[calls.row];
  scrollTo($('calls-grid'), calls.row);
  if (row.total) drawCallRows(true);
  else select(row.key);
}

// enterCall opens a row: from a total to its calls, from a call to its node in the outline.
function enterCall(i) {
  const row = calls.rows[i];
  if (row?.total) callsBy('call', row.total);
  else if (row) $('outline').focus();
}

// markCall marks the row of the selected node.
export function markCall(key) {
  if (calls.by !== 'call') return;
  calls.row = calls.rows.findIndex(row => row.key === key);
  if (calls.row >= 0) scrollTo($('calls-grid'), calls.row);
  drawCallRows(true);
}

// scrollTo brings a row of a list into view. Its head covers one row.
function scrollTo(list, row) {
  const top = row * rowHeight, high = list.clientHeight - 2 * rowHeight;
  if (top < list.scrollTop) list.scrollTop = top;
  else if (top > list.scrollTop + high) list.scrollTop = top - high;
}

// callsKey returns what a key does in the table.
export function callsKey(event) {
  const page = Math.max(1, Math.floor($('calls-grid').clientHeight / rowHeight) - 2);
  const kinds = callKinds.map(([kind]) => kind), columns = columnsOf(calls.by);
  return {
    j: () => toCall(calls.row + 1), ArrowDown: () => toCall(calls.row + 1), k: () => toCall(calls.row - 1),
    ArrowUp: () => toCall(calls.row - 1),
    PageDown: () => toCall(calls.row + page), PageUp: () => toCall(calls.row - page), Home: () => toCall(0),
    End: () => toCall(calls.rows.length - 1),
    Enter: () => enterCall(calls.row), Backspace: leaveCalls, Escape: leaveCalls,
    b: () => callsBy(kinds[(kinds.indexOf(calls.by) + 1) % kinds.length]),
    s: () => sortCalls(columns[(columns.indexOf(sortOf(calls.by).name) + 1) % columns.length]),
    S: () => sortCalls(sortOf(calls.by).name),
  }[event.key];
}

// topOfCalls shows the first rows, whatever is selected: those that cost the most.
export function topOfCalls() {
  $('calls-grid').scrollTop = 0;
  drawCallRows(true);
}

// leaveCalls goes back: from the calls of a total to the totals, and from the table to the outline.
function leaveCalls() {
  if (calls.only) callsBy(calls.only.by);
  else $('outline').focus();
}

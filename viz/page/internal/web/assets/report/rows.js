// The conversations of a report: which are shown, in which order and groups.

import {$} from '../dom.js';

export const data = JSON.parse($('data').textContent);
$('data').remove(); // it is in data now, and need not be there twice

export const view = {
  words: '', outcome: '', failure: '', cause: '', path: 0, // filters; '' and 0 for none
  group: '', sort: '', down: false, // keys; '' is the order of the file
  at: null, chosen: new Set(), closed: new Set(), most: 0,
};
export const shownAtFirst = 300; // rows, and added each time that somebody asks for more or moves there

export const wellEnded = row => row.outcome === 'ended';
export const gone = new Set(['failed', 'cut off', 'in doubt', 'unreadable']);

// keyNames are the keys to group by: columns, and then the labels.
export const keyNames = ['outcome', 'path', 'cause', 'failure', 'stop', 'model',
  ...[...new Set(data.rows.flatMap(row => Object.keys(row.labels || {})))].sort().map(key => 'label ' + key)];

// valueOf is the value of a row under a key, as text; '' for none.
function valueOf(row, key) {
  if (key.startsWith('label ')) {
    return row.labels && Object.hasOwn(row.labels, key.slice(6)) ? row.labels[key.slice(6)] : '';
  }
  if (key === 'failure' || key === 'cause') return row[key] ? row[key].kind : '';
  if (key === 'path') return row.path ? String(row.path) : '';
  return row[key] || '';
}

// found is what the filter of a row is compared with.
const found = new Map();
function textOf(row) {
  if (!found.has(row)) {
    const labels = Object.entries(row.labels || {}).map(([key, value]) => key + '=' + value);
    found.set(row, [row.name, row.outcome, row.stop, row.error, row.failure?.text, row.cause?.text, row.answer,
      row.model, ...labels].filter(Boolean).join('\n').toLowerCase());
  }
  return found.get(row);
}

// isShown reports whether the filters leave a row. But names a filter to ignore, to count what each of its choices
// would leave.
export function isShown(row, but) {
  return (but === 'outcome' || !view.outcome || row.outcome === view.outcome) &&
    (but === 'path' || !view.path || row.path === view.path) &&
    (!view.failure || row.failure?.kind === view.failure) &&
    (but === 'cause' || !view.cause || row.cause?.kind === view.cause) &&
    view.words.toLowerCase().split(/\s+/).every(word => textOf(row).includes(word));
}

// amountOf is the value of a row that the table is sorted by: a number or a text; undefined if it is unknown.
function amountOf(row, key) {
  switch (key) {
    case 'name': case 'outcome': return row[key];
    case 'cost': return row.cost ?? undefined;
    case 'took': return row.took || undefined;
  }
  return row.error ? undefined : row[key] || 0;
}

// inOrder is the rows that are shown, in order. What is unknown is last in both directions.
export function inOrder() {
  const list = data.rows.filter(row => isShown(row));
  if (!view.sort) return list;
  const sign = view.down ? -1 : 1;
  return list.map((row, i) => [amountOf(row, view.sort), i, row]).sort(([a, i], [b, j]) => {
    if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined) || i - j;
    return (a < b ? -sign : a > b ? sign : 0) || i - j;
  }).map(([, , row]) => row);
}

// groups is the shown rows by the value of the key, the largest group first.
export function groups(list) {
  if (!view.group) return [{value: null, rows: list}];
  const by = new Map();
  for (const row of list) {
    const value = valueOf(row, view.group);
    if (!by.has(value)) by.set(value, []);
    by.get(value).push(row);
  }
  return [...by].map(([value, rows]) => ({value, rows})).sort((a, b) => b.rows.length - a.rows.length);
}

// sums adds up rows. An unknown cost makes the sum unknown; known is what is known of it.
export function sums(rows) {
  const sum = {turns: 0, calls: 0, failed: 0, tokens: 0, took: 0, known: 0, complete: true, estimated: false};
  for (const row of rows) {
    for (const key of ['turns', 'calls', 'failed', 'tokens', 'took']) sum[key] += row[key] || 0;
    sum.known += row.known || 0;
    if (row.cost === undefined || row.cost === null) sum.complete = false;
    if (row.estimated) sum.estimated = true;
  }
  return sum;
}

export const number = n => n.toLocaleString('en-US');
export const count = (n, thing) => number(n) + ' ' + thing + (n === 1 ? '' : 's');

// duration writes milliseconds as a person would; 0 is unknown.
export function duration(ms) {
  if (!ms) return '–';
  if (ms < 1000) return Math.round(ms) + 'ms';
  if (ms < 60000) return (ms / 1000).toFixed(1) + 's';
  const seconds = Math.round(ms / 1000);
  return Math.floor(seconds / 60) + 'm' + String(seconds % 60).padStart(2, '0') + 's';
}

// toolSums adds up the calls of each tool in the rows. A row may have only some of its times: each counts for several
// then.
export function toolSums(rows) {
  const sums = new Map();
  for (const one of rows.flatMap(row => row.tools || [])) {
    if (!sums.has(one.tool)) sums.set(one.tool, {name: data.tools[one.tool], calls: 0, failed: 0, times: []});
    const sum = sums.get(one.tool);
    sum.calls += one.calls;
    sum.failed += one.failed || 0;
    for (const ms of one.times || []) sum.times.push([ms, one.timed / one.times.length]);
  }
  for (const sum of sums.values()) sum.times.sort(([a], [b]) => a - b);
  return [...sums].sort(([a], [b]) => a - b).map(([, sum]) => sum);
}

// percentile is the smallest time that is at least as long as the given share of them; undefined without times.
export function percentile(times, share) {
  let left = share * times.reduce((all, [, weight]) => all + weight, 0);
  return times.find(([, weight]) => (left -= weight) < 1e-6)?.[0];
}

// modelSums adds up the responses of each model in the rows.
export function modelSums(rows) {
  const sums = new Map();
  for (const one of rows.flatMap(row => row.models || [])) {
    if (!sums.has(one.model)) {
      sums.set(one.model, {name: data.models[one.model], responses: 0, input: 0, output: 0, cached: 0, known: 0,
        complete: true, estimated: false});
    }
    const sum = sums.get(one.model);
    for (const key of ['responses', 'input', 'output', 'cached']) sum[key] += one[key];
    sum.known += one.known || 0;
    if (one.cost === undefined) sum.complete = false;
    if (one.estimated) sum.estimated = true;
  }
  return [...sums].sort(([a], [b]) => a - b).map(([, sum]) => sum);
}

// money is a sum as text: exact, estimated, at least the known part, or unknown.
export function money(sum) {
  if (sum.complete) return (sum.estimated ? 'about ' : '') + sum.known.toFixed(4);
  return sum.known > 0 ? 'at least ' + sum.known.toFixed(4) : 'unknown';
}

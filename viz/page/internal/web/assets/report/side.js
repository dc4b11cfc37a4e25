// What the shown conversations have in common: why they failed, their paths, as a matrix, their first failures, tools
// and models.

import {$, el, show} from '../dom.js';
import {detail} from './detail.js';
import {count, data, duration, gone, isShown, modelSums, money, number, percentile, toolSums, view} from './rows.js';
import {at, draw, onlyCause, onlyFailure, onlyPath} from './table.js';

const pathsAtFirst = innerWidth > 720 ? 12 : 4;
let allPaths = false;
let listedPaths = []; // those that conversations took which the other filters leave, the most taken first

// drawSide shows the parts of the side for the rows. Paths are counted without the filter for a path.
export function drawSide(list) {
  const members = new Map();
  for (const row of data.rows) {
    if (row.path && isShown(row, 'path')) members.set(row.path, (members.get(row.path) || 0) + 1);
  }
  const taken = data.paths.filter(path => members.has(path.number) || path.number === view.path);
  listedPaths = taken;
  const most = allPaths ? taken.length : pathsAtFirst;

  const tools = toolSums(list), models = modelSums(list);
  const of = list.length === data.rows.length ? '' : 'of the shown conversations';
  show($('side'),
    causes(),
    part('Paths', taken.length ? 'the same tools, the same failures; a ring is where one parts' : 'none',
      el('div', {id: 'paths'}, taken.slice(0, most).map(path => pathRow(path, members.get(path.number) || 0))),
      taken.length > most && el('button', {onclick: () => { allPaths = true; draw(); }},
        'all ' + taken.length + ' paths')),
    kindsPart('First failures', kindsOf(list, 'failure'), view.failure, onlyFailure),
    tools.length > 0 && part('Tools', of, el('table', {class: 'sums', id: 'tools'},
      el('tr', {},
        ['calls', 'failed', 'p50', 'p95', 'tool'].map((title, i) => el('th', {class: i < 4 ? 'right' : ''}, title))),
      tools.map(tool => el('tr', {},
        [number(tool.calls), tool.failed ? number(tool.failed) + ' (' + percent(tool.failed / tool.calls) + ')' : '–',
        duration(percentile(tool.times, 0.5)),
        duration(percentile(tool.times, 0.95))].map(text =>
          el('td', {class: 'number right' + (text.includes('(') ? ' failed' : '')}, text)),
          el('td', {class: 'word'}, tool.name || '(no name)'))))),
    models.length > 0 && part('Models', of, el('table', {class: 'sums', id: 'models'},
      el('tr', {}, ['responses', 'input', 'output', 'cached', ...data.currency ? [data.currency] : [],
        'model'].map((title, i, all) => el('th', {class: i < all.length - 1 ? 'right' : ''}, title))),
      models.map(model => el('tr', {}, [...['responses', 'input', 'output', 'cached'].map(key => number(model[key])),
        ...data.currency ? [money(model)] : []].map(text => el('td', {class: 'number right'}, text)),
        el('td', {class: 'word'}, model.name || '(no model)'))))));
}

// kindsOf is the rows by the kind of a failure, the most frequent kind first.
function kindsOf(rows, key) {
  const kinds = new Map();
  for (const row of rows) if (row[key]) kinds.set(row[key].kind, [...kinds.get(row[key].kind) || [], row]);
  return [...kinds].sort((a, b) => b[1].length - a[1].length);
}

// causes is why conversations failed, whether or not only those of one cause are shown. Whoever failed alone is named.
function causes() {
  const kinds = kindsOf(data.rows.filter(row => isShown(row, 'cause')), 'cause');
  const all = kinds.reduce((sum, [, rows]) => sum + rows.length, 0);
  const alone = kinds.filter(([, rows]) => rows.length === 1);
  const differs = all > 2 && alone.length === 1 && kinds.length > 1;
  return kindsPart('Why they failed', kinds, view.cause, onlyCause, count(all, 'conversation'),
    differs && el('p', {id: 'alone'}, rowLink(alone[0][1][0]), ' failed differently from the rest: ',
      el('span', {class: 'why'}, alone[0][0])));
}

const rowLink = row => el('button',
  {class: 'link', 'data-focus': 'row ' + row.index, onclick: () => { at(row, {scroll: true}); detail(row); }},
  row.name);

const kindsAtFirst = 20;

// kindsPart is a table of failures, with the conversation where only one has it.
function kindsPart(title, kinds, pressed, only, note = '', ...before) {
  return kinds.length > 0 && part(title, note, before,
    el('table', {class: 'sums'}, kinds.slice(0, kindsAtFirst).map(([kind, rows]) =>
    el('tr', {}, el('td', {class: 'number right'}, number(rows.length)),
      el('td', {class: 'word'},
        el('button', {class: 'link why', 'data-focus': title + kind, 'aria-pressed': String(pressed === kind),
          onclick: () => only(kind)}, kind),
        rows.length === 1 && el('div', {class: 'file'}, rowLink(rows[0])))))),
    kinds.length > kindsAtFirst && el('p', {class: 'quiet'},
      '… and ' + number(kinds.length - kindsAtFirst) + ' more; the filter finds them'));
}

const percent = share => share < 0.01 ? '<1%' : Math.floor(share * 100) + '%';

const opened = new Map(); // what somebody opened or closed, by title

const part = (title, note, ...content) => el('details',
  {open: opened.get(title) ?? (innerWidth > 720 || ['Paths', 'Why they failed'].includes(title)),
    ontoggle: event => opened.set(title, event.target.open)},
  el('summary', {}, el('h2', {}, title), ' ', el('span', {class: 'quiet'}, note)), content);

export const stepOf = i => data.steps[i];

// pathRow is a row of the matrix. What is the same as in the path that it parts from is pale.
function pathRow(path, members) {
  const {from} = path;
  const cells = path.cells.map((one, i) => cell(one, from + i, path));
  const left = path.steps - from - cells.length;
  return el('button',
    {class: 'pathrow', 'data-focus': 'path ' + path.number, 'aria-pressed': String(view.path === path.number),
      onclick: () => onlyPath(path.number)},
    el('span', {class: 'number right'}, number(members) + '×'),
    el('span', {class: 'badge ' + (gone.has(path.outcome) ? 'bad' : path.outcome === 'ended' ? 'on' : 'odd')},
      path.outcome),
    el('span', {class: 'cells', 'aria-hidden': 'true'}, from > 0 && el('span', {class: 'quiet'}, number(from) + '+ '),
      cells, left > 0 && el('span', {class: 'quiet'}, ' +' + number(left))),
    el('span', {class: 'parts'}, el('b', {}, path.number + ' '), parts(path)));
}

// parts is where a path parts from another one, in words.
function parts(path) {
  if (!path.base) return path.cells.map(one => one.label).join(', ');
  return 'after ' + path.same + ' steps of ' + path.base + ': ' + (path.step || 'ends') +
    (path.instead ? ' instead of ' + path.instead : '');
}

// cell is step number i of a path in the matrix.
function cell(one, i, path) {
  const kinds = {user: 'user', assistant: 'assistant', 'tool call': 'tool', stop: 'stop'};
  const kind = one.failed ? 'failed' : kinds[one.kind] || 'aside';
  const place = !path.base ? '' : i < path.same ? 'same' : i === path.same ? 'part' : '';
  return el('span', {class: 'cell ' + kind + ' ' + place, title: (i + 1) + ' ' + one.label}, one.failed ? '✕' : '');
}

// nextPath leaves only the conversations of the next path in the list, or of the one before: the last one has the
// fewest.
export function nextPath(n) {
  const numbers = listedPaths.map(path => path.number), here = numbers.indexOf(view.path);
  if (!numbers.length) return;
  const next = here < 0 ? (n > 0 ? 0 : numbers.length - 1) : (here + n + numbers.length) % numbers.length;
  if (next >= pathsAtFirst) allPaths = true;
  onlyPath(numbers[next]);
}

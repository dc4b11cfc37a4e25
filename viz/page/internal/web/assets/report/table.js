// The table of conversations.

import {$, el, show, status} from '../dom.js';
import {detail} from './detail.js';
import {
  count, data, duration, gone, groups, inOrder, isShown, money, number, shownAtFirst, sums, view, wellEnded,
} from './rows.js';
import {drawSide} from './side.js';

const columns = [
  {key: 'outcome', title: 'outcome'},
  {key: 'turns', title: 'turns', hide: 'wide-only', cell: row => row.error ? '' : number(row.turns)},
  {key: 'calls', title: 'calls', hide: 'not-small', cell: row => row.error ? '' : number(row.calls)},
  {key: 'failed', title: 'failed', hide: 'not-small', cell: row => row.failed ? number(row.failed) : ''},
  ...data.currency ? [{key: 'cost', title: data.currency, hide: 'not-small', cell: row => row.money}] : [],
  {key: 'tokens', title: 'tokens', hide: 'wide-only', cell: row => row.error ? '' : number(row.tokens)},
  {key: 'took', title: 'time', hide: 'wide-only', cell: row => duration(row.took)},
  {key: 'name', title: 'conversation'},
];

export let ordered = [], shown = []; // the rows in order, without those of closed groups, and those of them in the table

// draw makes the whole page anew: the table, the filters, the sums and the side.
export function draw() {
  const focused = document.activeElement?.dataset?.focus; // the element is made anew
  const list = inOrder();
  const parts = groups(list);
  ordered = parts.flatMap(part => view.closed.has(part.value) ? [] : part.rows);
  shown = ordered.slice(0, Math.max(view.most, shownAtFirst));
  const visible = new Set(shown);

  const bodies = parts.flatMap(part => [
    part.value === null ? null : groupHead(part),
    ...part.rows.filter(row => visible.has(row)).map(tableRow),
  ]);
  show($('rows'), el('thead', {}, el('tr', {}, el('th', {class: 'choose', scope: 'col', title: 'chosen'}, '✓'), columns.map(headCell))),
    el('tbody', {}, bodies));
  $('more').hidden = shown.length === ordered.length;
  $('more').textContent = 'Show more of ' + count(list.length, 'conversation');

  if (!shown.includes(view.at)) view.at = shown[0] ?? null;
  drawFilters();
  drawTop(list);
  drawSide(list);
  mark();
  if (focused) {
    (document.querySelector('[data-focus="' + CSS.escape(focused) + '"]') ?? $('scroll')).focus({preventScroll: true});
  }
}

function headCell(column) {
  const sorted = view.sort === column.key;
  return el('th', {class: [column.hide, !['outcome', 'name'].includes(column.key) && 'right'].filter(Boolean).join(' '),
    scope: 'col', 'aria-sort': sorted ? (view.down ? 'descending' : 'ascending') : 'none'},
    el('button', {class: 'link', 'data-focus': 'sort ' + column.key, onclick: () => sortBy(column.key)}, column.title,
      sorted ? (view.down ? ' ↓' : ' ↑') : ''));
}

// sortNext sorts by the next column, and after the last one not at all.
export function sortNext() {
  const next = columns[columns.findIndex(column => column.key === view.sort) + 1];
  view.sort = '';
  if (next) sortBy(next.key);
  else draw();
  status(view.sort ? 'Sorted by ' + columns.find(column => column.key === view.sort).title : 'Not sorted');
}

// sortBack turns the order round.
export function sortBack() {
  if (!view.sort) return status('Not sorted: s sorts by a column.');
  view.down = !view.down;
  draw();
}

// sortBy sorts by a column: numbers begin with the largest. The third time is the order of the file again.
function sortBy(key) {
  const down = key !== 'name' && key !== 'outcome';
  if (view.sort !== key) [view.sort, view.down] = [key, down];
  else if (view.down === down) view.down = !down;
  else view.sort = '';
  draw();
}

// groupHead is the row above a group, with its sums. It opens and closes the group.
function groupHead(part) {
  const sum = sums(part.rows);
  const open = !view.closed.has(part.value);
  const ended = part.rows.filter(wellEnded).length;
  const toggle = () => {
    if (open) view.closed.add(part.value);
    else view.closed.delete(part.value);
    draw();
  };
  return el('tr', {class: 'group'}, el('th', {colspan: columns.length + 1, scope: 'rowgroup'},
    el('button', {class: 'link', 'data-focus': 'group ' + part.value, onclick: toggle, 'aria-expanded': String(open)},
      open ? '▾ ' : '▸ ', part.value || '(none)'),
    el('span', {class: 'quiet'}, [count(part.rows.length, 'conversation'), ended + ' ended', count(sum.calls, 'call'),
      sum.failed && number(sum.failed) + ' failed',
      data.currency && money(sum) + ' ' + data.currency, duration(sum.took)].filter(Boolean).join(' · '))));
}

// tableRow is the row of a conversation. A click opens it, except in the box that chooses it.
function tableRow(row) {
  const pick = event => {
    event.stopPropagation();
    choose(row);
  };
  return el('tr', {id: 'row' + row.index, class: gone.has(row.outcome) ? 'bad' : wellEnded(row) ? '' : 'odd',
    onclick: () => { at(row); detail(row); }},
    el('td', {class: 'choose'},
      el('input', {type: 'checkbox', 'aria-label': 'choose ' + row.name, tabindex: -1, onclick: pick})),
    columns.map(column => column.cell
      ? el('td', {class: 'number right ' + column.hide + ' ' + (column.key === 'failed' && row.failed ? 'failed' : '')},
        column.cell(row)) : wordCell(row, column.key)));
}

// wordCell is the cell of the outcome, or of the name with the reason of a failure or the last answer.
function wordCell(row, key) {
  if (key === 'outcome') {
    return el('td', {}, badge(row),
      row.path ? el('span', {class: 'quiet path', title: 'path ' + row.path}, ' ' + row.path) : '');
  }
  return el('td', {class: 'name'}, el('div', {class: 'file', dir: 'auto'}, row.name),
    row.error ? el('div', {class: 'why', dir: 'auto'}, row.error) :
      row.cause ?? row.failure ? el('div', {class: 'why', dir: 'auto'}, (row.cause ?? row.failure).text) :
        row.answer && el('div', {class: 'answer'}, row.answer),
    !row.error && el('div', {class: 'quiet small-only'},
      [count(row.calls, 'call'), row.failed && number(row.failed) + ' failed',
        data.currency && row.money + ' ' + data.currency, duration(row.took)].filter(Boolean).join(' · ')));
}

export const badge = row => el('span', {class: 'badge ' + (gone.has(row.outcome) ? 'bad' : wellEnded(row) ? 'on' : 'odd')},
  row.outcome,
  row.stop && !['end_turn', 'tool_use', 'cut_off', 'cancelled', 'unknown'].includes(row.stop) ? ': ' + row.stop : '');

// at moves to a row, and adds rows to the table up to it.
export function at(row, {scroll = false} = {}) {
  view.at = row;
  if (shown.includes(row)) mark();
  else {
    view.most = ordered.indexOf(row) + shownAtFirst;
    draw();
  }
  if (scroll && row) $('row' + row.index)?.scrollIntoView({block: 'nearest'});
}

// mark shows which row the keyboard is at, and which are chosen.
function mark() {
  for (const e of $('rows').querySelectorAll('tr[aria-selected]')) e.removeAttribute('aria-selected');
  if (view.at) $('row' + view.at.index)?.setAttribute('aria-selected', 'true');
  for (const row of shown) {
    const box = $('row' + row.index)?.querySelector('input');
    if (box) box.checked = view.chosen.has(row);
  }
  $('open-compare').disabled = view.chosen.size < 2;
  $('open-compare').textContent = view.chosen.size ? 'Compare ' + view.chosen.size : 'Compare';
}

const mostChosen = 26; // each has a letter, as in the command

// choose adds a row to the comparison, or removes it. An unreadable conversation cannot be compared.
export function choose(row) {
  if (view.chosen.has(row)) view.chosen.delete(row);
  else if (view.chosen.size >= mostChosen) status('No more than ' + mostChosen + ' are compared.');
  else if (!row.error) view.chosen.add(row);
  mark();
}

// moveTo moves to a row with the keyboard: Enter is about the row then, not about a button that was used before.
function moveTo(row) {
  $('scroll').focus({preventScroll: true});
  at(row, {scroll: true});
}

// step goes some rows down, or up, and at most to an end.
export function step(n) {
  const i = ordered.indexOf(view.at);
  if (ordered.length) moveTo(ordered[Math.min(Math.max(i + n, 0), ordered.length - 1)]);
}

// nextBad moves to the next row that did not end well.
export function nextBad(n) {
  for (let k = ordered.indexOf(view.at) + n; k >= 0 && k < ordered.length; k += n) {
    if (!wellEnded(ordered[k])) return moveTo(ordered[k]);
  }
  status('No further conversation ' + (n > 0 ? 'below' : 'above') + ' that did not end well.');
}

// drawFilters makes a button for each outcome, with the rows it would leave, and one for each filter in use.
function drawFilters() {
  const of = new Map();
  for (const row of data.rows) if (isShown(row, 'outcome')) of.set(row.outcome, (of.get(row.outcome) || 0) + 1);
  show($('filters'), data.outcomes.filter(outcome => of.has(outcome) || outcome === view.outcome).map(outcome =>
    el('button', {'data-focus': 'outcome ' + outcome, 'aria-pressed': String(view.outcome === outcome),
      onclick: () => { view.outcome = view.outcome === outcome ? '' : outcome; draw(); }},
      number(of.get(outcome) || 0) + ' ' + outcome)),
  view.path > 0 && el('button', {'aria-pressed': 'true', onclick: () => onlyPath(0)}, 'path ' + view.path + ' ×'),
  view.cause && el('button', {'aria-pressed': 'true', onclick: () => onlyCause('')}, view.cause + ' ×'),
  view.failure && el('button', {'aria-pressed': 'true', onclick: () => onlyFailure('')}, view.failure + ' ×'));
}

export function onlyPath(n) {
  view.path = view.path === n ? 0 : n;
  draw();
}

export function onlyCause(kind) {
  view.cause = view.cause === kind ? '' : kind;
  draw();
}

export function onlyFailure(kind) {
  view.failure = view.failure === kind ? '' : kind;
  draw();
}

// drawTop shows the sums of the rows.
function drawTop(list) {
  const sum = sums(list);
  const all = list.length === data.rows.length ? count(list.length, 'conversation')
    : number(list.length) + ' of ' + count(data.rows.length, 'conversation');
  $('totals').textContent = [all, count(sum.turns, 'turn'), count(sum.calls, 'call'), number(sum.failed) + ' failed',
    number(sum.tokens) + ' tokens',
    data.currency && money(sum) + ' ' + data.currency].filter(Boolean).join(' · ');
}

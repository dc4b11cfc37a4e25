// One conversation, and several beside each other.

import {$, decodeURIComponentSafe, el, show, status} from '../dom.js';
import {count, data, duration, number, view} from './rows.js';
import {stepOf} from './side.js';
import {at, badge, ordered} from './table.js';

const quoted = name => /^[\w@%+=:,.\/-]+$/.test(name) && !name.startsWith('-') ? name
  : "'" + name.replaceAll("'", "'\\''") + "'";
const nodeAt = (row, i) => {
  const digits = row.nodes.length / row.steps.length;
  return row.nodes.slice(digits * i, digits * i + digits);
};

let opener = null; // where the focus was before a panel opened

// openPanel shows a panel in place of the one that is open, and gives it the focus.
function openPanel(panel) {
  if ($('detail').hidden && $('compare').hidden) opener = document.activeElement;
  $('detail').hidden = $('compare').hidden = true;
  address('');
  panel.hidden = false;
  panel.scrollTop = 0;
  panel.focus();
}

// closePanel closes what is open, and reports whether something was.
export function closePanel() {
  const open = [$('help'), $('detail'), $('compare')].find(e => !e.hidden);
  if (!open) return false;
  open.hidden = true;
  if (open === $('detail')) address('');
  (opener ?? $('scroll')).focus({preventScroll: true});
  return true;
}

// address names the opened conversation in the page's address, which so is a link to it; '' for none. Numbers would be
// those of other rows in a later report.
function address(name) {
  history.replaceState(null, '', name ? '#' + encodeURIComponent(name) : location.pathname + location.search);
}

// rowInAddress is the row that the address names.
function rowInAddress() {
  const name = decodeURIComponentSafe(location.hash.slice(1));
  return name && data.rows.find(row => row.name === name);
}

// openAddress opens the row that the address names, also where a filter hides it in the table.
export function openAddress() {
  const row = rowInAddress();
  if (!row) return;
  if (ordered.includes(row)) at(row, {scroll: true});
  detail(row);
}

// detail opens a conversation: its facts, the commands to look at it, and its first steps.
export function detail(row) {
  const facts = [
    ['outcome', badge(row)], ['turns', number(row.turns || 0)],
    ['tool calls', number(row.calls || 0) + (row.failed ? ', ' + number(row.failed) + ' failed' : '')],
    ['tokens', number(row.tokens || 0)], data.currency && ['cost', row.money + ' ' + data.currency],
    ['time', duration(row.took)], ['model', row.model], ['began', row.began],
    row.path && ['path', row.path + ': ' + number(data.paths.find(path => path.number === row.path).rows.length) +
      ' conversations took it'],
    ...Object.entries(row.labels || {}),
  ].filter(fact => fact && fact[1]);
  show($('detail'),
    el('div', {class: 'toolbar'}, el('h2', {}, row.name),
      el('button', {class: 'close', onclick: closePanel}, 'Close (Esc)')),
    row.error && el('p', {class: 'error'}, row.error),
    failuresOf(row).map(failure => el('p', {class: 'error'}, failure.node + ' ' + failure.text)),
    row.answer && el('p', {class: 'said'}, el('span', {class: 'quiet'}, 'last answer: '), row.answer),
    !row.error && el('dl', {class: 'facts'}, facts.map(([name, value]) => [el('dt', {}, name), el('dd', {}, value)])),
    !row.error && [el('h3', {}, 'To look at it'),
      failuresOf(row).map(failure => command('plait show ' + quoted(row.name) + ' ' + failure.node)),
      command('plait log ' + quoted(row.name)),
      command('plait render --as html ' + quoted(row.name) + ' > conversation.html')],
    !row.error && [el('h3', {}, count(row.total, 'step')),
      el('ol', {class: 'steps'}, row.steps.map((s, i) => stepLine(stepOf(s), nodeAt(row, i)))),
      row.total > row.steps.length && el('p', {class: 'quiet'},
        '… and ' + count(row.total - row.steps.length, 'more step'))]);
  openPanel($('detail'));
  address(row.name);
}

// failuresOf is the failure that ended a conversation, and the first one if that is another.
const failuresOf = row =>
  [row.cause, row.failure].filter((failure, i) => failure && (i === 0 || failure.node !== row.cause?.node));

const stepLine = (one, node) => el('li', {class: one.failed ? 'failed' : ''}, el('b', {}, one.label), ' ',
  el('span', {class: 'quiet'}, one.text || ''), ' ', el('code', {class: 'quiet'}, node));

// command is a line for a shell that can be copied.
function command(text) {
  const copy = () => navigator.clipboard.writeText(text).then(() => status('Copied.'),
    () => status('Not copied: select it.'));
  return el('div', {class: 'command'}, el('code', {class: 'code'}, text),
    el('button', {onclick: copy, 'aria-label': 'copy ' + text}, 'Copy'));
}

// compare shows the chosen conversations from where they part.
export function compare() {
  const chosen = [...view.chosen];
  if (chosen.length < 2) return status('Choose two or more conversations: x');
  let common = 0;
  while (chosen.every(row => common < row.steps.length && row.steps[common] === chosen[0].steps[common])) common++;
  const lines = aligned(chosen.map(row => row.steps.slice(common)));
  const last = common > 0 && stepOf(chosen[0].steps[common - 1]);
  const beside = chosen.length > mostColumns ? lettered : inColumns;
  show($('compare'),
    el('div', {class: 'toolbar'}, el('h2', {}, 'Compare'),
      el('button', {class: 'close', onclick: closePanel}, 'Close (Esc)')),
    el('p', {class: 'quiet'}, common
      ? 'They share ' + count(common, 'step') + ', up to ' + last.label + (last.text ? ': ' + last.text : '')
      : 'They share nothing from the beginning.',
      chosen.some(row => row.total > row.steps.length) && ' Only the first steps are compared here.'),
    chosen.length === 2 && command('plait diff ' + chosen.map(row => quoted(row.name)).join(' ')),
    beside(chosen, lines, common));
  openPanel($('compare'));
}

const mostColumns = 6; // that can be read beside each other

// inColumns shows a column for each conversation.
function inColumns(chosen, lines, common) {
  return el('div', {class: 'grid n' + chosen.length, tabindex: 0, role: 'group', 'aria-label': 'steps side by side'},
    chosen.map(row => el('div', {class: 'colhead'}, el('b', {}, row.name), ' ', badge(row))),
    lines.flatMap(line =>
      line.map((i, c) => side(chosen[c], i === null ? null : common + i, line, c, chosen, common))));
}

// lettered shows many conversations: a letter for each, and each step once, with the letters of those that have it.
function lettered(chosen, lines, common) {
  const names = chosen.map((row, c) => el('li', {}, el('code', {}, letterOf(c)), ' ', badge(row), ' ', row.name));
  return [el('ul', {class: 'letters'}, names), lines.flatMap(line => {
    const steps = line.map((i, c) => i === null ? null : chosen[c].steps[common + i]);
    const different = steps.filter((s, c) => s !== null && !steps.slice(0, c).some(other => sameStep(other, s)));
    return different.map(s => stepRow(s, steps, nodeAt(chosen[steps.indexOf(s)], common + line[steps.indexOf(s)])));
  })];
}

const letterOf = c => String.fromCharCode(65 + c);

// sameStep reports whether two steps have the same label and text. Their content may still differ.
function sameStep(a, b) {
  if (a === null || b === null) return false;
  const [one, other] = [stepOf(a), stepOf(b)];
  return one.label === other.label && one.text === other.text;
}

// stepRow is one step, with the letters of the conversations that have it, each in a place of its own.
function stepRow(s, steps, node) {
  const one = stepOf(s), have = steps.map(other => sameStep(other, s));
  return el('div',
    {class: ['side steprow', one.failed ? 'failed' : one.kind, have.every(Boolean) ? 'same' : ''].join(' ')},
    el('code', {class: 'have', 'aria-label': have.flatMap((has, c) => has ? letterOf(c) : []).join(' ')},
      have.map((has, c) => has ? letterOf(c) : '·').join('')),
    el('div', {class: 'said'}, el('b', {}, one.label), ' ', one.text || '', ' ', el('code', {class: 'quiet'}, node)));
}

// side is the step of one conversation in a line of the comparison. It is pale if all others have the same step.
function side(row, i, line, c, chosen, common) {
  if (i === null) return el('div', {class: 'side none', role: 'img', 'aria-label': 'nothing here'});
  const one = stepOf(row.steps[i]);
  const others = line.filter((j, k) => k !== c && j !== null).map(j => j);
  const same = others.length === chosen.length - 1 &&
    line.every((j, k) => sameStep(chosen[k].steps[common + j], row.steps[i]));
  return el('div', {class: ['side', one.failed ? 'failed' : one.kind, same ? 'same' : ''].join(' ')},
    el('div', {class: 'cardhead'}, el('b', {}, one.label), ' ', el('code', {class: 'quiet'}, nodeAt(row, i))),
    el('div', {class: 'said'}, one.text || ''));
}

// aligned lays lists of steps beside each other: each line has an index of each list, or null. Steps with one label
// share a line.
function aligned(lists) {
  let lines = lists[0].map((s, i) => ({label: stepOf(s).label, at: [i]}));
  for (let n = 1; n < lists.length; n++) {
    const labels = lists[n].map(s => stepOf(s).label);
    const next = [];
    // The pair behind the ends of both lists adds the lines after the last common label.
    let i = 0, j = 0;
    for (const [a, b] of [...longest(lines.map(line => line.label), labels), [lines.length, labels.length]]) {
      for (; i < a; i++) next.push({label: lines[i].label, at: [...lines[i].at, null]});
      for (; j < b; j++) next.push({label: labels[j], at: [...Array(n).fill(null), j]});
      if (i < lines.length && j < labels.length) next.push({label: labels[j], at: [...lines[i++].at, j++]});
    }
    lines = next;
  }
  return lines.map(line => line.at);
}

// longest is a longest common subsequence of two lists, as pairs of indexes.
function longest(a, b) {
  const width = b.length + 1;
  const best = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      best[i * width + j] = a[i] === b[j] ? best[(i + 1) * width + j + 1] + 1
        : Math.max(best[(i + 1) * width + j], best[i * width + j + 1]);
    }
  }
  const pairs = [];
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) pairs.push([i++, j++]);
    else if (best[(i + 1) * width + j] >= best[i * width + j + 1]) i++;
    else j++;
  }
  return pairs;
}

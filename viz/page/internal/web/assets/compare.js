// Two heads side by side, from the node where their paths part.

import {$, el, show} from './dom.js';
import {graph, headsOf, inside, nodeOf, numberOf, pathTo, placeOf, sums} from './graph.js';
import {link, totals} from './inspector.js';
import {at} from './outline.js';
import {
  alignment, commonStart, count, differences, hasFailed, isMessage, label, line, summary, words,
} from './words.js';

const comparison = {a: null, b: null, most: 0}; // most is how many rows are shown
const compareRows = 500; // shown at first, and added by each click on the button for more

// openCompare compares two heads: if none are given, the one that is shown and another one.
export function openCompare(a, b) {
  const heads = headsOf(at.owner);
  comparison.a = a ?? at.end ?? heads[0];
  comparison.b = b ?? heads.find(head => head !== comparison.a) ?? comparison.a;
  comparison.most = compareRows;
  $('compare').hidden = false;
  document.body.classList.add('comparing');
  drawCompare();
  $('compare').focus();
}

export function closeCompare() {
  $('compare').hidden = true;
  document.body.classList.remove('comparing');
  $('outline').focus();
}

export const comparing = () => !$('compare').hidden;

// drawCompare shows how many nodes the two paths share, and the other nodes of both side by side.
function drawCompare() {
  const {a, b} = comparison;
  const pathA = pathTo(a), pathB = pathTo(b);
  const inA = new Set(pathA), inB = new Set(pathB);
  const common = pathA.filter(key => inB.has(key));
  const onlyA = pathA.filter(key => !inB.has(key)), onlyB = pathB.filter(key => !inA.has(key));
  const last = common[common.length - 1];
  const pairs = pairUp(onlyA, onlyB);
  show($('compare'),
    el('div', {class: 'toolbar'}, el('h2', {}, 'Compare'),
      chooser(a, key => { comparison.a = key; drawCompare(); }, 'left'),
      el('button',
        {onclick: () => { [comparison.a, comparison.b] = [b, a]; drawCompare(); }, 'aria-label': 'swap sides'}, '⇄'),
      chooser(b, key => { comparison.b = key; drawCompare(); }, 'right'),
      el('button', {class: 'close', onclick: closeCompare}, 'Close (Esc)')),
    el('p', {class: 'quiet'}, common.length ? ['They share ' + count(common.length, 'node') + ', up to ',
      last === undefined ? '' : link(last), '.'] : 'They share nothing.'),
    el('div', {class: 'sides'},
      el('div', {class: 'side sum'}, sumLine(onlyA)), el('div', {class: 'side sum'}, sumLine(onlyB)),
      pairs.slice(0, comparison.most).flatMap(([x, y]) => pairRow(x, y))),
    pairs.length > comparison.most && el('button', {class: 'more', onclick: () => {
      const top = $('compare').scrollTop;
      comparison.most += compareRows;
      drawCompare();
      $('compare').scrollTop = top;
    }}, '… and ' + count(pairs.length - comparison.most, 'more row')));
}

const sumLine = keys => keys.length ? totals(sums([...keys, ...inside(keys)])) : 'nothing more';

// chooser is a menu of heads and refs. The chosen node is in it even if it is neither.
function chooser(chosen, choose, side) {
  const heads = headsOf(at.owner);
  const keys = [...new Set([...heads, ...graph.refs.flatMap(ref => ref.keys), chosen])];
  const select = el('select', {'aria-label': side + ' head', onchange: event => choose(Number(event.target.value))},
    keys.map(key => el('option', {value: key}, headName(key))));
  select.value = String(chosen);
  return select;
}

// headName is the text for a head in menus: its names, its number, the last message before it.
export function headName(key) {
  return [...nodeOf(key).names, 'n' + numberOf(key), line(lastWords(key), 40)].join(' · ');
}

// lastWords is the text of the last message on the way to a node.
function lastWords(key) {
  for (let k = key; k !== undefined; k = nodeOf(k).parents?.[0]) if (isMessage(k)) return summary(k);
  return label(key);
}

// pairUp pairs the nodes of two branches: those of the same sort and label are side by side.
function pairUp(a, b) {
  const sign = key => nodeOf(key).sort + ' ' + label(key);
  const pairs = [];
  const start = commonStart(a.map(sign), b.map(sign));
  for (let i = 0; i < start; i++) pairs.push([a[i], b[i]]);
  const x = a.slice(start), y = b.slice(start);
  if (x.length * y.length > 250000) {
    for (let i = 0; i < Math.max(x.length, y.length); i++) pairs.push([x[i], y[i]]);
    return pairs;
  }
  const signs = new Map([...x, ...y].map(key => [key, sign(key)]));
  for (const [i, j] of alignment(x, y, (p, q) => signs.get(p) === signs.get(q))) pairs.push([x[i], y[j]]);
  return pairs;
}

// pairRow is two cells. What differs is marked on both sides.
function pairRow(x, y) {
  if (x === undefined || y === undefined) {
    return [x, y].map(key => cell(key, key === undefined ? [] : [words(key)], 'alone'));
  }
  const a = words(x), b = words(y);
  if (a === b) return [cell(x, [line(a)], 'same'), cell(y, [line(b)], 'same')];
  const pieces = differences(a, b);
  if (!related(pieces)) return [cell(x, [a], 'changed'), cell(y, [b], 'changed')];
  const side = op => pieces.filter(([o]) => o === '=' || o === op)
    .map(([o, text]) => o === '=' ? text : el(op === '-' ? 'del' : 'ins', {}, text));
  return [cell(x, side('-'), 'changed'), cell(y, side('+'), 'changed')];
}

// related reports whether two texts have so much in common that it helps to mark what differs: a third of the letters
// of the longer one, without spaces. Of two unrelated sentences, nothing but a few short words is the same, and marks
// would only be noise.
function related(pieces) {
  const letters = ops =>
    pieces.reduce((sum, [op, text]) => ops.includes(op) ? sum + text.replace(/\s+/g, '').length : sum, 0);
  return letters('=') * 3 >= Math.max(letters('=-'), letters('=+'));
}

// cell is a node on one side. How is its style: same, changed or alone.
function cell(key, text, how) {
  if (key === undefined) return el('div', {class: 'side none', role: 'img', 'aria-label': 'nothing here'});
  const node = nodeOf(key), grave = node.problems.filter(problem => problem.grave);
  const why = hasFailed(key) ? node.line : grave.map(problem => problem.what).join('; ');
  return el('div', {class: ['side', how, placeOf(key).style].join(' ')},
    el('div', {class: 'cardhead'}, link(key), ' ', el('b', {}, line(label(key), 60)), how === 'same' && ' · the same',
      node.problems.some(p => p.grave) && el('span', {class: 'badge bad'}, '✕ failed')),
    why && el('div', {class: 'why'}, why), el('div', {class: 'said'}, text));
}

// Reading: a readable layout for arguments with several lines, for replacements, fenced code and long JSON. No letter
// of a text is left out or changed.

import {el, fill, show, spoken} from './dom.js';
import {Digits, parseExactly} from './graph.js';
import {block, caption, longText} from './inspector.js';
import {isJSON} from './request.js';
import {alignment, commonStart, count, line, pretty, print} from './words.js';

const pairNames = /^old(_?(?:string|str|text|content|value|code))?$/i;
const foldedLines = 30; // JSON that is longer can be folded

const mostNested = 3, mostItems = 200; // lists of replacements beyond that are JSON

// layArguments lays out the arguments of a call. An argument with several lines is shown as text, and a replacement as
// its differences.
export function layArguments(value, depth = 0) {
  if (depth > mostNested) return jsonView(value);
  if (value === undefined || value === null || typeof value !== 'object' || Array.isArray(value) ||
    value instanceof Digits) {
    return block('pre', pretty(value), 'code');
  }
  const rest = Object.create(null), parts = []; // an argument may be called __proto__
  const isPair = (name, other) => other !== undefined && typeof value[name] === 'string' &&
    typeof value[other] === 'string';
  const replacing = new Set(Object.keys(value).filter(name => isPair(name, pairOf(name, value)))
    .map(name => pairOf(name, value)));
  for (const [name, v] of Object.entries(value)) {
    if (replacing.has(name)) continue; // it is shown with what it replaces
    const other = pairOf(name, value);
    if (isPair(name, other)) {
      parts.push(caption(line(name + ' → ' + other, 80)), lineDiff(v, value[other]));
    } else if (typeof v === 'string' && v.includes('\n')) parts.push(caption(line(name, 80)), block('pre', v, 'code'));
    else if (Array.isArray(v) && v.length <= mostItems && v.some(hasPair)) {
      parts.push(v.map((item, i) => [caption(line(name, 80) + ' ' + (i + 1)), layArguments(item, depth + 1)]));
    }
    else rest[name] = v;
  }
  if (!parts.length) return jsonView(value);
  return [Object.keys(rest).length > 0 && jsonView(rest), parts];
}

// pairOf is the name of the argument that replaces an old one: new_string for old_string.
function pairOf(name, value) {
  if (!pairNames.test(name)) return undefined;
  const other = name.replace(/^old/i, old => old[0] === 'O' ? 'New' : 'new');
  return Object.hasOwn(value, other) ? other : undefined;
}

const hasPair = item => item !== null && typeof item === 'object' &&
  Object.keys(item).some(name => pairOf(name, item) !== undefined);

// lineDiff shows what two texts differ in, line by line.
function lineDiff(before, after) {
  const a = before.split('\n'), b = after.split('\n');
  const start = commonStart(a, b), end = commonStart(a.slice(start).reverse(), b.slice(start).reverse());
  const x = a.slice(start, a.length - end), y = b.slice(start, b.length - end);
  const middle = x.length * y.length > 250000 ? [...x.map(text => ['-', text]), ...y.map(text => ['+', text])]
    : alignment(x, y, (p, q) => p === q).map(([i, j]) => i < 0 ? ['+', y[j]] : j < 0 ? ['-', x[i]] : [' ', x[i]]);
  const lines = [...a.slice(0, start).map(text => [' ', text]), ...middle,
    ...a.slice(a.length - end).map(text => [' ', text])];
  const most = 2000, elements = {'-': 'del', '+': 'ins', ' ': 'span'};
  const draw = list => list.map(([op, text]) => el(elements[op], {class: 'line'}, op + ' ' + text + '\n'));
  const e = el('pre', {class: 'code linediff'}, draw(lines.slice(0, most)));
  return lines.length <= most ? e
    : el('div', {}, e, el('button', {class: 'more', onclick: event => { show(e, draw(lines)); event.target.remove(); }},
      'show all ' + count(lines.length, 'line')));
}

// fenced shows a text with its fenced code in a monospaced font. All letters stay, also those of the fences.
export function fenced(text) {
  if (!text.includes('```') || text.length > longText) return block('div', text, 'said');
  const e = el('div', {class: 'said'});
  let inside = false, open = '';
  for (const part of text.match(/[^\n]*\n|[^\n]+$/g) || []) {
    const fence = /^ {0,3}(`{3,})/.exec(part)?.[1];
    if (fence && !inside) {
      [inside, open] = [true, fence];
      e.append(el('span', {class: 'fence mark'}, part));
    } else if (fence && fence.length >= open.length && part.trim() === fence) {
      inside = false;
      e.append(el('span', {class: 'fence mark'}, part));
    } else if (inside) {
      const last = e.lastChild;
      if (last?.className === 'fence') last.textContent += part;
      else e.append(el('span', {class: 'fence'}, part));
    } else e.append(part);
  }
  e.normalize();
  return spoken(e);
}

// jsonView shows JSON. A long value is folded. A fold is filled when it is opened, so no value is too deep or too long.
export function jsonView(value) {
  const text = pretty(value);
  if (value === null || typeof value !== 'object' || value instanceof Digits ||
    text.split('\n', foldedLines + 1).length <= foldedLines) {
    return block('pre', text, 'code');
  }
  return el('div', {class: 'code tree'}, foldJSON('', value, true));
}

// foldJSON returns a fold for an object or a list, and a line for any other value.
function foldJSON(name, value, open) {
  if (value === null || typeof value !== 'object' || value instanceof Digits) {
    return el('div', {class: 'leaf'}, el('b', {}, name), name && ': ', block('span', print(value, ''), 'value'));
  }
  const isList = Array.isArray(value), entries = Object.entries(value);
  const short = line(print(value, ''), 80);
  const inner = el('div', {class: 'inner'});
  const most = 200;
  const fillIn = () => {
    if (inner.childElementCount) return;
    fill(inner, entries.slice(0, most).map(([k, v]) => foldJSON(isList ? k : JSON.stringify(k), v, false)));
    if (entries.length > most) {
      const showRest = event => {
        event.target.remove();
        fill(inner, entries.slice(most).map(([k, v]) => foldJSON(isList ? k : JSON.stringify(k), v, false)));
      };
      fill(inner, [el('button', {class: 'more', onclick: showRest}, 'show all ' + count(entries.length, 'item'))]);
    }
  };
  if (!entries.length) return el('div', {class: 'leaf'}, el('b', {}, name), name && ': ', isList ? '[]' : '{}');
  const e = el('details', {open, ontoggle: () => { if (e.open) fillIn(); }},
    el('summary', {}, el('b', {}, name), name && ': ',
      el('span', {class: 'quiet'}, (isList ? '[' + entries.length + '] ' : '') + short)), inner);
  if (open) fillIn();
  return e;
}

// resultText is a text that a tool returned. What is JSON can be read as such.
export function resultText(text) {
  const e = block('div', text, 'said');
  if (!/^\s*[[{]/.test(text) || !isJSON(text)) return e;
  const box = el('div', {}, e);
  box.append(el('button', {class: 'more', onclick: event => {
    const tree = box.querySelector('.tree, .code');
    if (tree) tree.remove();
    else event.target.before(jsonView(parseExactly(text)));
    e.hidden = !tree;
    event.target.textContent = tree ? 'as JSON' : 'as text';
  }}, 'as JSON'));
  return box;
}

// Nodes as text. Everything here reaches the page by textContent alone.

import {Digits, nodeOf, placeOf, saved, skimmed} from './graph.js';

// groups has the filter for each sort of node. The filter for all further sorts is "other".
const groups = {user: 'user', assistant: 'assistant', results: 'tools', 'tool call': 'tools'};

export const group = key => groups[nodeOf(key).sort] || 'other';

export const isCall = key => nodeOf(key).sort === 'tool call';
export const isMessage = key => ['user', 'assistant', 'results'].includes(nodeOf(key).sort);
export const isResults = key => nodeOf(key).sort === 'results';

// label is a short name for a node, as the program writes it.
export const label = key => nodeOf(key).label;

// valueAt returns what is at a path of a saved node. JSON that could not be saved as JSON is a string beside it.
export function valueAt(value, path) {
  const names = path.split('.');
  const last = names.pop();
  for (const name of names) value = value?.[name];
  return value?.[last] === undefined ? value?.[last + '_text'] : value[last];
}

// textAt returns the value at a path as text; '' if there is none.
export function textAt(value, path) {
  const found = valueAt(value, path);
  return found === undefined ? '' : pretty(found);
}

// words returns the text of a node, for the search and for comparisons.
export function words(key, read = saved) {
  const node = nodeOf(key);
  return listWords(node.parts, read(node));
}

const listWords = (parts, from) => (parts || []).map(part => partWords(part, from)).filter(Boolean).join('\n');

// partWords is the text of one part. Headings are not text of a node.
function partWords(part, from) {
  switch (part.form || 'text') {
    case 'text': case 'title': case 'json': return textAt(from, part.at);
    case 'call': case 'input': return (part.label || '') + '(' + args(valueAt(from, part.at)) + ')';
    case 'card': return ['[' + part.label + ']', listWords(part.parts, from)].filter(Boolean).join('\n');
    case 'fold': return [part.label, listWords(part.parts, from)].filter(Boolean).join('\n');
    case 'image': return '[' + part.label + ']';
    case 'note': return part.label;
    case 'result': return listWords(part.parts, from);
    case 'head': case 'changed': case 'aside': case 'links': case 'calls': return '';
  }
  throw new Error('a part of an unknown form: ' + part.form);
}

// args writes arguments as "city: Tokyo, days: 3".
function args(value) {
  if (value === undefined) return '';
  if (value === null || typeof value !== 'object' || Array.isArray(value) || value instanceof Digits) {
    return flat(value);
  }
  return Object.entries(value).map(([name, v]) => name + ': ' + flat(v)).join(', ');
}

const flat = value => typeof value === 'string' ? value : print(value, '');

// pretty prints a value of parseExactly as JSON, with the digits that were written. It does not recurse: a file may
// nest deeply.
export const pretty = value => typeof value === 'string' ? value : print(value, '  ');

// print writes a value as JSON: in lines with an indent, and on one line without. Its stack is a list, see pretty.
export function print(value, indent) {
  const out = [];
  const stack = [{value}];
  const line = depth => indent ? '\n' + indent.repeat(depth) : '';
  let depth = 0;
  while (stack.length) {
    const step = stack.pop();
    if (step.text !== undefined) {
      depth += step.depth || 0;
      out.push(step.line ? line(depth) + step.text : step.text);
      continue;
    }
    const v = step.value;
    if (v instanceof Digits) out.push(v.text);
    else if (v === undefined) out.push('');
    else if (v === null || typeof v !== 'object') out.push(JSON.stringify(v));
    else {
      const isList = Array.isArray(v);
      const entries = isList ? v.map(item => ['', item])
        : Object.entries(v).map(([k, item]) => [JSON.stringify(k) + (indent ? ': ' : ':'), item]);
      if (!entries.length) {
        out.push(isList ? '[]' : '{}');
        continue;
      }
      const steps = /** @type {any[]} */ ([{text: isList ? '[' : '{'}]);
      entries.forEach(([name, item], i) => {
        steps.push({text: name, line: true, depth: i ? 0 : 1}, {value: item});
        if (i < entries.length - 1) steps.push({text: indent ? ',' : ', '});
      });
      steps.push({text: isList ? ']' : '}', line: true, depth: -1});
      for (const s of steps.reverse()) stack.push(s); // the first step is on top
    }
  }
  return out.join('');
}

// indentJSON breaks JSON text into lines. It changes only the space between tokens. It cuts the result into pieces, at
// the given places of the original text.
export function indentJSON(text, cuts) {
  const pieces = [''];
  let depth = 0, from = 0, next = 0;
  const flush = to => {
    while (next < cuts.length && cuts[next] <= to) {
      pieces[pieces.length - 1] += text.slice(from, cuts[next]);
      pieces.push('');
      from = cuts[next++];
    }
    pieces[pieces.length - 1] += text.slice(from, to);
    from = to;
  };
  const breakLine = () => { pieces[pieces.length - 1] += '\n' + '  '.repeat(Math.min(depth, 60)); };
  // a string of many megabytes, too, is matched without a deep stack
  const token = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|\s+/gs;
  for (let match; (match = token.exec(text));) {
    const c = match[0];
    const end = token.lastIndex;
    if (c === '{' || c === '[') {
      flush(end);
      depth++;
      if (text[end] !== '}' && text[end] !== ']') breakLine();
    } else if (c === '}' || c === ']') {
      depth--;
      flush(match.index);
      const before = text[match.index - 1];
      if (before !== '{' && before !== '[') breakLine();
      flush(end);
    } else if (c === ',') {
      flush(end);
      breakLine();
    } else if (c === ':') {
      flush(end);
      pieces[pieces.length - 1] += ' ';
    } else if (c[0] !== '"') {
      flush(match.index);
      from = end; // space of the original's own
    }
  }
  flush(text.length);
  while (pieces.length <= cuts.length) pieces.push('');
  return pieces;
}

// line is the beginning of a text on one line.
export const line = (text, most = 240) => text.slice(0, most * 2).replace(/\s+/g, ' ').trim().slice(0, most);

// summary is what a row shows of a node: of a failed call the error, then the arguments.
export const summary = key => nodeOf(key).call && hasFailed(key) ? nodeOf(key).line + '  ' + nodeOf(key).call
  : [nodeOf(key).call, nodeOf(key).line].filter(Boolean).join('  → ');

export const hasFailed = key => placeOf(key)?.style === 'failed';

// tally names things with how often each is there: "get_weather ×3, search".
export function tally(names) {
  const times = new Map();
  for (const name of names) times.set(name, (times.get(name) || 0) + 1);
  return [...times].map(([name, n]) => n > 1 ? name + ' ×' + n : name).join(', ');
}

export const count = (n, what) => n.toLocaleString('en-US') + ' ' + what + (n === 1 ? '' : 's');

// duration writes milliseconds as a person would.
export function duration(ms) {
  if (ms < 1) return ms.toFixed(2) + ' ms';
  if (ms < 1000) return Math.round(ms) + ' ms';
  if (ms < 60000) return (ms / 1000).toFixed(ms < 10000 ? 1 : 0) + ' s';
  if (ms < 3600e3) return Math.floor(ms / 60000) + ' min ' + Math.floor(ms % 60000 / 1000) + ' s';
  if (ms < 48 * 3600e3) return Math.floor(ms / 3600e3) + ' h ' + Math.floor(ms % 3600e3 / 60000) + ' min';
  return count(Math.floor(ms / 86400e3), 'day') + ' ' + Math.floor(ms % 86400e3 / 3600e3) + ' h';
}

// tokens writes a count shortly: 812, 12.3k, 4.1M.
export function tokens(n) {
  if (n < 1000) return String(n);
  if (n < 1e6) return (n / 1000).toFixed(n < 1e5 ? 1 : 0) + 'k';
  return (n / 1e6).toFixed(1) + 'M';
}

// saidTexts is what search looks through, in lower case; made at the first search.
export const saidTexts = new Map();

export function saidText(key) {
  let text = saidTexts.get(key);
  if (text === undefined) saidTexts.set(key, text = searchedText(key).toLowerCase());
  return text;
}

// searchedText is the text of a node with its names: its tool or model, what went wrong, and the IDs that the provider
// gave.
export function searchedText(key) {
  const node = nodeOf(key), {body, info} = skimmed(node);
  return [label(key), words(key, skimmed), node.model, node.state, ...node.problems.map(problem => problem.what),
    body?.call_id, info?.response_id].filter(Boolean).join(' ');
}

// differences compares two texts word by word: pieces with op '=', '-' or '+'. Where they differ in too much for that,
// the middle is taken as a whole.
export function differences(a, b) {
  let [x, y] = [a, b].map(text => text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) || []);
  const start = commonStart(x, y);
  const end = commonStart(x.slice(start).reverse(), y.slice(start).reverse());
  const before = x.slice(0, start).join(''), after = x.slice(x.length - end).join('');
  x = x.slice(start, x.length - end);
  y = y.slice(start, y.length - end);
  const middle = x.length * y.length > 250000 ? [['-', x.join('')], ['+', y.join('')]]
    : alignment(x, y, (p, q) => p === q).map(([i, j]) => i < 0 ? ['+', y[j]] : j < 0 ? ['-', x[i]] : ['=', x[i]]);
  const pieces = [];
  for (const [op, text] of [['=', before], ...middle, ['=', after]]) {
    if (!text) continue;
    if (pieces.length && pieces[pieces.length - 1][0] === op) pieces[pieces.length - 1][1] += text;
    else pieces.push([op, text]);
  }
  return pieces;
}

// commonStart counts the equal items at the beginning of two lists.
export function commonStart(x, y) {
  let n = 0;
  while (n < x.length && n < y.length && x[n] === y[n]) n++;
  return n;
}

// alignment pairs the items of two lists by their longest common subsequence: pairs of places, -1 for none.
export function alignment(x, y, same) {
  // best[i * width + j] is the length of the longest common subsequence of x from i on and y from j on.
  const width = y.length + 1;
  const best = new Uint32Array((x.length + 1) * width);
  for (let i = x.length - 1; i >= 0; i--) {
    for (let j = y.length - 1; j >= 0; j--) {
      best[i * width + j] = same(x[i], y[j]) ? best[(i + 1) * width + j + 1] + 1
        : Math.max(best[(i + 1) * width + j], best[i * width + j + 1]);
    }
  }
  const pairs = [];
  for (let i = 0, j = 0; i < x.length || j < y.length;) {
    if (i < x.length && j < y.length && same(x[i], y[j])) pairs.push([i++, j++]);
    else {
      const left = j >= y.length || i < x.length && best[(i + 1) * width + j] >= best[i * width + j + 1];
      pairs.push(left ? [i++, -1] : [-1, j++]);
    }
  }
  return pairs;
}

// The inspector: everything that the page knows of the selected node.

import {copied, drawShare} from './copies.js';
import {$, atRest, el, fill, show, spoken, svg} from './dom.js';
import {markFound} from './found.js';
import {below, Digits, graph, inside, nodeOf, numberOf, placeOf, saved, sums} from './graph.js';
import {areUsed, canRunNow, formsOf} from './live.js';
import {at, glyph} from './outline.js';
import {drill, linkTo, select} from './page.js';
import {fenced, jsonView, layArguments, resultText} from './reading.js';
import {request} from './request.js';
import {
  count, differences, duration, group, isCall, label, line, pretty, summary, textAt, tokens, valueAt,
} from './words.js';

const tabs = ['Says', 'Request', 'JSON'];
export let tab = 'Says';
export const longText = 20000; // characters of one text; the rest is shown on request

// chooseTab chooses what is shown of the next nodes.
export function chooseTab(name) { tab = name; }

// inspect draws the selected node.
export function inspect() {
  const pane = $('inspector'),
    before = {shown: pane.dataset.shown, top: pane.scrollTop, focused: document.activeElement, used: areUsed()};
  const node = nodeOf(at.selected);
  if ($('share').open && $('share-menu').dataset.key !== String(at.selected)) drawShare();
  show(pane);
  if (!node) {
    show(pane, el('p', {class: 'quiet'}, 'Nothing has been said yet.'));
    return;
  }
  const has = tabs.filter(name => name !== 'Request' || isAnswer(at.selected));
  const shown = has.includes(tab) ? tab : 'Says';
  fill(pane,
    [heading(at.selected), troubles(node), facts(at.selected),
      el('div', {role: 'tablist', class: 'tabs', 'aria-label': 'views of the node'},
    has.map(name => el('button',
      {role: 'tab', id: 'tab-' + name, 'aria-controls': 'detail', 'aria-selected': String(name === shown),
        onclick: () => {
      chooseTab(name);
      inspect();
      $('tab-' + name).focus();
    }}, name))), el('div', {id: 'detail', role: 'tabpanel', 'aria-labelledby': 'tab-' + shown})]);
  const detail = $('detail');
  if (shown === 'Says') fill(detail, [says(at.selected), formsOf(at.selected, before.used)]);
  canRunNow();
  if (shown === 'JSON') {
    fill(detail, [toolbar(copyButton('Copy', () => node.raw)), block('pre', pretty(saved(node)), 'code'),
    el('p', {class: 'quiet'}, 'Copied byte for byte as it is saved.')]);
  }
  pane.dataset.shown = node.id + ' ' + shown;
  if (shown === 'Request') request(at.selected, detail, pane.dataset.shown === before.shown);
  markFound();

  // A patch draws the same node again: the reader and what is typed stay where they are.
  pane.scrollTop = pane.dataset.shown === before.shown ? before.top : 0;
  if (pane.contains(before.focused)) before.focused.focus({preventScroll: true});
}

export const isAnswer = key => group(key) === 'assistant';
export const toolbar = (...buttons) => el('div', {class: 'toolbar'}, buttons);

// heading names a node: its sort, number, names, ID and time.
function heading(key) {
  const node = nodeOf(key), {time, redacted} = saved(node);
  return el('div', {class: 'heading ' + placeOf(key).style},
    el('span', {class: 'glyph', 'aria-hidden': 'true'}, glyph(key)),
    el('h2', {}, line(label(key), 80)),
    el('a', {class: 'number', href: linkTo(key), title: 'link to this node'}, 'n' + numberOf(key)),
    node.names.map(name => el('span', {class: 'badge name'}, line(name, 40))),
    redacted && el('span', {class: 'badge odd'}, 'redacted'),
    el('span', {class: 'quiet id'}, node.id,
      time && el('time', {datetime: time}, time.replace('T', ' ').replace(/\.\d+Z$/, 'Z'))));
}

// troubles lists the problems of a node.
function troubles(node) {
  return node.problems.length > 0 && el('ul', {class: 'troubles'},
    node.problems.map(problem => el('li', {class: problem.grave ? 'bad' : 'odd'}, problem.what)));
}

// facts are the numbers of a node: of its own call, of the conversation inside it, and of everything after it.
function facts(key) {
  const node = nodeOf(key), {info = {}, body} = saved(node);
  const rows = [];
  const add = (name, value) => { if (value) rows.push(el('dt', {}, name), el('dd', {}, value)); };
  add('model', [info.model, info.api && '(' + info.api + ')'].filter(Boolean).join(' '));
  add('stopped', info.stop);
  if (node.ms) add('took', duration(node.ms));
  if (node.usage) add('tokens', (info.usage?.incomplete ? 'at least ' : '') + usageText(node.usage));
  if (node.cost !== undefined) add('cost', costText(node.cost));
  add('cache', node.cache?.text);
  if (info.elapsed_ns) add('run took', duration(Number(info.elapsed_ns) / 1e6));
  if (nodeOf(key).sort === 'stop' && info.turns) {
    add('run', [count(info.turns, 'turn'), info.tool_calls && count(info.tool_calls, 'tool call')].filter(Boolean)
      .join(', '));
  }
  if (info.usage && nodeOf(key).sort === 'stop') {
    add('run’s tokens', (info.usage.incomplete ? 'at least ' : '') + usageText(usageList(info.usage)));
  }
  if (info.tool_usage) add('in tools', usageText(usageList(info.tool_usage)));
  if (info.cost !== undefined) add('cost', info.cost instanceof Digits ? info.cost.text : String(info.cost));
  if (body.call_id) add('call', line(body.call_id, 80));
  if (node.opens) {
    add('sub-agent', el('button', {class: 'link', onclick: () => drill(key)}, totals(sums(inside([key])))));
  }
  if (node.kids.length || node.opens?.some(head => nodeOf(head))) {
    rows.push(el('dt', {}, 'from here on'), fromHereOn(key));
  }
  return [rows.length > 0 && el('dl', {class: 'facts'}, rows), node.usage && usageBar(node.usage)];
}

// fromHereOn adds up everything after a node, a moment after it was selected: the time for it grows with the
// conversation, and a key that is held down selects many nodes.
let rest = {key: null, text: '…', timer: null};
function fromHereOn(key) {
  if (rest.key !== key) {
    clearTimeout(rest.timer);
    rest = {key, text: '…', timer: null};
  }
  rest.timer ??= setTimeout(() => atRest(() => { // the text may move what is below it
    rest.timer = null;
    if (at.selected !== key || !nodeOf(key)) return;
    rest.text = totals(sums(subtree(key)));
    const shown = $('from-here-on');
    if (shown) shown.textContent = rest.text;
  }), 200);
  return el('dd', {id: 'from-here-on'}, rest.text);
}

// subtree returns a node, its descendants, and the conversations inside them.
function subtree(key) {
  const keys = below(key);
  return new Set([...keys, ...inside(keys)]);
}

const usageList = u =>
  [u.input || 0, u.output || 0, u.cache_read || 0, u.cache_write || 0, u.reasoning || 0].map(Number);

// usageText writes the tokens of a call in words. They are in the order of usage in a patch.
function usageText(usage) {
  const [input, output, read, written, thought] = usage;
  return [tokens(input) + ' in', tokens(output) + ' out' + (thought ? ' (' + tokens(thought) + ' thinking)' : ''),
    read && tokens(read) + ' read from cache', written && tokens(written) + ' written to cache'].filter(Boolean)
      .join(', ');
}

// totals writes the result of sums in words, without what is zero or unknown.
export function totals(sum) {
  return [count(sum.nodes, 'node'), sum.answers && count(sum.answers, 'model call'),
    sum.calls && count(sum.calls, 'tool call'),
    sum.failed && sum.failed + ' failed', sum.usage.some(Boolean) && usageText(sum.usage),
    sum.ms && duration(sum.ms) + ' in models', costOf(sum)].filter(Boolean).join(', ');
}

// costOf writes the known cost of calls, and the number of calls without a price.
function costOf(sum) {
  if (!sum.priced) return '';
  return 'cost ' + costText(sum.cost) +
    (sum.unpriced ? ' and ' + count(sum.unpriced, 'call') + ' without a price' : '');
}

// costText writes an amount, to three significant digits and never in the form 1e-7. Only the program knows the
// currency.
export const costText = n => n === 0 ? '0' : new Intl.NumberFormat('en', {maximumSignificantDigits: 3}).format(n);

// usageBar shows where the tokens of a call went.
function usageBar(usage) {
  const parts = [['read', usage[2]], ['written', usage[3]], ['input', usage[0]], ['output', usage[1]]]
    .filter(([, n]) => n > 0);
  const all = parts.reduce((sum, [, n]) => sum + n, 0);
  let x = 0;
  const bars = parts.map(([name, n]) => {
    const bar = svg('rect', {x, y: 0, width: n / all * 100, height: 6, class: name});
    x += n / all * 100;
    return bar;
  });
  return svg('svg', {class: 'usage', viewBox: '0 0 100 6', preserveAspectRatio: 'none', role: 'img',
    'aria-label': usageText(usage)}, ...bars);
}

// block is a text, letter for letter. A very long one is cut, with a button for the rest.
export function block(name, text, classes) {
  const e = el(name, {class: classes});
  if (text.length <= longText) {
    e.textContent = text;
    return spoken(e);
  }
  e.textContent = text.slice(0, longText);
  spoken(e);
  return el('div', {}, e, el('button', {class: 'more', onclick: event => {
    e.textContent = text;
    event.target.remove();
  }}, 'show all ' + count(text.length, 'character')));
}

// says shows the content of a node.
const says = key => placeAll(key, nodeOf(key).parts);

const placeAll = (key, parts, returned) => (parts || []).map(part => place(key, part, returned));

// place lays out one part of a node. Returned is set for what a tool returned.
function place(key, part, returned) {
  const from = saved(nodeOf(key));
  switch (part.form || 'text') {
    case 'text': return returned ? resultText(textAt(from, part.at)) : fenced(textAt(from, part.at));
    case 'title': return block('b', textAt(from, part.at), 'said title');
    case 'json': return jsonView(valueAt(from, part.at));
    case 'input': return layArguments(valueAt(from, part.at));
    case 'changed': return diffed(textAt(from, part.from), textAt(from, part.at));
    case 'call': return el('div', {class: 'card call'},
      el('div', {class: 'cardhead'}, '→ ', el('b', {}, part.label), ' ', executedBy(key, part)),
      layArguments(valueAt(from, part.at)));
    case 'head': return caption(part.label);
    case 'note': return el('p', {class: 'quiet'}, part.label);
    case 'card': return card(part, el('div', {class: 'cardhead'}, part.label), placeAll(key, part.parts));
    case 'fold': return el('details', {class: 'card', open: part.open},
      el('summary', {}, part.label), placeAll(key, part.parts));
    case 'result': return el('div', {class: part.bad ? 'outcome bad' : 'outcome'}, placeAll(key, part.parts, true));
    case 'aside': return placeAll(key, part.parts);
    case 'image': return picturesOf(part, valueAt(from, part.at) || {});
    case 'links': return linksTo(valueAt(from, part.at) || []);
    case 'calls': return executions(key);
  }
  throw new Error('a part of an unknown form: ' + part.form);
}

export const caption = text => el('h3', {}, text);
export const link = key => el('button', {class: 'link', onclick: () => select(key)}, 'n' + numberOf(key));
const card = (part, ...inside) => el('div', {class: part.bad ? 'card bad' : 'card'}, inside);

// linksTo links to the nodes of the first IDs in a list, if the page has them.
const linksTo = ids => el('p', {class: 'quiet'},
  ids.slice(0, 50).map(keyOfID).filter(key => key !== null).map(key => [link(key), ' ']));

// executions is a table of the executions before a message with results.
function executions(key) {
  const calls = (nodeOf(key).parents || []).filter(parent => isCall(parent));
  const most = 200; // more are in the outline
  return calls.length > 0 &&
    [el('table', {class: 'calls'},
      el('tbody', {},
        calls.slice(0, most).map(call => el('tr', {class: nodeOf(call).problems.some(p => p.grave) ? 'bad' : null},
    el('td', {}, link(call)), el('td', {}, el('b', {}, line(label(call), 40)), ' ' + summary(call)),
    el('td', {class: 'number'}, nodeOf(call).ms ? duration(nodeOf(call).ms) : ''))))),
    calls.length > most && el('p', {class: 'quiet'}, 'and ' + count(calls.length - most, 'more call'))];
}

// executedBy links a call to its execution. The index of the execution is that of the call's block in its message.
function executedBy(key, part) {
  const index = Number(String(part.at).match(/\d+/)[0]); // the path of the arguments leads through the block
  const kid = nodeOf(key).kids.find(k => isCall(k) && saved(nodeOf(k)).body.index === index);
  return kid === undefined ? null : link(kid);
}

// picturesOf shows an image if its bytes are in the page and are of a type that browsers draw without running or
// fetching anything. Other images are only named.
function picturesOf(part, source) {
  const type = source.data && sniff(source.data);
  const name = el('div', {class: 'cardhead'}, part.label);
  if (!type) return el('div', {class: 'card'}, name);
  const bytes = Uint8Array.from(atob(source.data), c => c.charCodeAt(0));
  const url = URL.createObjectURL(new Blob([bytes], {type}));
  return el('div', {class: 'card'}, name,
    el('img', {src: url, alt: 'image that was sent', onload: () => URL.revokeObjectURL(url)}));
}

// sniff returns the type of an image by its first bytes; null for everything that is no plain picture, such as SVG.
function sniff(data) {
  try {
    const head = atob(data.slice(0, 24));
    if (head.startsWith('\x89PNG\r\n\x1a\n')) return 'image/png';
    if (head.startsWith('\xff\xd8\xff')) return 'image/jpeg';
    if (head.startsWith('GIF87a') || head.startsWith('GIF89a')) return 'image/gif';
    if (head.startsWith('RIFF') && head.slice(8, 12) === 'WEBP') return 'image/webp';
  } catch { /* not base64 */ }
  return null;
}

// diffed is two texts in one, with what differs marked.
function diffed(a, b) {
  return el('pre', {class: 'code diff'}, differences(a ?? '', b ?? '').map(([op, text]) =>
    op === '=' ? text : el(op === '-' ? 'del' : 'ins', {}, text)));
}

// keyOfID returns the key of the node with an ID; null if the page has none.
export function keyOfID(id) {
  for (const node of graph.nodes.values()) if (node.id === id) return node.key;
  return null;
}

export const copyButton = (name, text) => el('button', {onclick: () => copied(text)}, name);

// copy puts text on the clipboard, also where the browser gives pages no clipboard.
export async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = el('textarea', {class: 'offscreen'});
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand('copy');
  area.remove();
  if (!done) throw new Error('the browser does not let a page copy');
}

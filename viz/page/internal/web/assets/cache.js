// The cache: for each request on the path, how much of its input was read from the provider's prompt cache. A broken
// prefix is a red column. Only the columns in view exist.

import {$, el, show, status} from './dom.js';
import {graph, nodeOf, numberOf, saved, sums} from './graph.js';
import {caption, isAnswer, link} from './inspector.js';
import {at} from './outline.js';
import {around, select} from './page.js';
import {share} from './request.js';
import {count, differences, tokens} from './words.js';

const cache = {made: '', keys: [], most: 1, width: 12};
const columnHeight = 154; // of the most tokens

// layCache finds the columns, if anything has changed that they depend on, and reports whether it has.
function layCache() {
  const room = $('cache-strip')?.clientWidth || 600;
  const made = [graph.version, at.end, at.path.length, room].join(' ');
  if (made === cache.made) return false;
  cache.made = made;
  cache.keys = at.path.filter(isAnswer);
  cache.most = cache.keys.reduce((most, key) => Math.max(most, inputOf(key)), 1);
  cache.width = Math.min(40, Math.max(8, Math.floor((room - 8) / Math.max(cache.keys.length, 1))));
  return true;
}

// inputOf is how many tokens a request had, or about how many.
function inputOf(key) {
  const {usage, cache: found} = nodeOf(key);
  return usage ? usage[0] + usage[2] + usage[3] : found?.input || 0;
}

const broke = key => Boolean(nodeOf(key).cache?.broke);

// drawCache makes the view anew: the sums and the list only if they have changed, and the columns in view.
export function drawCache() {
  if (!$('cache-strip')) buildCache();
  if (layCache()) {
    const total = sums(cache.keys).usage, input = total[0] + total[2] + total[3],
      broken = cache.keys.filter(broke).length;
    show($('cache-note'),
      cache.keys.length ? [count(cache.keys.length, 'request'),
        input > 0 && '; ' + share(total[2], input) + ' of the input was read from the cache', broken > 0 && ['; ',
      el('b', {class: 'error'}, '✕ ' + count(broken, 'broken prefix').replace('prefixs', 'prefixes'))]]
        : 'There are no requests.');
    $('cache-columns').style.width = cache.keys.length * cache.width + 'px';
    show($('cache-most'), tokens(cache.most) + ' in');
    drawBreaks();
  }
  drawColumns();
}

// buildCache makes what stays while columns are drawn anew.
function buildCache() {
  const key = (name, text) => [el('span', {class: 'swatch ' + name}), text + ' '];
  show($('cache'), el('div', {class: 'viewbar'}, el('span', {id: 'cache-note', class: 'quiet'}),
    el('span', {class: 'quiet legend'}, key('read', 'from cache'), key('written', 'to cache'), key('input', 'neither'),
      key('predicted', 'predicted'))),
    el('div', {id: 'cache-most', class: 'quiet'}),
    el('div', {id: 'cache-strip', role: 'listbox', tabindex: 0, 'aria-label': 'requests',
      'aria-orientation': 'horizontal', onscroll: drawColumns}, el('div', {id: 'cache-columns', role: 'presentation'})),
    el('p', {id: 'cache-said', role: 'status'}), el('div', {id: 'cache-breaks'}));
  new ResizeObserver(() => { if (!$('cache').hidden) drawCache(); }).observe($('cache-strip'));
}

// drawColumns makes the columns in view, and the text about the selected one.
function drawColumns() {
  const strip = $('cache-strip'), {keys, width} = cache;
  const first = Math.max(0, Math.floor(strip.scrollLeft / width) - 5);
  const last = Math.min(keys.length, first + Math.ceil(strip.clientWidth / width) + 10);
  const place = columnOf(at.selected);
  show($('cache-columns'), keys.slice(first, last).map((key, i) => drawColumn(key, first + i, place)));
  const found = place < 0 ? null : nodeOf(keys[place]).cache;
  if (place >= first && place < last) strip.setAttribute('aria-activedescendant', 'column' + place);
  else strip.removeAttribute('aria-activedescendant');
  show($('cache-said'),
    place >= 0 && [link(keys[place]), ' ', found ? found.text : 'What its request found in the cache is unknown.',
    found?.at !== undefined && [' (', link(found.at), ')']]);
  $('cache-said').className = place >= 0 && broke(keys[place]) ? 'error' : '';
}

// columnOf is the column of a node: its own, or that of the response that it follows.
function columnOf(key) {
  for (let k = key; k !== undefined && k !== null; k = nodeOf(k)?.parents?.[0]) {
    const place = nodeOf(k) && isAnswer(k) ? cache.keys.indexOf(k) : -1;
    if (place >= 0) return place;
  }
  return -1;
}

// drawColumn makes column number i: the tokens of the request, or an estimate if they are unknown, and a line at those
// that could have been read. Place is the selected column.
function drawColumn(key, i, place) {
  const node = nodeOf(key), {usage} = node, part = (name, n) => {
    const e = el('span', {class: name});
    e.style.height = n / cache.most * columnHeight + 'px';
    return n > 0 && e;
  };
  const e = el('div',
    {id: 'column' + i, role: 'option', 'aria-selected': String(i === place),
      class: ['column', broke(key) && 'broke', !usage && 'unknown'].filter(Boolean).join(' '),
    'aria-label': 'n' + numberOf(key) + ': ' + (node.cache?.text || 'unknown'),
    title: 'n' + numberOf(key) + ': ' + (node.cache?.text || 'unknown'), 'data-n': 'n' + numberOf(key),
    onclick: () => select(key)},
  broke(key) && el('span', {class: 'mark'}, '✕'),
  usage ? [part('input', usage[0]), part('written', usage[3]), part('read', usage[2])]
    : part('estimate', inputOf(key)));
  if (node.cache?.predicted) {
    const line = el('span', {class: 'predicted'});
    line.style.bottom = Math.min(node.cache.predicted / cache.most, 1) * columnHeight + 'px';
    e.append(line);
  }
  e.style.left = i * cache.width + 'px';
  e.style.width = cache.width - 2 + 'px';
  return e;
}

// drawBreaks lists the broken prefixes of all branches and sub-agents.
function drawBreaks() {
  const most = 200, all = graph.order.filter(broke);
  show($('cache-breaks'), all.length > 0 && [caption('broken prefixes, in all branches and sub-agents'),
    el('ul', {}, all.slice(0, most).map(drawBreak)),
    all.length > most && el('p', {class: 'quiet'}, 'and ' + count(all.length - most, 'more'))]);
}

// drawBreak explains why a prefix broke. For the first ones it shows the change of a system prompt.
function drawBreak(key, i) {
  const {text, at: changed} = nodeOf(key).cache, before = changed === undefined || i >= 20 ? null
    : promptBefore(changed);
  return el('li', {}, link(key), ' ', el('span', {class: 'error'}, text),
    changed !== undefined && [' (', link(changed), ')'],
    before !== null && el('pre', {class: 'code diff'}, excerpts(differences(promptText(before), promptText(changed)))));
}

const promptText = key => saved(nodeOf(key)).body.text ?? '';

// promptBefore is the system prompt that another one replaced; null if there is none.
function promptBefore(key) {
  const named = k => nodeOf(k).sort === 'system' && saved(nodeOf(k)).body.name;
  if (!named(key)) return null;
  for (let k = nodeOf(key).parents?.[0]; k !== undefined && nodeOf(k); k = nodeOf(k).parents?.[0]) {
    if (named(k) === named(key)) return k;
  }
  return null;
}

// excerpts marks what differs. It leaves out most of what is the same, and the end of a long difference.
function excerpts(pieces) {
  const most = 60, longest = 300; // characters beside a difference, and of one
  return pieces.map(([op, text], i) => {
    if (op !== '=') {
      return el(op === '-' ? 'del' : 'ins', {}, text.length > longest ? text.slice(0, longest) + '…' : text);
    }
    if (text.length <= 2 * most) return text;
    return (i > 0 ? text.slice(0, most) : '') + ' … ' + (i < pieces.length - 1 ? text.slice(-most) : '');
  });
}

// markInCache brings the column of the selected node into view.
export function markInCache() {
  drawCache();
  const strip = $('cache-strip'), x = columnOf(at.selected) * cache.width;
  if (x < 0) return;
  if (x < strip.scrollLeft) strip.scrollLeft = x;
  else if (x + cache.width > strip.scrollLeft + strip.clientWidth) {
    strip.scrollLeft = x + cache.width - strip.clientWidth;
  }
}

// toFirstBreak shows the first broken prefix of the branch, if there is one, whatever is selected.
export function toFirstBreak() {
  const first = cache.keys.findIndex(broke), selected = columnOf(at.selected);
  if (first < 0 || selected >= 0 && broke(cache.keys[selected])) return;
  $('cache-strip').scrollLeft = first * cache.width - $('cache-strip').clientWidth / 2;
  drawColumns();
}

// cacheKey returns what a key does in the view.
export function cacheKey(event) {
  const {keys} = cache, place = columnOf(at.selected);
  const to = i => { if (keys.length) select(keys[Math.min(Math.max(i, 0), keys.length - 1)]); };
  const on = n => {
    const all = keys.filter(broke);
    if (all.length) select(around(all, n));
    else status('No prefix was broken on this branch.');
  };
  return {
    j: () => to(place + 1), ArrowRight: () => to(place + 1), ArrowDown: () => to(place + 1), k: () => to(place - 1),
    ArrowLeft: () => to(place - 1), ArrowUp: () => to(place - 1),
    PageDown: () => to(place + 15), PageUp: () => to(place - 15), Home: () => to(0), End: () => to(keys.length - 1),
    b: () => on(1), B: () => on(-1),
    Escape: () => $('outline').focus(), Backspace: () => $('outline').focus(),
  }[event.key];
}

// What the search found: a flat list of all matches, on every branch and in every sub-agent, each with the text around
// it.

import {agentOf} from './calls.js';
import {$, el, show} from './dom.js';
import {graph, nodeOf, numberOf, placeOf} from './graph.js';
import {at, filtering} from './outline.js';
import {clearFilters, matchCount, matches, select} from './page.js';
import {outermost} from './timeline.js';
import {label, line, searchedText, summary} from './words.js';

const foundHeight = 46; // of a row
const foundList = {made: '', keys: []};

// isNamed reports whether a query names a node: by its number, or by six digits of its ID.
export function isNamed(key, query) {
  return query === 'n' + numberOf(key) || /^[0-9a-f-]{6,}$/.test(query) && nodeOf(key).id.includes(query);
}

// snippet is the text around the first match in a node, with the match marked.
function snippet(key) {
  const text = searchedText(key), at0 = text.toLowerCase().indexOf(at.query);
  if (at0 < 0) return [line(summary(key), 160)];
  const from = Math.max(0, at0 - 40), to = at0 + at.query.length;
  const flat = part => part.replace(/\s+/g, ' ');
  return [from > 0 && '…', flat(text.slice(from, at0)), el('mark', {}, flat(text.slice(at0, to))),
    flat(text.slice(to, to + 160))];
}

// whereIs names the place of a node; '' for the path of the outermost conversation.
const whereIs = (key, path) => agentOf(key) || (path.has(key) ? '' : 'another branch');

// drawFound searches if anything has changed that the matches depend on, and draws the matches in view.
export function drawFound() {
  const made = [graph.version, at.query, at.onlyProblems, ...at.shown].join('\n');
  if (!$('found-list')) {
    show($('found-view'), el('div', {class: 'viewbar'}, el('span', {id: 'found-note', role: 'status'}),
      el('button', {onclick: () => { clearFilters(); $('outline').focus(); }}, 'clear')),
      el('div',
        {id: 'found-list', role: 'listbox', tabindex: 0, 'aria-label': 'matches', onscroll: () => drawFoundRows()},
        el('div', {id: 'found-rows', role: 'presentation'})));
  }
  if (made !== foundList.made) {
    foundList.made = made;
    foundList.keys = filtering() ? matches() : [];
    show($('found-note'), matchCount(foundList.keys.length), at.query && [' of “', line(at.query, 60), '”']);
    $('found-rows').style.height = foundList.keys.length * foundHeight + 'px';
    $('found-list').scrollTop = 0;
  }
  drawFoundRows();
}

function drawFoundRows() {
  const list = $('found-list'), {keys} = foundList;
  const first = Math.max(0, Math.floor(list.scrollTop / foundHeight) - 5);
  const last = Math.min(keys.length, first + Math.ceil(list.clientHeight / foundHeight) + 10);
  const path = at.owner === null ? at.onPath : new Set(outermost());
  show($('found-rows'), keys.slice(first, last).map((key, i) => drawMatch(key, first + i, path)));
  const place = keys.indexOf(at.selected);
  if (place >= first && place < last) list.setAttribute('aria-activedescendant', 'match' + place);
  else list.removeAttribute('aria-activedescendant');
}

// drawMatch makes row number i: a node, where it is, and the text around the match.
function drawMatch(key, i, path) {
  const e = el('div', {id: 'match' + i, role: 'option', 'aria-selected': String(key === at.selected),
    'aria-posinset': i + 1, 'aria-setsize': foundList.keys.length,
    class: ['match', placeOf(key).style].join(' '), onclick: () => select(key)},
  el('div', {}, el('span', {class: 'number'}, 'n' + numberOf(key)), ' ', el('b', {}, line(label(key), 60)), ' ',
    el('span', {class: 'quiet'}, whereIs(key, path)),
    nodeOf(key).problems.some(problem => problem.grave) && el('span', {class: 'badge bad'}, '✕ failed')),
  el('div', {class: 'snippet', dir: 'auto'}, snippet(key)));
  e.style.top = i * foundHeight + 'px';
  return e;
}

// markInFound marks the selected node in the list, and brings it into view.
export function markInFound(key) {
  drawFound();
  const place = foundList.keys.indexOf(key), list = $('found-list'), top = place * foundHeight;
  if (place < 0) return;
  if (top < list.scrollTop) list.scrollTop = top;
  else if (top + foundHeight > list.scrollTop + list.clientHeight) {
    list.scrollTop = top + foundHeight - list.clientHeight;
  }
}

// foundKey returns what a key does in the list.
export function foundKey(event) {
  const {keys} = foundList, place = keys.indexOf(at.selected);
  const to = i => { if (keys.length) select(keys[Math.min(Math.max(i, 0), keys.length - 1)]); };
  return {
    j: () => to(place + 1), ArrowDown: () => to(place + 1), k: () => to(place - 1), ArrowUp: () => to(place - 1),
    PageDown: () => to(place + 10), PageUp: () => to(place - 10), Home: () => to(0), End: () => to(keys.length - 1),
    Enter: () => $('outline').focus(),
  }[event.key];
}

// markFound marks what was searched for in the inspector. It changes nothing in the page: the browser paints the
// ranges.
export function markFound() {
  if (!window.Highlight) return;
  const ranges = [];
  const walker = at.query && document.createTreeWalker($('inspector'), NodeFilter.SHOW_TEXT);
  while (walker && ranges.length < 500 && walker.nextNode()) {
    const text = walker.currentNode.data.toLowerCase();
    if (text.length !== walker.currentNode.data.length) continue; // a letter has another length in lower case
    const next = from => text.indexOf(at.query, from);
    for (let i = next(0); i >= 0 && ranges.length < 500; i = next(i + at.query.length)) {
      const range = new Range();
      range.setStart(walker.currentNode, i);
      range.setEnd(walker.currentNode, i + at.query.length);
      ranges.push(range);
    }
  }
  CSS.highlights.set('found', new Highlight(...ranges));
}

// The timeline: a row a turn, with the model call and the tool calls as bars over one axis of time. Sub-agents are rows
// below the call that started them. Only the rows in view exist.

import {$, el, fill, oneLine, show} from './dom.js';
import {conversationOf, endOf, graph, inside, nodeOf, numberOf, pathTo, placeOf} from './graph.js';
import {isAnswer} from './inspector.js';
import {at} from './outline.js';
import {select} from './page.js';
import {narrowPage} from './views.js';
import {count, duration, isCall, isMessage, isResults, label, line} from './words.js';

const laneHeight = 20, mostLanes = 8; // calls beyond that share the last lane
const mostBars = 300;                 // of one row

const timeline = {
  made: '',          // what the rows were made from
  path: [],          // the outermost conversation
  open: new Map(),   // calls with a sub-agent that somebody opened or closed, by key
  rows: [],
  places: new Map(), // the row of a node, by key
  tops: [],          // where each row begins, and where the last one ends
  stretches: [],     // the axis: {from, to, at, size}
  start: 0, length: 0,
  left: 0, scale: 1, // of the view: where it begins, and pixels for a millisecond
  fits: true,        // the view has the time of the rows in it, also where they are scrolled
};

// spanOf returns the beginning and the end of a node. Known is false if only the time of making the node is recorded.
function spanOf(key) {
  const {at: from, ms} = nodeOf(key);
  return {from, to: from + (ms || 0), known: Boolean(ms)};
}

// outermost is the path of the outermost conversation that the person is in.
export function outermost() {
  if (at.owner === null) return at.path;
  let key = at.owner;
  while (conversationOf(key) !== null) key = conversationOf(key);
  return timeline.path.includes(key) ? timeline.path : pathTo(endOf(key));
}

// layTimeline finds the rows and the axis, if anything has changed that they depend on, and reports whether it has.
function layTimeline() {
  const path = outermost();
  const made = [graph.version, path.length, path[path.length - 1], ...[...timeline.open].flat()].join(' ');
  if (made === timeline.made) return false;
  Object.assign(timeline, {made, path, rows: [], places: new Map()});
  const few = inside(path).size + path.length < 400;
  layTurns(path, 0, few);
  layAxis();
  timeline.tops = [0];
  timeline.rows.forEach((row, i) => {
    timeline.tops.push(timeline.tops[i] + 8 + row.lanes * laneHeight);
    for (const bar of row.bars) timeline.places.set(bar.key, i);
  });
  return true;
}

// layTurns adds the rows of a conversation, and of the sub-agents that are open.
function layTurns(path, level, few) {
  const turns = [];
  const turnOf = new Map(); // by the key of the response
  for (const key of path) {
    const turn = isCall(key) && turnOf.get(nodeOf(key).parents?.[0]);
    if (turn) turn.push(key);
    else if (isCall(key) || isMessage(key) && !isResults(key) ||
      ['stop', 'sub-graph', 'compaction'].includes(nodeOf(key).sort)) {
      turns.push([key]);
      turnOf.set(key, turns[turns.length - 1]);
    }
  }

  let before; // the end of the row above
  for (const keys of turns) {
    const row = {key: keys[0], level, inner: /** @type {any[]} */ (undefined), ...layBars(keys, before)};
    timeline.rows.push(row);
    before = Math.max(...row.bars.map(bar => bar.to));
    for (const key of keys.filter(k => nodeOf(k).opens)) {
      const open = timeline.open.get(key) ?? few;
      row.inner = [...row.inner || [], {key, open}];
      if (open) layTurns(pathTo(...nodeOf(key).opens).filter(k => conversationOf(k) === key), level + 1, few);
    }
  }
}

// layBars places the bars of a turn in lanes. Before is the end of what came before it: from there to its beginning, it
// waited.
function layBars(keys, before) {
  const bars = keys.map((key, i) => ({key, ...spanOf(key), wait: i || !isAnswer(key) ? undefined : before}));
  const asked = bars[0];
  for (const bar of bars.slice(1)) bar.wait = asked.to;
  for (const bar of bars) if (!bar.known) bar.wait = undefined; // it may have begun long before
  const ends = []; // of the last bar of each lane
  for (const bar of [...bars].sort((a, b) => a.from - b.from)) {
    const start = bar === asked ? bar.from : Math.min(bar.wait ?? bar.from, bar.from);
    let lane = ends.findIndex(end => end <= start);
    if (lane < 0) lane = Math.min(ends.length, mostLanes - 1);
    bar.lane = lane;
    // A bar without a length takes a millisecond: two at the same time then get different lanes.
    ends[lane] = Math.max(ends[lane] ?? -Infinity, bar.to + (bar.known ? 0 : 1));
  }
  for (const bar of bars) bar.last = ends[bar.lane] <= bar.to; // there is space behind it
  return {bars, lanes: Math.max(1, ends.length)};
}

// layAxis makes the axis. A long stretch in which nothing ran is drawn short: it would take most of the width.
function layAxis() {
  const spans = timeline.rows.flatMap(row => row.bars).sort((a, b) => a.from - b.from);
  const busy = [];
  for (const {from, to} of spans) {
    const last = busy[busy.length - 1];
    if (last && from <= last.to) last.to = Math.max(last.to, to);
    else busy.push({from, to});
  }
  const worked = busy.reduce((sum, {from, to}) => sum + to - from, 0);
  const most = worked ? worked / Math.max(16, busy.length) : Infinity;
  timeline.stretches = [];
  let size = 0;
  busy.forEach(({from, to}, i) => {
    if (i) {
      const gap = from - busy[i - 1].to;
      timeline.stretches.push({from: from - gap, to: from, at: size, size: Math.min(gap, most), idle: true,
        cut: gap > most});
      size += Math.min(gap, most);
    }
    timeline.stretches.push({from, to, at: size, size: to - from});
    size += to - from;
  });
  timeline.start = busy.length ? busy[0].from : 0;
  timeline.end = busy.length ? busy[busy.length - 1].to : 0;
  timeline.length = Math.max(size, 1);
}

// onAxis returns the place of a time on the axis.
function onAxis(time) {
  const list = timeline.stretches;
  let low = 0, high = list.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (list[middle].from <= time) low = middle;
    else high = middle - 1;
  }
  const s = list[low];
  return s ? s.at + (s.to > s.from ? Math.min(1, Math.max(0, (time - s.from) / (s.to - s.from))) * s.size : 0) : 0;
}

const nameWidth = () => narrowPage.matches ? 120 : 200;
const trackWidth = () => Math.max(80, ($('timeline-rows')?.clientWidth || 600) - nameWidth() - 16);
const axisX = time => (onAxis(time) - timeline.left) * timeline.scale;

// fitRows has the axis show the time of the rows in view.
function fitRows() {
  const list = $('timeline-list'), {tops, rows} = timeline;
  let first = Infinity, last = -Infinity;
  for (let i = rowAt(list.scrollTop); i < rows.length && tops[i] < list.scrollTop + list.clientHeight; i++) {
    for (const {from, to} of rows[i].bars) {
      first = Math.min(first, onAxis(from));
      last = Math.max(last, onAxis(to));
    }
  }
  timeline.scale = (trackWidth() - 24) / Math.max(last - first, 1);
  timeline.left = first - 10 / timeline.scale;
}

// rowAt is the row that lies at a height.
function rowAt(y) {
  let low = 0, high = Math.max(0, timeline.rows.length - 1);
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (timeline.tops[middle] <= y) low = middle;
    else high = middle - 1;
  }
  return low;
}

// drawTimeline makes the view anew: its head, and the rows in view.
export function drawTimeline() {
  const changed = layTimeline();
  if (!$('timeline-list')) buildTimeline();
  if (changed) {
    const calls = graph.totals.filter(total => total.by !== 'agent');
    const [all, untimed] = ['calls', 'untimed'].map(name => calls.reduce((sum, total) => sum + (total[name] || 0), 0));
    show($('timeline-note'), timeline.rows.length ? duration(timeline.end - timeline.start) + ' from beginning to end'
      : 'There are no calls.',
      untimed > 0 && '; ◇ how long ' +
        (untimed === all ? 'a call' : untimed.toLocaleString('en-US') + ' of ' + count(all, 'call')) +
          ' took is unknown: it stands where its node was made');
    $('timeline-rows').style.height = timeline.tops[timeline.tops.length - 1] + 'px';
  }
  drawTurns();
}

// buildTimeline makes what stays while rows are drawn anew: the buttons, the axis and the list.
function buildTimeline() {
  show($('timeline'), el('div', {class: 'viewbar'},
    el('div', {role: 'group', 'aria-label': 'zoom'},
      el('button', {'aria-label': 'closer', title: 'closer: +', onclick: () => zoomTimeline(1.5)}, '+'),
      el('button', {'aria-label': 'further', title: 'further: -', onclick: () => zoomTimeline(1 / 1.5)}, '−'),
      el('button', {title: 'the rows in view: 0', onclick: () => zoomTimeline(0)}, 'fit')),
    el('span', {id: 'timeline-note', class: 'quiet'})),
  el('div', {id: 'axis', 'aria-hidden': 'true'}),
  el('div', {id: 'timeline-list', role: 'tree', tabindex: 0, 'aria-label': 'timeline', onscroll: drawTurns},
    el('div', {id: 'timeline-rows', role: 'presentation'})));
  listenToTimeline();
}

// drawAxis draws the ticks: round times since the beginning, and how long the stretches are that are cut short.
function drawAxis() {
  const {scale} = timeline, width = trackWidth();
  const steps = [1, 2, 5].flatMap(n => [0.1, 1, 10, 100].map(m => n * m))
    .concat([1e3, 2e3, 5e3, 1e4, 3e4, 6e4, 12e4, 3e5, 6e5, 18e5, 36e5, 72e5, 216e5, 864e5]).sort((a, b) => a - b);
  const step = steps.find(s => s * scale >= 90) ?? Math.ceil(90 / scale / 864e5) * 864e5;
  const marks = [];
  for (const s of timeline.stretches) {
    const x = (s.at - timeline.left) * scale, w = s.size * scale;
    if (x > width || x + w < 0 || marks.length > 60) continue;
    if (s.cut) marks.push({x: x + w / 2, text: '⋯ ' + duration(s.to - s.from), idle: true});
    else {
      const from = Math.max(s.from, s.from + (timeline.left - s.at) * (s.to - s.from) / (s.size || 1));
      const first = Math.ceil((from - timeline.start) / step) * step;
      for (let t = first; t <= s.to - timeline.start && marks.length < 60; t += step) {
        const at = axisX(timeline.start + t);
        if (at > width) break;
        if (at >= 0) marks.push({x: at, text: t ? duration(t) : '0'});
      }
    }
  }
  let last = -Infinity; // labels do not lie on one another
  $('axis').style.paddingLeft = nameWidth() + 'px';
  show($('axis'), el('div', {class: 'track'}, marks.sort((a, b) => a.x - b.x).map(({x, text, idle}) => {
    const clear = x - last >= 70;
    if (clear && text) last = x;
    const e = el('span', {class: idle ? 'tick idle' : 'tick', title: idle ? 'nothing ran: ' + text : null},
      clear ? text : '');
    e.style.left = x + 'px';
    return e;
  })));
}

// drawTurns makes the rows in view, and the axis over them.
function drawTurns() {
  const list = $('timeline-list'), {tops, rows} = timeline;
  if (timeline.fits && rows.length) fitRows();
  drawAxis();
  const first = Math.max(0, rowAt(list.scrollTop) - 5);
  const bottom = list.scrollTop + list.clientHeight;
  let last = first;
  while (last < rows.length && tops[last] < bottom + 150) last++;
  show($('timeline-rows'), rows.slice(first, last).map((row, i) => drawTurn(row, first + i)));
  const place = rowInTimeline();
  if (place >= first && place < last) list.setAttribute('aria-activedescendant', 'turn' + place);
  else list.removeAttribute('aria-activedescendant');
}

const rowInTimeline = () => timeline.places.get(at.selected) ?? -1;

// drawTurn makes row number i: its name, and its bars.
function drawTurn(row, i) {
  const {key, level, bars, inner} = row;
  const e = el('div', {id: 'turn' + i, role: 'treeitem', 'aria-level': level + 1, 'aria-posinset': i + 1,
    'aria-setsize': timeline.rows.length, 'aria-selected': String(i === rowInTimeline()),
    'aria-expanded': inner ? String(inner.some(call => call.open)) : null, class: 'turn ' + placeOf(key).style});
  const name = el('div', {class: 'turnname', onclick: () => select(key)},
    el('span', {class: 'number'}, 'n' + numberOf(key)), ' ',
    inner && el('button', {class: 'fold', tabindex: -1, 'aria-label': inner.some(call => call.open) ? 'fold' : 'unfold',
      onclick: event => { event.stopPropagation(); toggleAgents(row); }},
      inner.some(call => call.open) ? '▾' : '▸'), isAnswer(key) ? oneLine(line(nodeOf(key).line || label(key), 80))
        : [el('b', {}, line(label(key), 30)), ' ', oneLine(line(nodeOf(key).line || '', 80))]);
  name.style.paddingLeft = 6 + Math.min(level, 6) * 12 + 'px';
  fill(e, [name,
    el('div', {class: 'track'}, bars.slice(0, mostBars).map(drawBar),
      bars.length > mostBars && el('span', {class: 'more quiet'},
        '+' + (bars.length - mostBars).toLocaleString('en-US')))]);
  e.style.top = timeline.tops[i] + 'px';
  e.style.height = timeline.tops[i + 1] - timeline.tops[i] + 'px';
  return e;
}

// barText describes a bar in words.
function barText({key, from, to, known, wait}) {
  const node = nodeOf(key);
  const waited = wait === undefined ? 0 : from - wait;
  return [isAnswer(key) ? node.model || 'model' : label(key), 'n' + numberOf(key),
    'after ' + duration(from - timeline.start),
    waited >= 1 && 'waited ' + duration(waited), known ? 'took ' + duration(to - from)
      : (isCall(key) || isAnswer(key)) && 'how long it took is unknown', node.state,
    ...node.problems.map(problem => problem.what)].filter(Boolean).join(', ');
}

// drawBar returns the pieces of a bar that are in view: the wait before it, the bar, and its text beside it where it
// does not fit inside.
function drawBar(bar) {
  const {key, from, to, known, wait, lane} = bar, node = nodeOf(key);
  const x = axisX(from), w = Math.max(2, axisX(to) - x), width = trackWidth();
  const pieces = [];
  if (wait !== undefined && wait < from) {
    const start = Math.max(-20, axisX(wait)), end = Math.min(x, width + 20);
    if (end > start) {
      pieces.push(placed(el('span', {class: isAnswer(key) && node.state ? 'wait retried' : 'wait'}), start, end - start,
        lane));
    }
  }
  if (x > width + 20 || x + w < -20) return pieces;
  const kind = isAnswer(key) ? 'model' : isCall(key) ? 'tool' : 'point';
  const classes = ['bar', kind, known ? '' : 'unknown', isCall(key) && node.state ? 'unfinished' : '',
    node.problems.some(p => p.grave) ? 'grave' : node.problems.length ? 'odd' : '',
    key === at.selected ? 'selected' : ''];
  const text = kind === 'model' ? duration(to - from) : line(label(key), 60) + ' ' + duration(to - from);
  const fits = w > 46;
  if (known && !fits && bar.last && x + w < width - 40) {
    pieces.push(placed(el('span', {class: 'beside'}, text), x + Math.max(w, 8) + 4, width - x - w - 12, lane));
  }
  const e = el('span', {class: classes.filter(Boolean).join(' '), title: barText(bar), 'data-n': 'n' + numberOf(key),
    onclick: event => { event.stopPropagation(); select(key); }},
    known ? fits && kind !== 'point' ? text : '' : kind === 'point' ? '' : '◇');
  // A bar that begins before the view keeps its text in view.
  pieces.push(known ? placed(e, Math.max(x, -10), Math.min(x + w, width + 20) - Math.max(x, -10), lane)
    : placed(e, x - 6, 12, lane));
  return pieces;
}

// placed sets the place of an element in a track.
function placed(e, x, w, lane) {
  e.style.left = x + 'px';
  e.style.width = Math.max(2, w) + 'px';
  e.style.top = 4 + lane * laneHeight + 'px';
  return e;
}

// toggleAgents closes the sub-agents of a row if one is open, and otherwise opens all.
function toggleAgents(row) {
  const open = !row.inner.some(call => call.open);
  for (const {key} of row.inner) timeline.open.set(key, open);
  drawTimeline();
}

// zoomTimeline changes the scale. The point under the pointer stays where it is, or else the selected call. A factor of
// 0 fits the axis to the rows in view.
function zoomTimeline(factor, x) {
  timeline.fits = !factor;
  if (factor) {
    const all = (trackWidth() - 24) / timeline.length, before = timeline.scale;
    const anchor = x ?? Math.min(Math.max(rowInTimeline() < 0 ? 0 : axisX(nodeOf(at.selected).at), 0), trackWidth());
    timeline.scale = Math.min(Math.max(before * factor, all), Math.max(all, 100));
    timeline.left += anchor / before - anchor / timeline.scale;
  }
  moveAxis(0);
}

// moveAxis moves the view by pixels, and keeps it within the axis.
function moveAxis(pixels) {
  const {scale, length} = timeline, margin = 10 / scale;
  if (pixels) timeline.fits = false;
  timeline.left = Math.max(Math.min(timeline.left + pixels / scale, length + margin - trackWidth() / scale), -margin);
  drawTurns();
}

// markInTimeline marks the selected node, opens the sub-agents that it is in, and brings it into view.
export function markInTimeline(key) {
  for (let owner = conversationOf(key); owner !== null; owner = conversationOf(owner)) {
    if (!timeline.places.has(key) && timeline.open.get(owner) !== true) timeline.open.set(owner, true);
  }
  drawTimeline();
  const row = rowInTimeline(), list = $('timeline-list');
  if (row < 0) return;
  const top = timeline.tops[row], end = timeline.tops[row + 1];
  if (top < list.scrollTop) list.scrollTop = top;
  else if (end > list.scrollTop + list.clientHeight) list.scrollTop = end - list.clientHeight;

  const x = axisX(nodeOf(key).at), width = trackWidth();
  if (!timeline.fits && (x < 0 || x > width - 30)) moveAxis(x - width / 3);
  else drawTurns();
}

// timelineKey returns what a key does in the timeline.
export function timelineKey(event) {
  const row = rowInTimeline();
  const to = i => {
    const found = timeline.rows[Math.min(Math.max(i, 0), timeline.rows.length - 1)];
    if (found) select(found.key);
  };
  const beside = n => {
    const bars = timeline.rows[row]?.bars || [], next = bars[bars.findIndex(bar => bar.key === at.selected) + n];
    if (next) select(next.key);
  };
  return {
    j: () => to(row + 1), ArrowDown: () => to(row + 1), k: () => to(row - 1), ArrowUp: () => to(row - 1),
    PageDown: () => to(row + 12), PageUp: () => to(row - 12), Home: () => to(0),
    End: () => to(timeline.rows.length - 1),
    ArrowRight: () => beside(1), ArrowLeft: () => beside(-1),
    Enter: () => { if (timeline.rows[row]?.inner) toggleAgents(timeline.rows[row]); },
    '+': () => zoomTimeline(1.5), '-': () => zoomTimeline(1 / 1.5), 0: () => zoomTimeline(0),
    Escape: () => $('outline').focus(), Backspace: () => $('outline').focus(),
  }[event.key];
}

// listenToTimeline moves and zooms the axis with the pointer: drag and the horizontal wheel move it, Ctrl and the wheel
// zoom it.
function listenToTimeline() {
  const list = $('timeline-list');
  list.addEventListener('wheel', event => {
    const x = event.clientX - list.getBoundingClientRect().left - nameWidth();
    const across = event.shiftKey ? event.deltaY : event.deltaX;
    if (event.ctrlKey || event.metaKey) zoomTimeline(Math.exp(-event.deltaY / 200), Math.max(0, x));
    else if (across) moveAxis(across);
    else return;
    event.preventDefault();
  }, {passive: false});
  let from = null;
  list.addEventListener('pointerdown', event => { if (!event.button) from = event.clientX; });
  window.addEventListener('pointerup', () => { from = null; });
  list.addEventListener('pointermove', event => {
    if (from === null || Math.abs(event.clientX - from) < 4) return;
    moveAxis(from - event.clientX);
    from = event.clientX;
  });
  new ResizeObserver(() => { if (!$('timeline').hidden) moveAxis(0); }).observe(list);
}

// The folded boxes of the graph. The program decides what is folded, and sends the text of each box and the picture
// inside it, which may hold more folded boxes. Here they open and close. An open one makes room for its picture in the
// picture around it: everything below it moves down, everything right of its middle moves right, and nothing else
// changes.

import {$, status, svg} from './dom.js';
import {graph, nodeOf, numberOf, placeOf} from './graph.js';
import {keyOfID} from './inspector.js';
import {at} from './outline.js';
import {matches} from './page.js';
import {drawAnew, lineHeight, lookAt, paintPicture, picture, view} from './picture.js';
import {openView, shownView} from './views.js';

// unfolded has the folded boxes that are open: those that the person opened, with the id of their first node, and those
// that the selected node lies in, which close when the selection leaves them. known has all that there were before a
// patch, with the same id.
const unfolded = {byHand: new Map(), bySelection: new Set(), known: new Map()};

const isUnfolded = key => unfolded.byHand.has(key) || unfolded.bySelection.has(key);

export const titleHeight = 22; // of an open box

// foldsAround are the folded boxes that a box lies in, the innermost first.
function foldsAround(box) {
  const list = [];
  for (let fold = graph.folds.get(box?.in); fold; fold = graph.folds.get(fold.in)) list.push(fold.key);
  return list;
}

// boxOf is the box that a node is drawn in: its own, that of its call, or the outermost folded one around it that is
// closed.
export function boxOf(key) {
  return foldsAround(placeOf(key)).findLast(fold => !isUnfolded(fold)) ?? placeOf(key)?.of ?? key;
}

// sortSheets finds what belongs to each picture, by the folded box around it: undefined for the outermost picture.
export function sortSheets() {
  picture.sheets = new Map([[undefined, {places: [], folds: [], edges: [], rooms: []}]]);
  for (const key of graph.folds.keys()) picture.sheets.set(key, {places: [], folds: [], edges: [], rooms: []});
  const sheet = thing => picture.sheets.get(thing.in);
  for (const place of graph.places.values()) if (place.of === undefined) sheet(place).places.push(place);
  for (const fold of graph.folds.values()) sheet(fold).folds.push(fold);
  for (const room of graph.rooms) sheet(room).rooms.push(room);
  for (const edge of graph.edges.values()) {
    const from = graph.places.get(edge.from) || graph.folds.get(edge.from);
    if (from) sheet(from).edges.push(edge);
  }
}

// arrange finds where everything is that is drawn now.
export function arrange() {
  Object.assign(picture, {things: [], at: new Map(), open: [], rooms: []});
  const whole = measure(undefined);
  Object.assign(picture, {width: whole.w, height: whole.h});
  put(undefined, whole, 0, 0);
}

// measure returns the size of a picture with its open boxes, and how far the things in it move to make room for them.
function measure(key) {
  const fold = graph.folds.get(key);
  const grown = picture.sheets.get(key).folds.filter(inner => isUnfolded(inner.key)).map(inner => {
    const size = measure(inner.key);
    return {key: inner.key, size, middle: inner.x + inner.w / 2, top: inner.y, bottom: inner.y + inner.h,
      wider: Math.max(0, size.outerW - inner.w), higher: Math.max(0, size.outerH - inner.h)};
  });

  // Of the open boxes before a point, the one that moves it furthest counts: two side by side do not move it twice.
  const most = list => Math.max(0, ...list.map(g => g.moved));
  const rows = grown.toSorted((a, b) => a.bottom - b.bottom).map(g => ({...g}));
  const down = y => most(rows.filter(g => g.moved !== undefined && g.bottom <= y));
  for (const g of rows) g.moved = down(g.top) + g.higher;
  const columns = grown.toSorted((a, b) => a.middle - b.middle).map(g => ({...g}));
  const left = x => most(columns.filter(g => g.moved !== undefined && g.middle < x));
  for (const g of columns) g.moved = left(g.middle) + g.wider;
  const right = x => (left(x) + most(columns.filter(g => g.middle <= x))) / 2; // the middle itself moves half as far

  const w = (fold ? fold.width : graph.width) + right(Infinity),
    h = (fold ? fold.height : graph.height) + down(Infinity);
  return {w, h, down, right, inner: new Map(grown.map(g => [g.key, g.size])),
    outerW: fold && Math.max(w, openTitle(fold).length * 7.25 + 24), outerH: h + titleHeight};
}

const openTitle = fold => '▾ ' + fold.text.split('\n')[0];

// put places the things of a picture. Left and top are the point of its upper left corner.
function put(key, size, left, top) {
  const sheet = picture.sheets.get(key);
  const moved = box => ({...box, x: left + box.x + size.right(box.x + box.w / 2), y: top + box.y + size.down(box.y)});
  for (const box of [...sheet.places, ...sheet.folds]) {
    const inner = size.inner.get(box.key);
    const thing = moved(box);
    picture.at.set(box.key, thing);
    if (!inner) {
      picture.things.push(thing);
      continue;
    }
    Object.assign(thing, {x: thing.x + (box.w - inner.outerW) / 2, w: inner.outerW, h: inner.outerH});
    picture.open.push(thing);
    put(box.key, inner, thing.x + (inner.outerW - inner.w) / 2, thing.y + titleHeight);
  }

  for (const edge of sheet.edges) {
    const from = picture.at.get(edge.from), to = picture.at.get(edge.to);
    if (!from || !to) continue;
    const points = edge.points.map((p, i) => i % 2 ? top + p + size.down(p) : left + p + size.right(p));
    // A line begins and ends at its boxes, also where what is beside them moves further.
    points[1] = from.y + from.h;
    points[points.length - 1] = to.y;
    picture.things.push({...edge, points});
  }
  for (const room of sheet.rooms) {
    const x = left + room.x + size.right(room.x), y = top + room.y + size.down(room.y);
    picture.rooms.push({...room, x, y, w: left + room.x + room.w + size.right(room.x + room.w) - x,
      h: top + room.y + room.h + size.down(room.y + room.h) - y});
  }
}

const firstID = key => nodeOf(graph.folds.get(key)?.first)?.id;

const unfoldByHand = key => unfolded.byHand.set(key, firstID(key));

// keepUnfolded keeps the boxes open that the person opened, after a patch. New boxes around such a box are opened too.
// If the box itself is gone, new boxes around its first node are.
export function keepUnfolded() {
  for (const [key, id] of [...unfolded.byHand]) {
    const same = firstID(key) === id;
    if (!same) unfolded.byHand.delete(key);
    const around = foldsAround(same ? graph.folds.get(key) : placeOf(keyOfID(id)));
    around.filter(fold => unfolded.known.get(fold) !== firstID(fold)).forEach(unfoldByHand);
  }
  unfolded.known = new Map([...graph.folds.keys()].map(key => [key, firstID(key)]));
}

// unfoldTo opens the folded boxes around a node, and closes those opened for the node selected before.
export function unfoldTo(key) {
  const around = new Set(foldsAround(placeOf(key)));
  const before = unfolded.bySelection;
  unfolded.bySelection = around;
  if (around.size !== before.size || [...around].some(fold => !before.has(fold))) drawAnew();
}

// toggleFold opens a folded box, or closes it. Its title stays where it is in view, or comes into view.
export function toggleFold(key) {
  const before = picture.at.get(key), focused = document.activeElement?.dataset?.fold === String(key);
  if (isUnfolded(key)) {
    unfolded.byHand.delete(key);
    unfolded.bySelection.delete(key);
  } else unfoldByHand(key);
  drawAnew();

  const after = picture.at.get(key);
  view.x += after.x + after.w / 2 - before.x - before.w / 2;
  view.y += after.y - before.y;
  lookAtTitle(after);
  paintPicture();
  if (focused) foldElement(key)?.focus({preventScroll: true});
}

// lookAtTitle brings the upper left of an open box into view.
const lookAtTitle = box =>
  lookAt({...box, w: Math.min(box.w, $('canvas').clientWidth / view.scale - 60), h: Math.min(box.h, titleHeight + 40)});

export const foldElement = key => document.querySelector('#middle [data-fold="' + key + '"]');

// stepFold gives the focus to the next folded box in reading order, open or not, or to the one before.
export function stepFold(n) {
  const drawn = [...graph.folds.values()].filter(fold => picture.at.has(fold.key));
  if (!drawn.length) {
    status('Nothing is folded.');
    return;
  }
  if (shownView() !== 'graph') openView('graph');
  const order = fold => [numberOf(fold.first), -fold.nodes];
  drawn.sort((a, b) => order(a)[0] - order(b)[0] || order(a)[1] - order(b)[1]);
  const here = drawn.findIndex(fold => document.activeElement?.dataset?.fold === String(fold.key));
  const next = drawn[here < 0 ? (n > 0 ? 0 : drawn.length - 1) : (here + n + drawn.length) % drawn.length];
  if (view.scale < 0.5) view.scale = 0.75;
  lookAtTitle(picture.at.get(next.key));
  paintPicture();
  foldElement(next.key)?.focus({preventScroll: true});
}

// foldAttributes make a folded box a button, open or not.
export const foldAttributes = fold => ({
  'data-fold': fold.key, role: 'button', tabindex: 0, 'aria-expanded': String(isUnfolded(fold.key)),
  'aria-label': fold.text.replaceAll('\n', ' '),
});

// drawOpen draws the outline of an open box, with its title.
export function drawOpen(fold) {
  const title = svg('text', {x: fold.x + 10, y: fold.y + 15});
  title.textContent = openTitle(fold);
  return svg('g', {class: 'open-fold ' + fold.style, ...foldAttributes(fold)},
    svg('rect', {class: 'bar', x: fold.x, y: fold.y, width: fold.w, height: titleHeight, rx: 6}),
    svg('rect', {class: 'outline', x: fold.x, y: fold.y, width: fold.w, height: fold.h, rx: 6}), title);
}

// drawNote writes how the graph is folded above it, where the program has left room for that. It is true while nothing
// is open.
export function drawNote() {
  if (picture.open.length) return [];
  return graph.note.split('\n').map((line, i) => {
    const text = svg('text', {class: 'fold-note', x: 16, y: 28 + i * lineHeight});
    text.textContent = line;
    return text;
  });
}

// withFolds adds to some nodes the boxes that show them: of calls, and the folded ones that they lie in.
function withFolds(keys) {
  const boxes = new Set(keys);
  for (const key of keys) {
    if (placeOf(key)?.of !== undefined) boxes.add(placeOf(key).of);
    for (let fold = graph.folds.get(placeOf(key)?.in); fold && !boxes.has(fold.key); fold = graph.folds.get(fold.in)) {
      boxes.add(fold.key);
    }
  }
  return boxes;
}

// marked has the boxes on the path, those that the filters leave, and those where a call waits. Each is found when it
// is asked for.
export const marked = {};

export function boxesOnPath() {
  if (marked.path !== at.path || marked.version !== graph.version) {
    Object.assign(marked, {path: at.path, version: graph.version, onPath: withFolds(at.path), filter: null,
      odd: withFolds(graph.problems.filter(problem => problem.waits).map(problem => problem.key))});
  }
  return marked.onPath;
}

export function boxesLeft() {
  boxesOnPath();
  const filter = [at.query, at.onlyProblems, ...at.shown].join(' ');
  if (marked.filter !== filter) Object.assign(marked, {filter, left: withFolds(matches())});
  return marked.left;
}

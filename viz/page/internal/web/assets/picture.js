// The picture of the graph. Only what is in view is in the page: near by as boxes with text, from afar as one path a
// style.

import {$, svg} from './dom.js';
import {
  arrange, boxesLeft, boxesOnPath, boxOf, drawNote, drawOpen, foldAttributes, foldElement, keepUnfolded, marked,
  sortSheets, titleHeight, toggleFold,
} from './folds.js';
import {graph, nodeOf, numberOf} from './graph.js';
import {at, filtering} from './outline.js';
import {drill, select} from './page.js';
import {isMessage} from './words.js';

export const view = {x: 0, y: 0, scale: 1, due: false, moved: false}; // moved is set once a person has moved it
const mostBoxes = 400; // in view at once; beyond that nobody reads them
export const picture = {boxes: new Map(), lines: new Map(), index: new Map(), far: null};

// An index of places in squares, in several sizes. Each thing is in a few squares of about its own size. The time to
// find what is in view then depends on what is in view, even if an edge is as long as the conversation.
const squareSize = level => 256 * 4 ** level;

// indexed puts a thing into the squares that it lies in.
function indexed(thing, x, y, w, h) {
  const level = Math.max(0, Math.ceil(Math.log(Math.max(w, h, 1) / 256) / Math.log(4)));
  const size = squareSize(level);
  for (let i = Math.floor(x / size); i <= Math.floor((x + w) / size); i++) {
    for (let j = Math.floor(y / size); j <= Math.floor((y + h) / size); j++) {
      const name = level + ' ' + i + ' ' + j;
      if (!picture.index.has(name)) picture.index.set(name, []);
      picture.index.get(name).push(thing);
    }
  }
  picture.levels = Math.max(picture.levels || 0, level + 1);
}

// inView returns the things in a rectangle, and perhaps some around it; null if there are more than about three times
// most.
function inView(area, most) {
  const found = new Set();
  for (let level = 0; level < (picture.levels || 0); level++) {
    const size = squareSize(level);
    const across = Math.floor((area.x + area.w) / size) - Math.floor(area.x / size) + 1;
    const down = Math.floor((area.y + area.h) / size) - Math.floor(area.y / size) + 1;
    if (across * down > 4 * most) return null;
    for (let i = Math.floor(area.x / size); i <= Math.floor((area.x + area.w) / size); i++) {
      for (let j = Math.floor(area.y / size); j <= Math.floor((area.y + area.h) / size); j++) {
        for (const thing of picture.index.get(level + ' ' + i + ' ' + j) || []) {
          found.add(thing);
          if (found.size > 3 * most) return null;
        }
      }
    }
  }
  return found;
}

// layPicture begins anew after a patch.
export function layPicture() {
  keepUnfolded();
  sortSheets();
  drawAnew();
}

// drawAnew draws what is there after a box was opened or closed. All elements are new: a folded box that had the focus
// gets it again.
export function drawAnew() {
  const focused = document.activeElement?.dataset?.fold;
  arrange();
  picture.index.clear();
  picture.levels = 0;
  picture.far = null;
  for (const thing of picture.things) {
    const box = thing.points ? bounds(thing.points) : thing;
    indexed(thing, box.x, box.y, box.w, box.h);
  }
  for (const group of [picture.boxes, picture.lines]) {
    for (const e of group.values()) e.remove();
    group.clear();
  }
  $('frames').replaceChildren(...picture.open.map(drawOpen), ...picture.rooms.map(drawFrame), ...drawNote());
  drawPicture();

  if (focused === undefined) return;
  paintPicture();
  (foldElement(focused) ?? $('outline')).focus({preventScroll: true});
}

// bounds returns the rectangle around the points of a line.
function bounds(points) {
  let [x, y] = points, right = x, bottom = y;
  for (let i = 2; i < points.length; i += 2) {
    x = Math.min(x, points[i]);
    right = Math.max(right, points[i]);
    y = Math.min(y, points[i + 1]);
    bottom = Math.max(bottom, points[i + 1]);
  }
  return {x, y, w: right - x, h: bottom - y};
}

// drawPicture shows what is in view. It is asked for as often as anything moves, and done once a frame.
let pictureDue = false;
export function drawPicture() {
  if (pictureDue) return;
  pictureDue = true;
  requestAnimationFrame(() => {
    pictureDue = false;
    paintPicture();
  });
}

// paintPicture draws what is in view now: boxes with text, or paths where there would be too many boxes.
export function paintPicture() {
  const canvas = $('canvas');
  const w = canvas.clientWidth, h = canvas.clientHeight;
  if (!w || !h) return;
  $('world').setAttribute('transform',
    'translate(' + -view.x * view.scale + ' ' + -view.y * view.scale + ') scale(' + view.scale + ')');
  const margin = 100;
  const found = inView({x: view.x - margin, y: view.y - margin, w: w / view.scale + 2 * margin,
    h: h / view.scale + 2 * margin}, mostBoxes);
  $('far').toggleAttribute('hidden', found !== null);
  $('near').toggleAttribute('hidden', found === null);
  if (found === null) paintFar();
  else paintNear(found);
}

// paintNear makes the elements that came into view, removes those that left it, and keeps the others.
function paintNear(found) {
  // Boxes are in the page in reading order, as those that are folded get the focus one after the other.
  const number = thing => numberOf(thing.first ?? thing.key) ?? -1;
  let previous = null;
  const keep = new Set();
  for (const thing of [...found].sort((a, b) => number(a) - number(b))) {
    const isBox = thing.key !== undefined;
    const name = isBox ? thing.key : thing.from + ' ' + thing.to;
    const map = isBox ? picture.boxes : picture.lines;
    let e = map.get(name);
    if (!e) {
      e = isBox ? drawBox(thing) : drawEdge(thing);
      map.set(name, e);
      if (isBox) $('boxes').insertBefore(e, previous ? previous.nextSibling : $('boxes').firstChild);
      else $('lines').append(e);
    }
    if (isBox) previous = e;
    if (isBox) dress(e, thing.key);
    else e.classList.toggle('away', !(boxesOnPath().has(thing.from) && boxesOnPath().has(thing.to)) && !owns(thing));
    keep.add(e);
  }
  for (const map of [picture.boxes, picture.lines]) {
    for (const [name, e] of map) {
      if (keep.has(e)) continue;
      e.remove();
      map.delete(name);
    }
  }
}

const owns = edge => edge.dashed && boxesOnPath().has(edge.from);

// dress marks a box as selected, on the path, or hidden by the filters.
function dress(e, key) {
  const selected = key === boxOf(at.selected);
  e.classList.toggle('selected', selected);
  e.classList.toggle('away', !boxesOnPath().has(key) && !selected);
  e.classList.toggle('filtered', filtering() && !boxesLeft().has(key));
}

// drawBox makes the box of a node, or a folded box. boxesOnPath is called because it fills in marked.odd.
function drawBox(place) {
  const fold = graph.folds.has(place.key), grave = isGrave(place);
  const e = svg('svg',
    {x: place.x - 3, y: place.y - 3, width: place.w + 6, height: place.h + 6,
      class: 'box ' + place.style + (fold ? ' fold' : '') +
        (grave ? ' grave' : boxesOnPath() && marked.odd.has(place.key) ? ' odd' : ''),
      ...(fold && foldAttributes(place))},
    svg('rect', {x: 3, y: 3, width: place.w, height: place.h, rx: fold || isMessage(place.key) ? 8 : 2}));
  const lines = place.text.split('\n');
  lines.forEach((text, i) => {
    const right = place.right >> i & 1;
    const t = svg('text', {x: right ? place.w - 9 : 15, y: 3 + textTop + i * lineHeight, class: i ? '' : 'first',
      ...(right && {direction: 'rtl'})});
    t.textContent = text;
    e.append(t, ' '); // a space for readers of the text
  });
  return e;
}

// isGrave reports whether a box shows a failure.
const isGrave = box => box.style === 'failed' || nodeOf(box.key)?.problems.some(problem => problem.grave);

const textTop = 20;
export const lineHeight = 16;

function drawEdge(edge) {
  return svg('path', {class: edge.dashed ? 'edge dashed' : 'edge', d: curve(edge.points)});
}

// curve returns the commands for straight lines through the points.
function curve(points) {
  let d = 'M' + points[0] + ' ' + points[1];
  for (let i = 2; i < points.length; i += 2) d += 'L' + points[i] + ' ' + points[i + 1];
  return d;
}

// drawFrame makes the frame around a sub-agent's conversation, with its title.
function drawFrame(frame) {
  const title = svg('text', {x: frame.x + 8, y: frame.y + 14});
  title.textContent = frame.title;
  return svg('g', {class: 'frame'}, svg('rect', {x: frame.x, y: frame.y, width: frame.w, height: frame.h, rx: 6}),
    title);
}

// paintFar shows all of it at once, from so far away that a box is a few points.
function paintFar() {
  if (!picture.far) {
    const styles = new Map();
    for (const place of picture.things) {
      if (place.points) continue;
      const style = isGrave(place) ? 'failed' : place.style;
      if (!styles.has(style)) styles.set(style, []);
      styles.get(style).push('M' + place.x + ' ' + place.y + 'h' + place.w + 'v' + place.h + 'h-' + place.w + 'z');
    }
    const lines = svg('path',
      {class: 'edge', d: picture.things.filter(thing => thing.points).map(edge => curve(edge.points)).join('')});
    const order = [...styles.keys()].sort((a, b) => Number(a === 'failed') - Number(b === 'failed')); // what failed lies on top
    picture.far = [lines, ...order.map(style => svg('path', {class: 'spot ' + style, d: styles.get(style).join('')})),
      svg('rect', {class: 'mark'})];
    $('far').replaceChildren(...picture.far);
  }
  const mark = picture.far[picture.far.length - 1], place = picture.at.get(boxOf(at.selected));
  if (place) for (const side of ['x', 'y']) mark.setAttribute(side, place[side]);
  mark.setAttribute('width', place?.w || 0);
  mark.setAttribute('height', place?.h || 0);
}

// look brings the box of a node into view, and leaves the view alone where it is there already.
export function look(key) {
  lookAt(picture.at.get(boxOf(key)));
}

// lookAt brings a box into view.
export function lookAt(place) {
  const canvas = $('canvas');
  if (!place || !canvas.clientWidth) return;
  const w = canvas.clientWidth / view.scale, h = canvas.clientHeight / view.scale;
  view.x = shift(view.x, w, place.x - 20, place.x + place.w + 20);
  view.y = shift(view.y, h, place.y - 40, place.y + place.h + 40);
  drawPicture();
}

// shift returns the new start of a view of that size, to show everything between from and to: as near as possible to
// the old start, or around the middle if that is far away.
function shift(start, size, from, to) {
  const near = Math.min(Math.max(start, to - size), from);
  return Math.abs(near - start) < size / 2 ? near : (from + to - size) / 2;
}

// zoom keeps the point under the pointer where it is.
export function zoom(factor, x = $('canvas').clientWidth / 2, y = $('canvas').clientHeight / 2) {
  view.moved = true;
  const scale = Math.min(3, Math.max(0.002, view.scale * factor));
  view.x += x / view.scale - x / scale;
  view.y += y / view.scale - y / scale;
  view.scale = scale;
  drawPicture();
}

// fit shows the whole graph, at its own size or smaller.
export function fit() {
  const canvas = $('canvas');
  const across = canvas.clientWidth / (picture.width || 1), down = canvas.clientHeight / (picture.height || 1);
  view.scale = Math.min(1, across, down);
  view.x = picture.width / 2 - canvas.clientWidth / view.scale / 2;
  view.y = picture.height / 2 - canvas.clientHeight / view.scale / 2;
  drawPicture();
}

// home is where a page begins: at the top, and the whole width in view if it can still be read.
export function home() {
  view.due = !$('canvas').clientWidth; // a narrow page hides it: begin when it is seen
  view.moved = false;
  frameWidth();
  view.y = 0;
  drawPicture();
}

// frameWidth makes the width of the graph fit, down to a size that can be read. Of a wider one, the first box is in view, and
// nothing is empty beside the graph.
export function frameWidth() {
  const shown = $('canvas').clientWidth;
  view.scale = Math.min(1, Math.max(0.6, shown / (picture.width || 1)));
  const w = shown / view.scale, first = picture.at.get(boxOf(at.path[0]));
  view.x = picture.width <= w || !first ? (picture.width - w) / 2
    : Math.min(Math.max(first.x + first.w / 2 - w / 2, 0), picture.width - w);
}

// boxAt is the key of the box at a point of the canvas, or of the open box whose title is there.
function boxAt(event) {
  const rect = $('canvas').getBoundingClientRect();
  const x = view.x + (event.clientX - rect.left) / view.scale, y = view.y + (event.clientY - rect.top) / view.scale;
  const isThere = box => x >= box.x && x <= box.x + box.w && y >= box.y && y <= box.y + box.h;
  for (const thing of inView({x, y, w: 0, h: 0}, Infinity) || []) {
    if (thing.key !== undefined && isThere(thing)) return thing.key;
  }
  return picture.open.find(fold => isThere({...fold, h: titleHeight}))?.key ?? null;
}

// listenToPicture moves the view with the wheel and by dragging, zooms with Ctrl and the wheel, and selects or opens
// what is clicked.
export function listenToPicture() {
  const canvas = $('canvas');
  let from = null;

  canvas.addEventListener('wheel', event => {
    event.preventDefault();
    const rect = canvas.getBoundingClientRect();
    if (event.ctrlKey || event.metaKey) {
      zoom(Math.exp(-event.deltaY / 200), event.clientX - rect.left, event.clientY - rect.top);
    } else {
      view.moved = true;
      view.x += (event.shiftKey ? event.deltaY : event.deltaX) / view.scale;
      view.y += (event.shiftKey ? 0 : event.deltaY) / view.scale;
      drawPicture();
    }
  }, {passive: false});

  canvas.addEventListener('pointerdown', event => {
    if (event.button) return;
    from = {x: event.clientX, y: event.clientY, moved: false};
    canvas.setPointerCapture(event.pointerId);
  });

  canvas.addEventListener('pointermove', event => {
    if (!from) return;
    const dx = event.clientX - from.x, dy = event.clientY - from.y;
    if (!from.moved && Math.hypot(dx, dy) < 4) return;
    view.moved = true;
    view.x -= dx / view.scale;
    view.y -= dy / view.scale;
    from = {x: event.clientX, y: event.clientY, moved: true};
    drawPicture();
  });

  canvas.addEventListener('pointerup', event => {
    const key = from && !from.moved ? boxAt(event) : null;
    from = null;
    if (graph.folds.has(key)) toggleFold(key);
    else if (key !== null) select(key);
  });

  canvas.addEventListener('dblclick', event => {
    const key = boxAt(event);
    if (key !== null && nodeOf(key)?.opens) drill(key);
  });

  canvas.addEventListener('keydown', event => {
    const {fold} = event.target.dataset;
    if (fold === undefined || event.key !== 'Enter' && event.key !== ' ') return;
    event.preventDefault();
    event.stopPropagation();
    toggleFold(Number(fold));
  });

  new ResizeObserver(() => {
    if (view.due && canvas.clientWidth) {
      home();
      look(at.selected);
    } else drawPicture();
  }).observe(canvas);
}

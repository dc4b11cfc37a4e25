// The views: what the middle of the page shows. On a narrow page they take the place of the outline.

import {cacheKey, drawCache, markInCache, toFirstBreak} from './cache.js';
import {callsKey, drawCalls, markCall, topOfCalls} from './calls.js';
import {$, el, show} from './dom.js';
import {drawFound, foundKey, markInFound} from './found.js';
import {at} from './outline.js';
import {look} from './picture.js';
import {drawTimeline, markInTimeline, timelineKey} from './timeline.js';

// home is the graph on a wide page, and the outline on a narrow one.
const views = [['outline', 'Outline'], ['graph', 'Graph'], ['calls', 'Calls'], ['timeline', 'Timeline'],
  ['cache', 'Cache'], ['found-view', 'Found']];
export const narrowPage = matchMedia('(max-width: 720px)');
let openedView = 'home';

// drawing has what draws each view anew, and keys what the keyboard does in it.
const viewDrawing = {calls: () => drawCalls(), timeline: () => drawTimeline(), cache: () => drawCache(),
  'found-view': () => drawFound()};
const viewKeys = {calls: event => callsKey(event), timeline: event => timelineKey(event),
  cache: event => cacheKey(event), 'found-view': event => foundKey(event)};

// viewOpening brings into view what a view is opened for, when it is opened for the first time.
const viewOpening = {calls: () => topOfCalls(), cache: () => toFirstBreak()};
const openedBefore = new Set();

// shownView is the name of the view that is in view.
export function shownView() {
  if (openedView !== 'home') return openedView;
  return narrowPage.matches ? 'outline' : 'graph';
}

// openView opens a view and gives it the focus.
export function openView(name) {
  openedView = name === 'outline' ? 'home' : name;
  drawViews();
  if (name === 'graph') look(at.selected);
  viewDrawing[name]?.(); // there must be something to give the focus to
  showInView(at.selected);
  if (!openedBefore.has(name)) viewOpening[name]?.();
  openedBefore.add(name);
  const pane = document.querySelector('#' + name + ' [tabindex="0"]');
  (pane || $('outline')).focus({preventScroll: true});
}

// drawViews draws the tabs, and the view that is open.
function drawViews() {
  const shown = shownView();
  document.body.dataset.view = openedView;
  show($('views'), views.map(([name, text]) => el('button', {
    role: 'tab', id: 'view-' + name, hidden: name === 'found-view' && !at.query,
    'aria-controls': {outline: 'left', graph: 'middle'}[name] || name, 'aria-selected': String(name === shown),
    onclick: () => openView(name),
  }, text)));
  $('middle').hidden = openedView !== 'home' && openedView !== 'graph';
  for (const name of Object.keys(viewDrawing)) $(name).hidden = name !== shown;
  staleViews();
}

// offerFound opens the list of matches in place of the graph while something is searched for, and shows its tab.
export function offerFound() {
  const searched = at.query !== '';
  if (searched && openedView === 'home' && !narrowPage.matches) openedView = 'found-view';
  const leave = !searched && openedView === 'found-view';
  if (leave) openedView = 'home';
  drawViews();
  if (leave && !document.activeElement?.closest('#left, #inspector')) $('outline').focus();
}

// staleViews has the open view drawn anew. It is called whenever anything changes, and draws once a frame.
let viewDue = false;
export function staleViews() {
  if (viewDue) return;
  viewDue = true;
  requestAnimationFrame(() => {
    viewDue = false;
    viewDrawing[openedView]?.();
  });
}

// showInView marks the selected node in the open view, and brings it into view.
export function showInView(key) {
  if (openedView === 'calls') markCall(key);
  if (openedView === 'timeline') markInTimeline(key);
  if (openedView === 'cache') markInCache();
  if (openedView === 'found-view') markInFound(key);
}

// viewKey is what a key does in the view that has the focus.
export function viewKey(event) {
  return event.target.closest('#' + openedView) ? viewKeys[openedView]?.(event) : undefined;
}

export function listenToViews() {
  narrowPage.addEventListener('change', drawViews);
  drawViews();
}

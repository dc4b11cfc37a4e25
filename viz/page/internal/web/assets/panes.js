// The borders between the panels. They are dragged, or moved with the arrow keys. A double click or Enter puts one back.

import {$, kept} from './dom.js';
import {at} from './outline.js';
import {home, look} from './picture.js';
import {openView, shownView} from './views.js';

const paneLeast = 240; // pixels

// setPane gives a panel a width, or its own one for null, and keeps the choice.
function setPane(name, width) {
  if (width === null) document.documentElement.style.removeProperty('--' + name);
  else {
    const others = $(name === 'left' ? 'inspector' : 'left');
    const beside = getComputedStyle(others).gridRowStart === getComputedStyle($(name)).gridRowStart ? others.clientWidth : 0;
    const most = document.querySelector('main').clientWidth - beside - paneLeast;
    const px = Math.round(Math.max(paneLeast, Math.min(width, most)));
    document.documentElement.style.setProperty('--' + name, px + 'px');
  }
  kept.set('pane.' + name, document.documentElement.style.getPropertyValue('--' + name));
  placeSplits();
}

// placeSplits puts the borders where the panels meet.
function placeSplits() {
  const main = document.querySelector('main').getBoundingClientRect();
  const left = $('left').getBoundingClientRect(), inspector = $('inspector').getBoundingClientRect();
  $('split-left').style.left = left.right - main.left - 4 + 'px';
  $('split-inspector').style.left = inspector.left - main.left - 3 + 'px';
  for (const name of ['left', 'inspector']) {
    const e = $('split-' + name);
    e.setAttribute('aria-valuenow', Math.round($(name).clientWidth));
    e.setAttribute('aria-valuemin', paneLeast);
    e.setAttribute('aria-valuemax', Math.round(main.width));
  }
}

export function listenToPanes() {
  for (const {name, way} of [{name: 'left', way: 1}, {name: 'inspector', way: -1}]) {
    const e = $('split-' + name), before = kept.get('pane.' + name);
    if (/^\d+px$/.test(before || '')) document.documentElement.style.setProperty('--' + name, before);
    let from = null;
    e.addEventListener('pointerdown', event => {
      from = event.clientX;
      e.setPointerCapture(event.pointerId);
    });
    e.addEventListener('pointerup', () => { from = null; });
    e.addEventListener('pointermove', event => {
      if (from === null || Math.abs(event.clientX - from) < 3) return; // a double click does not drag
      from = -1000;
      const pane = $(name).getBoundingClientRect();
      setPane(name, way > 0 ? event.clientX - pane.left : pane.right - event.clientX);
    });
    e.addEventListener('dblclick', () => setPane(name, null));
    e.addEventListener('keydown', event => {
      const width = {ArrowLeft: $(name).offsetWidth - way * 20, ArrowRight: $(name).offsetWidth + way * 20, Enter: null}[event.key];
      if (width === undefined) return;
      event.preventDefault();
      event.stopPropagation();
      setPane(name, width);
    });
  }
  new ResizeObserver(placeSplits).observe($('left'));
  new ResizeObserver(placeSplits).observe($('inspector'));
}

// graphAlone shows the graph in the whole window, or everything again.
export function graphAlone() {
  if (shownView() !== 'graph') openView('graph');
  const alone = document.body.classList.toggle('graph-alone');
  $('alone').setAttribute('aria-pressed', String(alone));
  home();
  look(at.selected);
}

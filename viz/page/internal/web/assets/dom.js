// Making elements. Text is added as text, and the names of elements and attributes are the page's own: nothing in a
// conversation can become markup.

export const $ = id => document.getElementById(id);

// el makes an element. A function as an attribute listens to the event in its name, such as onclick. True is an
// attribute without a value. Attributes that are false, null or undefined are left out.
export function el(name, attributes, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (typeof value === 'function') e.addEventListener(key.slice(2), value);
    else if (value === true) e.setAttribute(key, '');
    else if (value !== false && value !== null && value !== undefined) e.setAttribute(key, value);
  }
  fill(e, children);
  return e;
}

// fill appends children: elements and texts, in lists of any depth. Null, undefined, false and '' are left out.
export function fill(e, children) {
  const isThere = child => child !== null && child !== undefined && child !== false && child !== '';
  e.append(...children.flat(Infinity).filter(isThere));
}

// oneLine is a text of the conversation on one line, cut where it ends. Its first letter decides where it begins: on the
// left, or on the right.
export const oneLine = (...children) => spoken(el('span', {class: 'oneline', dir: 'auto'}, children));

// Letters, and the language that a text of them is read aloud in; the other one if it has one of "also". Latin letters are
// of too many languages.
const languages = [
  {letters: /\p{Script=Arabic}/gu, also: /[پچژگکی]/, name: 'ar', other: 'fa'}, {letters: /\p{Script=Hebrew}/gu, name: 'he'},
  {letters: /\p{Script=Devanagari}/gu, name: 'hi'}, {letters: /\p{Script=Thai}/gu, name: 'th'},
  {letters: /\p{Script=Hangul}/gu, name: 'ko'}, {letters: /\p{Script=Cyrillic}/gu, name: 'ru'},
  {letters: /\p{Script=Greek}/gu, name: 'el'},
  {letters: /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/gu, also: /[\u3041-\u30ff]/, name: 'zh', other: 'ja'}];

// spoken marks the language of an element's text, by most of its first letters, for those who have it read to them.
export function spoken(e) {
  const text = e.textContent.slice(0, 500), letters = (text.match(/\p{L}/gu) || []).length;
  const language = languages.find(l => (text.match(l.letters) || []).length * 2 > letters);
  if (language) e.lang = language.also?.test(text) ? language.other : language.name;
  return e;
}

// show replaces the children of an element.
export function show(e, ...children) {
  e.textContent = '';
  fill(e, children);
}

// svg makes an element of a picture. It is simpler than el: attributes are numbers and texts.
export function svg(name, attributes, ...children) {
  const e = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes || {})) e.setAttribute(key, value);
  e.append(...children);
  return e;
}

// status shows what happened, for as long as it takes to read it twice, and reads it to a screen reader.
let statusTimer;
export function status(text) {
  $('status').textContent = text;
  clearTimeout(statusTimer);
  statusTimer = setTimeout(() => { $('status').textContent = ''; }, Math.max(6000, 120 * text.length));
}

// kept remembers a choice, where the browser allows it.
export const kept = {
  get(name) {
    try { return localStorage.getItem('plait.' + name); } catch { return null; }
  },
  set(name, value) {
    try { localStorage.setItem('plait.' + name, value); } catch { /* it is only a convenience */ }
  },
};

// decodeURIComponentSafe returns '' for a text that is not encoded properly: an address may hold anything.
export function decodeURIComponentSafe(text) {
  try { return decodeURIComponent(text); } catch { return ''; }
}

export const themes = ['auto', 'light', 'dark'];

// theme sets the colors and keeps the choice. The colors of "auto" are those of the system.
export function theme(name) {
  document.documentElement.dataset.theme = name;
  $('theme').textContent = {auto: '◐', light: '☀', dark: '☾'}[name];
  $('theme').setAttribute('aria-label', 'colors: ' + name);
  $('theme').title = 'colors: ' + name;
  kept.set('theme', name);
}

export const nextTheme = () => theme(themes[(themes.indexOf(document.documentElement.dataset.theme) + 1) % 3]);

// heldBack has the changes that came while a button of the mouse or a finger was down; null while none is. They are made
// afterwards: an element that is drawn anew or moves between press and release is not clicked.
let heldBack = null;

// atRest makes a change that the person has not asked for, once nothing is pressed.
export function atRest(change) {
  if (!heldBack) {
    change();
    return;
  }
  heldBack.push(change);
  document.body.classList.add('holds');
}

// holdBack makes the page stand still while it is pressed.
export function holdBack() {
  let pressed = false;
  addEventListener('pointerdown', () => {
    heldBack ??= [];
    pressed = true;
  }, true);
  for (const end of ['pointerup', 'pointercancel']) {
    addEventListener(end, () => {
      pressed = false;
      setTimeout(() => pressed || release()); // after the click, unless the next one began
    }, true);
  }
  addEventListener('blur', release);
  addEventListener('pointermove', event => { if (!event.buttons) release(); }, true); // it was let go outside the window
}

function release() {
  const changes = heldBack || [];
  heldBack = null;
  document.body.classList.remove('holds');
  for (const change of changes) change();
}

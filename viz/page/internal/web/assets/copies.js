// Copies of the conversation as Mermaid or JSON, and of a part of it around the selected node as JSON.

import {$, el, show, status} from './dom.js';
import {below, byNumber, conversationOf, graph, headsOf, nodeOf, numberOf, pathTo} from './graph.js';
import {copy, copyButton, isAnswer} from './inspector.js';
import {ask} from './live.js';
import {at} from './outline.js';
import {config, sharedLink} from './page.js';
import {curlOf} from './request.js';
import {isCall} from './words.js';

// copyKinds are the parts: the name, what it is called, and what is in it.
const copyKinds = [
  ['all', () => 'all', () => 'the whole conversation'],
  ['up', n => 'up to ' + n, n => n + ' and all that it follows from'],
  ['from', n => 'from ' + n, n => n + ' and what follows, to the head of this branch'],
  ['subtree', n => 'subtree of ' + n, n => n + ' and all that follows, on every branch'],
];
const copyForms = [['mermaid', 'Mermaid'], ['json', 'JSON']];

// drawShare fills the menu, for the selected node.
export function drawShare() {
  const key = at.selected, has = nodeOf(key) !== undefined, n = 'n' + numberOf(key);
  $('share-menu').dataset.key = key;
  const row = ([kind, name, what]) => el('div', {class: 'copyrow', role: 'group', 'aria-label': 'copy ' + name(n)},
    el('span', {title: what(n)}, lettered(kind[0], name(n))),
    copyForms.filter(([form]) => form === 'json' || kind === 'all').map(([form, shown]) => el('button',
      {'data-copy': kind + ' ' + form, 'data-letter': form === 'json' && kind[0],
        title: 'Copy ' + what(n) + ', as ' + shown, 'aria-label': 'Copy ' + name(n) + ' as ' + shown,
      onclick: () => copied(() => kind === 'all' ? wholeText(form) : savedPart(partOf(kind, key)),
        name(n) + ' as ' + shown)}, shown)));
  show($('share-menu'), el('div', {class: 'copyhead quiet'}, 'Copy (underlined: the key, for JSON)'),
    copyKinds.filter(([kind]) => kind === 'all' || has).map(row), el('hr'),
    has && isAnswer(key) && withLetter('r', copyButton('Copy the request as cURL', () => curlOf(key))),
    withLetter('l', copyButton(config.live ? 'Copy link with token' : 'Copy link', sharedLink)),
    withLetter('d', el('button', {onclick: () => download().catch(err => status('Not downloaded: ' + err.message))},
      'Download JSON')));
}

// lettered underlines the first occurrence of a letter in a text: its key in the menu.
function lettered(letter, text) {
  const i = text.toLowerCase().indexOf(letter);
  return [text.slice(0, i), el('u', {}, text[i]), text.slice(i + 1)];
}

// withLetter gives a button its letter.
function withLetter(letter, button) {
  button.dataset.letter = letter;
  show(button, lettered(letter, button.textContent));
  return button;
}

// toShare opens the menu by keyboard, or closes it.
export function toShare() {
  $('share').open = !$('share').open;
  if (!$('share').open) return;
  drawShare();
  $('share-menu').querySelector('button').focus();
}

// closeShare closes the menu, and reports whether it was open. The focus does not stay in it.
export function closeShare() {
  const share = $('share');
  if (!share.open) return false;
  if (share.contains(document.activeElement)) $('outline').focus();
  share.open = false;
  return true;
}

// shareKey returns the action of a key in the menu: the arrow keys go to the button beside, above or below, and a
// letter presses its button.
export function shareKey(event) {
  const lines = [...$('share-menu').children].map(e => e.tagName === 'BUTTON' ? [e] : [...e.querySelectorAll('button')])
    .filter(line => line.length);
  const line = lines.findIndex(buttons => buttons.includes(document.activeElement)),
    column = lines[line]?.indexOf(document.activeElement);
  const to = (i, j) => () => {
    const there = lines[(i + lines.length) % lines.length];
    there[Math.min(Math.max(j, 0), there.length - 1)].focus();
  };
  const lettered = lines.flat().find(button => button.dataset.letter === event.key);
  return lettered ? () => lettered.click() : {
    ArrowDown: to(line + 1, column), ArrowUp: to(line - 1, column), ArrowRight: to(line, column + 1),
    ArrowLeft: to(line, column - 1), Home: to(0, 0), End: to(-1, 0),
    Escape: closeShare,
  }[event.key];
}

// copied copies a text, and reports in the status whether that worked.
export async function copied(text, name) {
  try {
    await copy(await text());
    closeShare();
    status('Copied' + (name ? ': ' + name : '') + '.');
  } catch (err) {
    status('Not copied: ' + err.message);
  }
}

// wholeText is the conversation in a form. A page without a server has those with it that are small.
async function wholeText(form) {
  if (config.live) return (await ask('copy?as=' + form)).text();
  const {mermaid, noMermaid, file, noFile} = config.static || {};
  const missing = form === 'json' ? !file && noFile : !mermaid && noMermaid;
  if (missing) throw new Error(missing);
  return form === 'json' ? fileText() : mermaid;
}

// fileText is the saved conversation, byte for byte.
function fileText() {
  const parts = [];
  let before;
  for (const piece of config.static?.file || []) {
    if (typeof piece === 'number' && typeof before === 'number') parts.push(',\n');
    parts.push(typeof piece === 'number' ? nodeOf(piece).raw : piece);
    before = piece;
  }
  return parts.join('');
}

// download saves the conversation as a file.
async function download() {
  const text = await wholeText('json');
  const url = URL.createObjectURL(new Blob([text], {type: 'application/json'}));
  el('a', {href: url, download: 'conversation.json'}).click();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}

// partOf returns the nodes of a part: those that begin anew (what comes before them is left out), all with the
// conversations that hang on them, and the heads.
function partOf(kind, key) {
  if (kind === 'up') return withNeeds([key], new Set());

  const after = below(beginningOf(key));
  if (kind === 'from') return withNeeds([at.end], new Set(pathTo(at.end).filter(k => after.has(k))));

  const owner = conversationOf(key), own = k => conversationOf(k) === owner;
  // a ref may be all that leads to one
  const last = [...after].filter(k => own(k) && !nodeOf(k).kids.some(own)).sort(byNumber);
  return withNeeds([...new Set([...headsOf(owner).filter(head => after.has(head)), ...last])], after);
}

// withNeeds adds all that the heads of a part lead to.
function withNeeds(heads, anew) {
  const keys = new Set(), stack = [...heads];
  while (stack.length) {
    const key = stack.pop();
    if (keys.has(key) || !graph.nodes.has(key)) continue;
    keys.add(key);
    stack.push(...parentsIn(key, anew), ...nodeOf(key).opens || []);
  }
  return {heads, anew, keys};
}

// parentsIn are the parents that a node has in a part.
const parentsIn = (key, anew) => (nodeOf(key).parents || []).filter(parent => !anew.has(key) || anew.has(parent));

// beginningOf returns the first node of a part. For calls and their results, it is the message with the calls: without
// it there is nothing to execute or to answer.
function beginningOf(key) {
  const call = isCall(key) ? key : nodeOf(key).parents?.find(isCall);
  return call === undefined ? key : nodeOf(call).parents?.[0] ?? key;
}

// savedPart is the saved form of a part. A node that follows from less than before is another one: it gets an ID of its
// own, and has no checksum. All others stay as they are.
function savedPart({anew, keys, heads}) {
  const ids = new Map(), lines = []; // the new IDs, by the old ones
  const idOf = key => ids.get(nodeOf(key).id) ?? nodeOf(key).id;
  for (const key of afterTheirNeeds(keys)) {
    const node = nodeOf(key), parents = parentsIn(key, anew);
    const fewer = parents.length < (node.parents || []).length;
    if (!fewer && ![...parents, ...node.opens || []].some(k => ids.has(nodeOf(k)?.id))) {
      lines.push(node.raw);
      continue;
    }
    ids.set(node.id, newID());
    lines.push(remadeLine(node, parents, idOf, ids));
  }
  return JSON.stringify({format: 'plait', version: 1, heads: heads.map(idOf)}).slice(0, -1) + ',"nodes":[\n' +
    lines.join(',\n') + '\n]}\n';
}

// afterTheirNeeds sorts keys: each node comes after its parents, and after the conversations inside it.
function afterTheirNeeds(keys) {
  const placed = new Set(), stack = [...keys].sort(byNumber).reverse();
  while (stack.length) {
    const key = stack[stack.length - 1], {parents = [], opens = []} = nodeOf(key);
    const first = placed.has(key) ? [] : [...parents, ...opens].filter(k => keys.has(k) && !placed.has(k));
    if (first.length) stack.push(...first);
    else placed.add(stack.pop());
  }
  return placed;
}

// remadeLine is the saved form of a node under its new ID, with other parents and without its checksum. The rest stays as
// it is written, but for what refers to nodes: the IDs in the body's list of them, and the results that a message has
// of its parents.
function remadeLine(node, parents, idOf, ids) {
  const members = valueTexts(node.raw), body = valueTexts(members.get('body'));
  const lists = {tool_execution: 'child', sub_graph: 'heads', compaction: 'replaced', message: 'blocks'};
  const list = lists[JSON.parse(members.get('kind'))];
  if (list === 'blocks') {
    const blocks = [...valueTexts(body.get(list)).values()];
    members.set('body', objectText(body.set(list, '[' + blocks.map(block => remadeBlock(block, node, parents)) + ']')));
  } else if (body.has(list)) {
    const opens = JSON.parse(body.get(list));
    members.set('body', objectText(body.set(list, JSON.stringify(opens.map(id => ids.get(id) ?? id)))));
  }

  members.set('id', JSON.stringify(ids.get(node.id))).set('parents', JSON.stringify(parents.map(idOf)));
  members.delete('redacted');
  members.delete('sum');
  return objectText(members);
}

// remadeBlock returns a saved block for a message with other parents. A result that is also in a parent is saved as the
// index of that parent.
function remadeBlock(text, node, parents) {
  const block = valueTexts(text), index = block.get('result_of');
  if (index === undefined || block.get('type') !== '"tool_result"') return text; // other types may have such a member
  const now = parents.indexOf(node.parents[index]);
  if (now < 0) throw new Error('n' + numberOf(node.key) + ' has results of calls that are not in this part');
  return objectText(block.set('result_of', now));
}

// valueTexts are the texts of the values in the text of a JSON object or array, by name or index.
function valueTexts(text) {
  const values = new Map(), token = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]/gs;
  let depth = 0, from = 0, name; // in an object, name is undefined until the name of a member is read
  for (let match; (match = token.exec(text));) {
    const c = match[0], opens = c === '{' || c === '[', closes = c === '}' || c === ']';
    if (opens && depth++ === 0) {
      from = token.lastIndex;
      name = c === '[' ? 0 : undefined;
    } else if (depth === 1 && (closes || c === ',')) {
      const value = text.slice(from, match.index).trim();
      if (value) values.set(name, value);
      from = token.lastIndex;
      name = typeof name === 'number' ? name + 1 : undefined;
    } else if (depth === 1 && c === ':') from = token.lastIndex;
    else if (depth === 1 && name === undefined) name = JSON.parse(c);
    if (closes) depth--;
  }
  return values;
}

const objectText = values => '{' + [...values].map(([name, text]) => JSON.stringify(name) + ':' + text).join(',') + '}';

// newID is a random UUID. Browsers have crypto.randomUUID only on pages that came over https or from this machine.
function newID() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = bytes[6] & 0x0f | 0x40;
  bytes[8] = bytes[8] & 0x3f | 0x80;
  return [...bytes].map(byte => byte.toString(16).padStart(2, '0')).join('')
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

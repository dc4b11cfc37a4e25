// The exact request of a response, and its new part since the call before.

import {el, kept, show, status} from './dom.js';
import {nodeOf, saved} from './graph.js';
import {block, chooseTab, copyButton, isAnswer, link, tab, toolbar} from './inspector.js';
import {fetchRequest} from './live.js';
import {at} from './outline.js';
import {config, deltas, select} from './page.js';
import {count, indentJSON} from './words.js';

const requests = new Map(); // by key, as they were resolved or fetched
const missed = new Map(); // by key, the errors of all others, since a request was last opened

// callBefore returns the response before a node, on its line of first parents; null for the first.
function callBefore(key) {
  let node = nodeOf(key);
  while (node?.parents?.length) {
    const parent = node.parents[0];
    if (isAnswer(parent)) return parent;
    node = nodeOf(parent);
  }
  return null;
}

// toRequest shows the request of the selected response, or of the response before the selected node. If the request is
// shown already, it shows the content again.
export function toRequest() {
  const key = isAnswer(at.selected) ? at.selected : callBefore(at.selected);
  if (key === null) {
    status('No request led to it.');
    return;
  }
  chooseTab(key === at.selected && tab === 'Request' ? 'Says' : 'Request');
  select(key);
}

// requestOf returns the request as text. An error is why it is not known.
async function requestOf(key) {
  if (requests.has(key)) return requests.get(key);
  if (missed.has(key)) throw missed.get(key);
  try {
    requests.set(key, config.live ? await fetchRequest(key) : staticRequest(key));
  } catch (err) {
    missed.set(key, err);
    throw err;
  }
  return requests.get(key);
}

// staticRequest puts a request together: each is stored as what is different from the one that it names as its base. A
// chain of a thousand long ones is put together from pieces: the texts between would fill the memory.
function staticRequest(key) {
  const chain = [];
  for (let k = key; k >= 0;) {
    const delta = deltas.get(k);
    if (!delta || delta.missing) {
      throw new Error(deltas.get(key)?.missing || config.static?.noRequests || 'The request is not known.');
    }
    chain.push(delta);
    k = delta.base;
  }

  let pieces = [];
  for (const {prefix = 0, middle, suffix = 0} of chain.reverse()) {
    pieces = [...firstOf(pieces, prefix), middle, ...lastOf(pieces, suffix)];
  }
  return pieces.join('');
}

// firstOf returns the pieces of the first so many characters.
function firstOf(pieces, length) {
  const first = [];
  for (let i = 0; length > 0; length -= pieces[i++].length) first.push(pieces[i].slice(0, length));
  return first;
}

// lastOf returns the pieces of the last so many characters.
function lastOf(pieces, length) {
  const last = [];
  for (let i = pieces.length - 1; length > 0; length -= pieces[i--].length) last.unshift(pieces[i].slice(-length));
  return last;
}

// request shows the request of a response, with what is new in it. One that is not known is asked for again, unless the
// same view is redrawn.
export async function request(key, pane, redrawn) {
  if (!redrawn) missed.clear();
  show(pane, el('p', {class: 'quiet'}, '…'));
  const read = k => requestOf(k).then(text => ({text, why: undefined}), err => ({text: undefined, why: err.message}));
  const previous = callBefore(key);
  const {text, why} = await read(key);
  const {text: before = null, why: unlike} = previous === null ? {text: undefined, why: undefined} : await read(previous);
  if (at.selected !== key || !pane.isConnected) return;
  if (why) {
    show(pane, el('p', {class: 'said quiet'}, why),
      config.live && toolbar(el('button', {onclick: () => request(key, pane)}, 'Try again')));
    return;
  }
  const shared = sharedEnds(before ?? '', text);
  let exact = kept.get('exact') === 'yes';
  const draw = () => {
    const cuts = [shared.start, text.length - shared.end];
    const [start, middle, end] = exact || !isJSON(text)
      ? [text.slice(0, cuts[0]), text.slice(cuts[0], cuts[1]), text.slice(cuts[1])]
      : indentJSON(text, cuts);
    show(pane, toolbar(
      el('label', {}, el('input', {type: 'checkbox', checked: exact, onchange: event => {
        exact = event.target.checked;
        kept.set('exact', exact ? 'yes' : 'no');
        draw();
      }}), ' exact bytes'), copyButton('Copy', () => text), copyButton('Copy as cURL', () => curlOf(key))),
    el('p', {class: 'quiet'}, count(new TextEncoder().encode(text).length, 'byte'), before !== null &&
      ['. The first ' + share(shared.start, text.length) + ' are as in the call before, ', link(previous), '.'],
      unlike && ['. It is not compared with the call before, ', link(previous), '. ' + unlike]),
    sharedPart(start, before), el('div', {class: before === null ? '' : 'fresh'}, block('pre', middle, 'code')),
    sharedPart(end, before));
  };
  draw();
}

export function isJSON(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

export const share = (part, whole) => Math.floor(part / Math.max(whole, 1) * 100) + ' %';

// sharedPart folds a text that the request before has too. The first request has none.
function sharedPart(text, before) {
  if (!text || before === null) return null;
  return el('details', {class: 'card shared'}, el('summary', {}, 'as before: ' + count(text.length, 'character')),
    block('pre', text, 'code'));
}

// sharedEnds is how many characters two texts begin and end with alike. No character is cut in half.
function sharedEnds(a, b) {
  const most = Math.min(a.length, b.length);
  let start = 0, end = 0;
  while (start < most && a.charCodeAt(start) === b.charCodeAt(start)) start++;
  if (start > 0 && isHigh(b.charCodeAt(start - 1))) start--;
  while (end < most - start && a.charCodeAt(a.length - 1 - end) === b.charCodeAt(b.length - 1 - end)) end++;
  if (end > 0 && isLow(b.charCodeAt(b.length - end))) end--;
  return {start, end};
}

const isHigh = unit => unit >= 0xd800 && unit < 0xdc00;
const isLow = unit => unit >= 0xdc00 && unit < 0xe000;

const site = host => 'https:' + '//' + host; // the source of a page holds no address: it loads nothing

// senders have the address and the headers for each API. The beginning of an address can be set with the same variable
// as for the SDK of the API. Keys are in environment variables, and never in the address: addresses are logged.
const senders = {
  'anthropic': () => ['${ANTHROPIC_BASE_URL:-' + site('api.anthropic.com') + '}/v1/messages',
    'x-api-key: $ANTHROPIC_API_KEY', 'anthropic-version: 2023-06-01'],
  'openai-responses': () => ['${OPENAI_BASE_URL:-' + site('api.openai.com/v1') + '}/responses',
    'Authorization: Bearer $OPENAI_API_KEY'],
  'openai-chat': () => ['${OPENAI_BASE_URL:-' + site('api.openai.com/v1') + '}/chat/completions',
    'Authorization: Bearer $OPENAI_API_KEY'],
  'gemini': model => ['${GOOGLE_GEMINI_BASE_URL:-' + site('generativelanguage.googleapis.com') + '}/v1beta/models/' +
    inShell(model) + ':generateContent', 'x-goog-api-key: $GEMINI_API_KEY'],
};

// inShell is a segment of a path that has no meaning to a shell between double quotes either.
const inShell = text => encodeURIComponent(text).replace(/[!'()*~]/g, c => '%' + c.charCodeAt(0).toString(16));

// curlOf returns a command to send the exact request of a response again. The body is passed in a pipe: it may be too
// long for an argument.
export async function curlOf(key) {
  missed.delete(key);
  const body = await requestOf(key), {info = {}} = saved(nodeOf(key));
  if (!Object.hasOwn(senders, info.api || '')) {
    throw new Error('where requests to the API “' + (info.api || '') + '” go is not known');
  }
  const [url, ...headers] = senders[info.api](info.model || '');
  return "printf %s '" + body.replaceAll("'", "'\\''") + "' |\n  curl -sS \"" + url + '"' +
    ['Content-Type: application/json', ...headers].map(header => ' \\\n    -H "' + header + '"').join('') +
      ' \\\n    --data-binary @-\n';
}

// A live page: it shows the events of a server as they arrive.

import {$, atRest, decodeURIComponentSafe, el, show, status} from './dom.js';
import {apply, collect, endOf, graph, judge, nodeOf, saved} from './graph.js';
import {ago, stateStyle} from './index.js';
import {caption, inspect, isAnswer} from './inspector.js';
import {at, drawRows, follow} from './outline.js';
import {config, drawTop, keyNamed, nameInAddress, select} from './page.js';
import {canAnswerNow, drawWaiting, waiting} from './pause.js';
import {frameWidth, home, layPicture, view} from './picture.js';
import {duration, group, isCall, isMessage, line, textAt} from './words.js';

export const live = {token: null, state: 'idle', text: '', thinking: '', tools: new Map(), turn: 0, following: true,
  connected: false, tokens: null, error: '', tail: null, known: false, refused: false, withoutToken: false, wanted: '',
  origin: {}, event: ''}; // event is the id of the last one

// silence is how long a server may say nothing, in milliseconds. It sends a sign of life every 15 seconds.
const silence = 40000;

// connect reads the server's events for as long as the page is open. It is fetch and not EventSource because the token
// goes in a header. After a lost connection it names the last event that it received, and the server sends what follows.
export async function connect() {
  live.token = token();
  for (let wait = 500; ; wait = Math.min(wait * 2, 8000)) {
    try {
      const control = new AbortController(), late = setTimeout(() => control.abort(), silence);
      const response = await ask('events', {signal: control.signal,
        headers: {Accept: 'text/event-stream', ...(live.event && {'Last-Event-ID': live.event})}});
      clearTimeout(late);
      wait = 500;
      live.connected = true;
      drawLive();
      await readEvents(response.body, hear);
    } catch (err) {
      if (err.refused) {
        status(err.message);
        Object.assign(live, {refused: true, withoutToken: err.status === 401, error: err.message});
        drawRefused();
      } else if (err.status) {
        live.error = err.message;
      }
    }
    live.connected = false;
    drawLive();
    if (live.refused) return;
    await new Promise(resolve => setTimeout(resolve, wait * (0.75 + Math.random() / 2)));
  }
}

export const tokenInAddress = /(?:^#|&)token=([^&]*)/;

// token removes the token from the address and keeps it for a reload. It is in the part of the address after "#", which
// browsers never send. Without it, nobody copies or sees the token by accident.
export function token() {
  const match = tokenInAddress.exec(location.hash);
  const given = match ? decodeURIComponentSafe(match[1].replaceAll('+', ' ')) : '';
  try {
    if (!match) return sessionStorage.getItem('plait.token') || '';
    sessionStorage.setItem('plait.token', given);
  } catch {
    return given; // a reload needs it in the address
  }
  const name = nameInAddress();
  history.replaceState(null, '', name ? '#' + name : location.pathname + location.search);
  return given;
}

// drawRefused shows, on the whole page, why the server refuses the page and what to do. A page that has received
// something keeps it.
export function drawRefused() {
  if (live.known) return;
  for (const e of document.querySelectorAll('main, #index, #top > :not(h1, #theme, .live-only), #follow')) {
    e.hidden = true;
  }
  show($('refused'), el('h2', {}, 'This page may not see the conversation'),
    el('p', {}, 'The server refused it: ' + live.error + '.'),
    live.withoutToken &&
      [el('p', {},
        'A live page opens with a token in its address. This address has none, or one of a server that has ended.'),
      el('p', {},
        'Open the address that the program printed when it began to serve, or ask somebody who has the page open ' +
        'for a link: “Share › Copy link with token”.')]);
  $('refused').hidden = false;
}

// ask makes a request of the server that the page came from.
export async function ask(path, options = {}) {
  const response = await fetch(path, {...options, headers: {...options.headers, Authorization: 'Bearer ' + live.token},
    cache: 'no-store', credentials: 'omit'});
  if (response.ok) return response;
  const said = (await response.text().catch(() => '')).trim();
  const err = new Error(messageOf(said) || said || response.status + ' ' + response.statusText);
  err.status = response.status;
  err.refused = response.status === 401 || response.status === 403;
  throw err;
}

// messageOf returns the message in the JSON of a refusal; '' for any other text.
function messageOf(said) {
  try { return JSON.parse(said).message; } catch { return ''; }
}

export const post = (path, body) => ask(path, {
  method: 'POST', headers: {'Content-Type': 'application/json'},
  body: typeof body === 'string' ? body : JSON.stringify(body),
});

// fetchRequest asks the server for the request of a response.
export async function fetchRequest(key) {
  try {
    return await (await ask('request?node=' + encodeURIComponent(nodeOf(key).id))).text();
  } catch (err) {
    throw new Error((err.status === 404 ? 'The request is not known: ' : 'The request could not be fetched: ') +
      err.message);
  }
}

// readEvents reads server-sent events from a stream, and calls back with the name, the data and the id of each. It fails
// when nothing arrives for too long. A line is put together only once it has ended: the time is in proportion to its length,
// whatever the pieces it arrives in.
async function readEvents(body, heard) {
  const reader = body.getReader(), decoder = new TextDecoder();
  let held = [], event = {name: 'message', data: [], id: ''};
  const take = text => {
    if (text === '') {
      if (event.data.length) heard(event.name, JSON.parse(event.data.join('\n')), event.id);
      event = {name: 'message', data: [], id: ''};
      return;
    }
    const [, field, value] = /^([^:]*):? ?(.*)$/s.exec(text);
    if (field === 'event') event.name = value;
    else if (field === 'data') event.data.push(value);
    else if (field === 'id') event.id = value;
  };

  try {
    for (;;) {
      const {done, value} = await soon(reader.read());
      if (done) return;
      const text = decoder.decode(value, {stream: true});
      let from = 0;
      for (let end; (end = text.indexOf('\n', from)) >= 0; from = end + 1) {
        held.push(text.slice(from, end));
        take(held.join('').replace(/\r$/, ''));
        held = [];
      }
      held.push(text.slice(from));
    }
  } finally {
    reader.cancel().catch(() => {}); // the connection may be one that nobody is at the other end of
  }
}

// soon fails if a promise takes longer than a server may be silent.
function soon(promise) {
  let timer;
  const late = new Promise((_, fail) => {
    timer = setTimeout(() => fail(new Error('the server is silent')), silence);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// hear takes in an event of the server.
function hear(name, data, id) {
  if (id) live.event = id;
  atRest(() => {
    if (name === 'patch') learn(data);
    else if (name === 'activity') react(data);
  });
}

// learn takes in a patch. The selection stays where it is, or follows the end. Of a long conversation, the beginning and
// the whole are shown, and what arrives between them is only kept.
function learn(patch) {
  if (patch.more && !patch.reset) {
    collect(patch);
    return;
  }
  const had = graph.nodes.size;
  const selected = nodeOf(at.selected)?.id, end = nodeOf(at.end)?.id;
  apply(patch);
  // After a reset all nodes are new. That does not show which head has grown.
  const fresh = new Set((patch.nodes || []).map(node => node.key));
  if (!patch.reset) live.tail = graph.heads.findLast(key => fresh.has(key)) ?? live.tail;
  layPicture();
  live.known = true;
  const wanted = live.wanted && keyNamed(live.wanted);
  live.wanted = '';
  const still = id => id && [...graph.nodes.values()].find(node => node.id === id)?.key;
  if (wanted || wanted === 0) { // the address named a node before there was any
    live.following = false;
    follow(endOf(wanted));
    home();
    select(wanted, {quiet: true});
    drawLive();
  } else if (live.following || !had) {
    toTail(!had);
  } else {
    const keep = still(selected);
    follow(endOf(still(end) ?? keep ?? graph.heads[0]));
    if (keep !== undefined && keep !== null) select(keep, {quiet: true});
  }
  drawTop(); // it names the head that is followed now
}

// toTail goes to the head that grew last, and at first to the first one. Anew is set for a page that was empty: its
// view of the graph begins anew.
export function toTail(anew) {
  const head = graph.heads.includes(live.tail) ? live.tail : graph.heads[0];
  if (head === undefined) return;
  follow(head);
  if (anew) home();
  else if (!view.moved) frameWidth();
  select(head, {follow: true});
}

// react takes in what happens between two patches.
function react(a) {
  const state = live.state;
  if (a.begin) live.text = live.thinking = '';
  if (a.state === 'idle') Object.assign(live, {text: '', thinking: '', turn: 0, tools: new Map()});
  for (const name of ['state', 'turn', 'tokens', 'stop', 'error']) if (a[name] !== undefined) live[name] = a[name];
  live.text += a.text || '';
  live.thinking += a.thinking || '';
  for (const tool of a.tools || []) {
    // A call that failed stays in view until the run ends.
    const known = {...live.tools.get(tool.id), ...tool};
    if (known.ended && !known.failed) live.tools.delete(tool.id);
    else live.tools.set(tool.id, known);
  }
  if (a.origin) live.origin = a.origin;
  if (a.paused) drawWaiting(a.paused);
  if (a.canRun !== undefined && a.canRun !== Boolean(config.canRun)) {
    config.canRun = a.canRun;
    inspect();
  }
  if (live.state !== state) {
    judge();
    drawTop();
    drawRows(true);
  }
  drawLive();
}

// drawLive shows the run below the outline: the text as it arrives, and the running tools with their times.
let ticking = null;
export function drawLive() {
  const running = live.state === 'running';
  document.body.classList.toggle('running', running);
  const state = running ? 'running' : live.origin.run || (waiting.cards.size ? 'paused' : 'idle');
  show($('state'), !live.connected ? (live.refused ? 'refused' : 'reconnecting …')
    : running && live.turn ? 'running, turn ' + live.turn : state);
  $('state').className = 'badge ' + (live.connected ? stateStyle(state) : 'odd');
  $('stop').hidden = !(running && config.canRun);
  show($('follow'), live.following ? 'following' : 'follow');
  $('follow').setAttribute('aria-pressed', String(live.following));
  const tools = [...live.tools.values()];
  const said = live.text || live.thinking;
  $('now').hidden = !live.error && (!running || !said && !tools.length);
  show($('now'), live.error && el('div', {class: 'error', role: 'alert'}, live.error),
    said && el('div', {class: live.text ? 'said' : 'said quiet'}, said.slice(-4000)),
    tools.map(tool => el('div', {class: tool.failed ? 'tool bad' : 'tool'}, el('b', {}, line(tool.tool || '', 60)), ' ',
      el('span', {}, line(tool.input || '', 120)), ' ', el('span', {class: 'quiet'}, line(tool.note || '', 120)),
      el('span', {class: 'elapsed'}, tool.state || tool.failed ? tool.state || 'failed'
        : tool.started ? duration(Math.max(0, Date.now() - Date.parse(tool.started))) : ''))));
  if (running) $('now').scrollTop = $('now').scrollHeight;
  drawOrigin();
  canRunNow();
  canAnswerNow();
  const tick = running && tools.some(tool => tool.started && !tool.ended);
  if (tick && !ticking) ticking = setInterval(drawLive, 1000);
  if (!tick && ticking) ticking = clearInterval(ticking) ?? null;
}

// drawOrigin shows more about a run elsewhere, and when the conversation changed where it comes from.
export function drawOrigin() {
  const {changed, detail} = live.origin;
  show($('origin'), detail && [line(detail, 120), changed && ' · '],
    changed && el('span', {title: changed}, 'changed ' + ago(changed)));
  $('origin').title = detail || '';
}

// canRunNow offers "Run from here" only while the server would take it. What was typed stays.
export function canRunNow() {
  const why = live.refused ? 'The server refuses this page.' : live.state === 'running'
    ? 'A run is under way; it has to end first.'
    : live.origin.run ? 'Another process runs this conversation, and its run is ' + live.origin.run + '.' : '';
  for (const form of document.querySelectorAll('.fork')) {
    form.querySelector('button').disabled = why !== '';
    show(form.querySelector('.why'), why);
  }
}

// forms has the forms of a node. Its member node identifies what they were made for. Forms that are open, focused or
// typed into are kept when the same node is drawn again.
const forms = {node: '', list: []};

const isUsed = form => form.contains(document.activeElement) || form.matches('[open]') ||
  form.querySelector('[data-typed]');
export const areUsed = () => forms.list.some(isUsed);

// formsOf returns the forms of a node: those that are shown if they are for the same, and are to be kept.
export function formsOf(key, keep) {
  const node = nodeOf(key), name = [node.id, node.kids.length > 0, config.canRun].join(' ');
  if (!keep || forms.node !== name) Object.assign(forms, {node: name, list: [forkBox(key)].flat().filter(Boolean)});
  return forms.list;
}

// forkBox is the form for another message in place of this one, or for one after it. The run continues from there, on a
// branch.
function forkBox(key) {
  if (!config.live || !config.canRun || at.owner !== null) return null;
  if (isCall(key)) return resultBox(key);
  const node = nodeOf(key), text = textField('what to say');
  if (group(key) === 'user') {
    text.value = textOf(key);
    return forkForm('say something else in its place, and run', () => ({at: node.id, edit: text.value}), text);
  }
  return [forkForm('say something here, and run', () => ({at: node.id, text: text.value}), text),
    isAnswer(key) && editBox(key)];
}

// editBox takes another text of a response. Its calls keep their results; without calls, the user's next message
// follows.
function editBox(key) {
  const node = nodeOf(key), text = textField('the response'), next = textField('what the user says next');
  text.value = textOf(key);
  const said = at.path.slice(at.path.indexOf(key) + 1).find(isMessage);
  if (said !== undefined && group(said) === 'user') next.value = textOf(said);
  const calls = node.parts.filter(part => part.form === 'call').length;
  const form = forkForm('the response', () => ({at: node.id, edit: text.value, text: calls ? '' : next.value}), text,
    calls ? el('p', {class: 'quiet'}, whatBecomesOf(calls, node.kids.filter(isCall)))
      : [caption('then the user says'), next]);
  return el('details', {class: 'edit'}, el('summary', {}, 'edit this response, and run'), form);
}

// whatBecomesOf explains what an edit of a message does with its calls. Executions are those that the calls have.
function whatBecomesOf(calls, executions) {
  if (!executions.length) return 'Its calls are executed.';
  const finished = executions.filter(key => ['', 'in doubt', 'denied'].includes(nodeOf(key).state || '')).length;
  return finished >= calls ? 'Its calls keep their results: they are not executed again.'
    : 'Calls that have a result keep it. The others are executed; a paused sub-agent continues where it is, and ' +
      'asks again.';
}

const textField = name => el('textarea', {rows: 3, 'aria-label': name});

// textOf is the text of a message, without what else is in it.
const textOf = key => textAmong(key, nodeOf(key).parts);

const textAmong = (key, parts) => (parts || []).filter(part => (part.form || 'text') === 'text')
  .map(part => textAt(saved(nodeOf(key)), part.at)).join('\n');

// resultBox takes another result of a call, and continues from there. The call is not executed again.
function resultBox(key) {
  const node = nodeOf(key);
  if (!node.kids.length) return null; // its results were not sent
  const result = node.parts.find(part => part.form === 'result');
  const text = textField('result'), failed = el('input', {type: 'checkbox'});
  text.value = textAmong(key, result?.parts);
  failed.checked = Boolean(result?.bad);
  return forkForm('try another result, and run', () => ({at: node.id, result: text.value, failed: failed.checked}),
    text, el('label', {}, failed, ' it failed'));
}

// forkForm sends what a person wrote, and follows the run.
function forkForm(title, body, ...fields) {
  return el('form', {class: 'fork', oninput: event => { event.target.dataset.typed = ''; }, onsubmit: async event => {
    event.preventDefault();
    const before = live.following;
    live.following = true; // the run may add nodes before the response arrives
    try {
      await post('fork', body());
      forms.node = ''; // it is done with
      status('It runs. The branch before stays: = compares them.');
    } catch (err) {
      live.following = before;
      status('Not run: ' + err.message);
    }
    drawLive();
  }}, caption(title), fields, el('div', {class: 'toolbar'}, el('button', {type: 'submit'}, 'Run from here'),
  el('span', {class: 'why quiet', role: 'status'})));
}

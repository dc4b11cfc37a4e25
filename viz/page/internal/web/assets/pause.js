// Paused runs: the calls that wait for a person, to approve, deny or answer them.

import {$, el, show, status} from './dom.js';
import {block, keyOfID} from './inspector.js';
import {drawLive, live, post} from './live.js';
import {config, select} from './page.js';
import {narrowPage, openView} from './views.js';
import {indentJSON, line} from './words.js';

export const waiting = {cards: new Map(), signature: '[]', answered: new Set()}; // answered: the cards that were answered here

// drawWaiting shows the open calls. A card stays while its call is open and takes answers as before, with what was
// typed into it.
export function drawWaiting(runs) {
  const focused = $('waiting').contains(document.activeElement);
  const cards = new Map();
  for (const run of runs) {
    for (const call of run.calls) {
      const name = JSON.stringify([run.id, call.id, run.takes]);
      cards.set(name, waiting.cards.get(name) ?? callCard(name, run, call));
      cards.get(name).update(call);
    }
  }

  // An answered card stays until the run continues, and no longer waits.
  const open = [...cards.values()].filter(card => card.open()), toApprove = open.filter(card => card.approve);
  const signature = JSON.stringify([[...cards.keys()], open.length]);
  if (signature !== waiting.signature) {
    const left = [...waiting.cards.keys()].filter(name => !cards.has(name));
    if (left.length && !left.some(name => waiting.answered.has(name))) {
      status('A call was answered elsewhere, or the conversation was continued.');
    }
    const number = open.length === 1 ? 'A call waits' : open.length ? open.length + ' calls wait' : 'All calls are answered';
    show($('waiting'), cards.size > 0 && el('h2', {}, number), toApprove.length > 1 && approveAll(toApprove),
      [...cards.values()].map(card => card.element));
    show($('to-waiting'), number);
    $('waiting').hidden = !cards.size;
    $('to-waiting').hidden = !open.length;
    Object.assign(waiting, {cards, signature});
    document.title = (open.length ? '(' + open.length + ') ' : '') + config.title; // seen from another tab
    drawLive();
    if (focused) toOpenCall() || $('outline').focus();
  }
  canAnswerNow();
}

// approveAll makes the button that approves each of some calls, with the arguments in its card.
function approveAll(cards) {
  return el('div', {class: 'toolbar'}, el('button', {type: 'button', class: 'all', title: 'Ctrl+Shift+Enter', onclick: () => {
    for (const card of cards) card.approve();
  }}, 'Approve all ' + cards.length));
}

// toOpenCall goes to the first call that can be answered, and reports whether there is one.
function toOpenCall() {
  const button = document.querySelector('#waiting form:not([hidden]) button.answer:not(:disabled)');
  if (!button) return false;
  button.closest('.ask').scrollIntoView({block: 'nearest'});
  button.focus({preventScroll: true});
  return true;
}

// toArguments edits the arguments of the call whose card has the focus, or else of the first one.
export function toArguments() {
  if (!document.activeElement.closest('#waiting .ask')) toWaiting();
  document.activeElement.closest('.ask')?.querySelector('button.edit')?.click();
}

// toWaiting shows the calls that wait, and goes to the first one that can be answered.
export function toWaiting() {
  if ($('waiting').hidden) return status('No call waits for an answer.');
  if (narrowPage.matches) openView('outline'); // they are below it
  if (!toOpenCall()) $('waiting').scrollIntoView({block: 'nearest'});
}

// toNode selects the message with a call, once it is drawn.
function toNode(id) {
  const key = keyOfID(id);
  if (key !== null) select(key);
}

// canAnswerNow offers the answers only while the server would take them.
export function canAnswerNow() {
  const able = !live.refused && live.connected && live.state === 'idle';
  for (const card of waiting.cards.values()) card.offer(able);
  for (const button of document.querySelectorAll('#waiting button.all')) button.disabled = !able;
}

const waitsFor = call => call.asks === 'approval' ? 'needs approval' : call.asks === 'result' ? 'waits for its result'
  : 'waits for the decisions about other calls';

// callCard makes the card of an open call.
function callCard(name, run, call) {
  const why = el('div', {class: 'why', role: 'alert'}), answered = el('p', {class: 'answered', role: 'status'});
  const doubt = el('p', {class: 'why'}, 'It was started before, and its outcome is unknown.'),
    reason = el('p', {class: 'said'});

  // send sends a reply, as the given text or as JSON.
  const send = async (reply, text = JSON.stringify(reply)) => {
    show(why);
    waiting.answered.add(name); // the card will be removed because of this answer
    try {
      await post('answer', JSON.stringify({pause: run.id, call: call.id}).slice(0, -1) + ',"reply":' + text + '}');
      status(reply.approve ? 'Approved.' : reply.approve === false ? 'Denied.' : 'Answered.');
    } catch (err) {
      waiting.answered.delete(name);
      show(why, 'Not accepted: ' + err.message + '.');
      status(why.textContent); // the card may be gone
    }
  };

  // refuse shows why an answer cannot be sent.
  const refuse = text => show(why, text);
  const asks = run.takes ? call.asks : '';
  const form = asks === 'approval' ? approvalForm(call, send, refuse) : asks ? resultForm(send) : null;
  let answer = '';
  const args = block('pre', indentJSON(call.input, [])[0], 'code');
  (args.querySelector('pre') || args).tabIndex = 0; // long arguments scroll, also by keys
  const element = el('article', {class: 'ask', 'aria-label': call.tool + ' ' + waitsFor(call)},
    el('div', {class: 'cardhead'}, el('b', {}, line(call.tool, 60)), ' ' + waitsFor(call),
      call.path && ' in ' + line(call.path, 120), ' ',
      el('button', {class: 'link', onclick: () => toNode(run.node)}, 'where')),
    doubt, reason, args, form, answered, why,
    !run.takes && call.asks && el('p', {class: 'quiet'}, 'The program that serves this page takes no answers here.'));

  return {
    element,
    open: () => Boolean(call.asks) && !answer,
    approve: asks === 'approval' && form.approve,
    update(now) {
      answer = now.answer;
      doubt.hidden = !now.doubt;
      show(reason, now.reason);
      reason.hidden = !now.reason;
      show(answered, now.answer && 'Answered: ' + now.answer);
      answered.hidden = !now.answer;
      if (form) form.hidden = Boolean(now.answer);
    },
    offer(able) {
      for (const button of form?.querySelectorAll('button') || []) button.disabled = !able;
    },
  };
}

// approvalForm is the buttons to approve or deny a call, and its arguments to edit. Enter in the reason denies.
function approvalForm(call, send, refuse) {
  const reason = el('input', {type: 'text', placeholder: 'reason, for the model', 'aria-label': 'reason to deny'});
  const edited = el('textarea', {rows: 6, class: 'code', 'aria-label': 'arguments', spellcheck: 'false'}, indentJSON(call.input, [])[0]);
  edited.hidden = true;

  // approve sends the arguments only if they were opened, and as they are written: a parsed number loses digits.
  const approve = () => {
    if (edited.hidden) return send({approve: true});
    try {
      JSON.parse(edited.value);
      return send({approve: true}, '{"approve":true,"arguments":' + edited.value + '}');
    } catch (err) {
      edited.focus();
      return refuse('The arguments are not JSON: ' + err.message + '.');
    }
  };
  const form = el('form', {class: 'approval', onsubmit: event => {
    event.preventDefault();
    send(reason.value.trim() ? {approve: false, reason: reason.value.trim()} : {approve: false});
  }}, edited, el('div', {class: 'toolbar'}, el('button', {type: 'button', class: 'answer', onclick: approve}, 'Approve'),
  el('button', {type: 'submit', class: 'deny'}, 'Deny'), reason, el('button', {type: 'button', class: 'edit', onclick: () => {
    edited.hidden = !edited.hidden;
    if (edited.hidden) return;
    edited.focus();
    edited.select();
  }}, 'Edit')));
  form.approve = approve;
  return form;
}

// resultForm takes the result of a call that is executed elsewhere.
function resultForm(send) {
  const text = el('textarea', {rows: 2, 'aria-label': 'result'}), failed = el('input', {type: 'checkbox'});
  return el('form', {class: 'result', onsubmit: event => {
    event.preventDefault();
    send(failed.checked ? {result: text.value, is_error: true} : {result: text.value});
  }}, text, el('div', {class: 'toolbar'}, el('button', {type: 'submit', class: 'answer'}, 'Give this result'),
  el('label', {}, failed, ' it failed')));
}

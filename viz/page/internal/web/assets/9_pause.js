// Paused runs: the calls that wait for a person, to approve, deny or answer them.

const waiting = {cards: new Map(), signature: '[]', answered: new Set()}; // answered: the cards that were answered here

// drawWaiting shows the open calls. A card stays while its call is open and takes answers as before, with what was
// typed into it.
function drawWaiting(runs) {
  const cards = new Map();
  for (const run of runs) {
    for (const call of run.calls) {
      const name = JSON.stringify([run.id, call.id, run.takes]);
      cards.set(name, waiting.cards.get(name) ?? callCard(name, run, call));
      cards.get(name).update(call);
    }
  }

  const signature = JSON.stringify([...cards.keys()]);
  if (signature !== waiting.signature) {
    const left = [...waiting.cards.keys()].filter(name => !cards.has(name));
    if (left.length && !left.some(name => waiting.answered.has(name))) {
      status('A call was answered elsewhere, or the conversation was continued.');
    }
    const focused = $('waiting').contains(document.activeElement);
    const number = cards.size === 1 ? 'A call waits' : cards.size + ' calls wait';
    show($('waiting'), cards.size > 0 && el('h2', {}, number), [...cards.values()].map(card => card.element));
    show($('to-waiting'), number);
    $('waiting').hidden = $('to-waiting').hidden = !cards.size;
    Object.assign(waiting, {cards, signature});
    document.title = (cards.size ? '(' + cards.size + ') ' : '') + config.title; // seen from another tab
    drawLive();
    if (focused) toOpenCall() || $('outline').focus();
  }
  canAnswerNow();
}

// toOpenCall goes to the first call that can be answered, and reports whether there is one.
function toOpenCall() {
  const button = document.querySelector('#waiting form:not([hidden]) button.answer:not(:disabled)');
  if (!button) return false;
  button.closest('.ask').scrollIntoView({block: 'nearest'});
  button.focus({preventScroll: true});
  return true;
}

// toWaiting shows the calls that wait, and goes to the first one that can be answered.
function toWaiting() {
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
function canAnswerNow() {
  for (const card of waiting.cards.values()) card.offer(!live.refused && live.connected && live.state === 'idle');
}

const waitsFor = call => call.asks === 'approval' ? 'needs approval' : call.asks === 'result' ? 'waits for its result'
  : 'waits for the decisions about other calls';

// callCard makes the card of an open call.
function callCard(name, run, call) {
  const why = el('div', {class: 'why', role: 'alert'}), answered = el('p', {class: 'answered', role: 'status'});
  const doubt = el('p', {class: 'why'}, 'It was started before, and its outcome is unknown.'),
    reason = el('p', {class: 'said'});

  const send = async reply => {
    show(why);
    waiting.answered.add(name); // the card will be removed because of this answer
    try {
      await post('answer', {pause: run.id, call: call.id, reply});
      status(reply.approve ? 'Approved.' : reply.approve === false ? 'Denied.' : 'Answered.');
    } catch (err) {
      waiting.answered.delete(name);
      show(why, 'Not accepted: ' + err.message + '.');
      status(why.textContent); // the card may be gone
    }
  };

  const form = !run.takes || !call.asks ? null : call.asks === 'approval' ? approvalForm(send) : resultForm(send);
  const element = el('article', {class: 'ask', 'aria-label': call.tool + ' ' + waitsFor(call)},
    el('div', {class: 'cardhead'}, el('b', {}, line(call.tool, 60)), ' ' + waitsFor(call),
      call.path && ' in ' + line(call.path, 120), ' ',
      el('button', {class: 'link', onclick: () => toNode(run.node)}, 'where')),
    doubt, reason, block('pre', indentJSON(call.input, [])[0], 'code'), form, answered, why,
    !run.takes && call.asks && el('p', {class: 'quiet'}, 'The program that serves this page takes no answers here.'));

  return {
    element,
    update(now) {
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

// approvalForm is the buttons to approve or deny a call. Enter in the reason denies.
function approvalForm(send) {
  const reason = el('input', {type: 'text', placeholder: 'reason, for the model', 'aria-label': 'reason to deny'});
  return el('form', {class: 'toolbar', onsubmit: event => {
    event.preventDefault();
    send(reason.value.trim() ? {approve: false, reason: reason.value.trim()} : {approve: false});
  }}, el('button', {type: 'button', class: 'answer', onclick: () => send({approve: true})}, 'Approve'),
  el('button', {type: 'submit', class: 'deny'}, 'Deny'), reason);
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

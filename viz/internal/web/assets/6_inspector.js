// The inspector: all there is to know of the selected node.

const tabs = ['Says', 'Request', 'JSON'];
let tab = 'Says';
const longText = 20000; // characters that are shown of one text before somebody asks for the rest

function inspect() {
  const pane = $('inspector');
  const node = nodeOf(at.selected);
  show(pane);
  if (!node) {
    show(pane, config.live && live.refused ? refusedText() : el('p', {class: 'quiet'}, 'Nothing has been said yet.'));
    return;
  }
  const has = tabs.filter(name => name !== 'Request' || isAnswer(at.selected));
  const shown = has.includes(tab) ? tab : 'Says';
  fill(pane, [heading(at.selected), troubles(node), facts(at.selected), el('div', {role: 'tablist', class: 'tabs', 'aria-label': 'views of the node'},
    has.map(name => el('button', {role: 'tab', id: 'tab-' + name, 'aria-controls': 'detail', 'aria-selected': String(name === shown), onclick: () => {
      tab = name;
      inspect();
      $('tab-' + name).focus();
    }}, name))), el('div', {id: 'detail', role: 'tabpanel', 'aria-labelledby': 'tab-' + shown})]);
  const detail = $('detail');
  if (shown === 'Says') fill(detail, [says(at.selected), forkBox(at.selected)]);
  canRunNow();
  if (shown === 'JSON') fill(detail, [toolbar(copyButton('Copy', () => node.raw)), block('pre', pretty(saved(node)), 'code'),
    el('p', {class: 'quiet'}, 'Copied byte for byte as it is saved.')]);
  if (shown === 'Request') request(at.selected, detail);
  pane.scrollTop = 0;
}

const isAnswer = key => group(key) === 'assistant';
const toolbar = (...buttons) => el('div', {class: 'toolbar'}, buttons);

function heading(key) {
  const node = nodeOf(key), {time, redacted} = saved(node);
  return el('div', {class: 'heading ' + placeOf(key).style},
    el('span', {class: 'glyph', 'aria-hidden': 'true'}, glyph(key)),
    el('h2', {}, line(label(key), 80)),
    el('a', {class: 'number', href: linkTo(key), title: 'link to this node'}, 'n' + numberOf(key)),
    node.names.map(name => el('span', {class: 'badge name'}, line(name, 40))),
    redacted && el('span', {class: 'badge odd'}, 'redacted'),
    el('span', {class: 'quiet id'}, node.id, time && el('time', {datetime: time}, time.replace('T', ' ').replace(/\.\d+Z$/, 'Z'))));
}

function troubles(node) {
  return node.problems.length > 0 && el('ul', {class: 'troubles'},
    node.problems.map(problem => el('li', {class: problem.grave ? 'bad' : 'odd'}, problem.what)));
}

// facts are the numbers: of the call that the node is, of all that hangs on it, and of all that follows.
function facts(key) {
  const node = nodeOf(key), {info = {}, body} = saved(node);
  const rows = [];
  const add = (name, value) => { if (value) rows.push(el('dt', {}, name), el('dd', {}, value)); };
  add('model', [info.model, info.api && '(' + info.api + ')'].filter(Boolean).join(' '));
  add('stopped', info.stop);
  if (node.ms) add('took', duration(node.ms));
  if (node.usage) add('tokens', (info.usage?.incomplete ? 'at least ' : '') + usageText(node.usage));
  if (node.cost !== undefined) add('cost', costText(node.cost));
  if (info.elapsed_ns) add('run took', duration(Number(info.elapsed_ns) / 1e6));
  if (kindOf(key) === 'stop_reason' && info.turns) add('run', [count(info.turns, 'turn'), info.tool_calls && count(info.tool_calls, 'tool call')].filter(Boolean).join(', '));
  if (info.usage && kindOf(key) === 'stop_reason') add('run’s tokens', (info.usage.incomplete ? 'at least ' : '') + usageText(usageList(info.usage)));
  if (info.tool_usage) add('in tools', usageText(usageList(info.tool_usage)));
  if (info.cost !== undefined) add('cost', info.cost instanceof Digits ? info.cost.text : String(info.cost));
  if (body.call_id) add('call', line(body.call_id, 80));
  if (node.opens) add('sub-agent', el('button', {class: 'link', onclick: () => drill(key)}, totals(sums(inside([key])))));
  const after = sums(subtree(key));
  if (after.nodes > 1) add('from here on', totals(after));
  return rows.length > 0 && el('dl', {class: 'facts'}, rows, node.usage && usageBar(node.usage));
}

// subtree is a node, all that follows, and what hangs on these.
function subtree(key) {
  const keys = below(key);
  return new Set([...keys, ...inside(keys)]);
}

const usageList = u => [u.input || 0, u.output || 0, u.cache_read || 0, u.cache_write || 0, u.reasoning || 0].map(Number);

function usageText([input, output, read, written, thought]) {
  return [tokens(input) + ' in', tokens(output) + ' out' + (thought ? ' (' + tokens(thought) + ' thinking)' : ''),
    read && tokens(read) + ' read from cache', written && tokens(written) + ' written to cache'].filter(Boolean).join(', ');
}

function totals(sum) {
  return [count(sum.nodes, 'node'), sum.answers && count(sum.answers, 'model call'), sum.calls && count(sum.calls, 'tool call'),
    sum.failed && sum.failed + ' failed', sum.usage.some(Boolean) && usageText(sum.usage), sum.ms && duration(sum.ms) + ' in models', costOf(sum)].filter(Boolean).join(', ');
}

// costOf says what calls cost together, where prices are known, and of how many none is.
function costOf(sum) {
  if (!sum.priced) return '';
  return 'cost ' + costText(sum.cost) + (sum.unpriced ? ' and ' + count(sum.unpriced, 'call') + ' without a price' : '');
}

// costText is an amount of a currency that only the program knows: to three digits that say something, and never in the form 1e-7.
const costText = n => n === 0 ? '0' : new Intl.NumberFormat('en', {maximumSignificantDigits: 3}).format(n);

// usageBar shows where the tokens of a call went.
function usageBar(usage) {
  const parts = [['read', usage[2]], ['written', usage[3]], ['input', usage[0]], ['output', usage[1]]].filter(([, n]) => n > 0);
  const all = parts.reduce((sum, [, n]) => sum + n, 0);
  let x = 0;
  const bars = parts.map(([name, n]) => {
    const bar = svg('rect', {x, y: 0, width: n / all * 100, height: 6, class: name});
    x += n / all * 100;
    return bar;
  });
  return svg('svg', {class: 'usage', viewBox: '0 0 100 6', preserveAspectRatio: 'none', role: 'img', 'aria-label': usageText(usage)}, ...bars);
}

// block is a text, letter for letter. What is very long is cut until somebody asks.
function block(name, text, classes) {
  const e = el(name, {class: classes});
  if (text.length <= longText) {
    e.textContent = text;
    return e;
  }
  e.textContent = text.slice(0, longText);
  return el('div', {}, e, el('button', {class: 'more', onclick: event => {
    e.textContent = text;
    event.target.remove();
  }}, 'show all ' + count(text.length, 'character')));
}

// says shows what a node says.
function says(key) {
  const node = nodeOf(key), {kind, body, info = {}} = saved(node);
  switch (kind) {
    case 'system': return block('div', body.text || '', 'said');
    case 'tools': return (body.tools || []).map(tool => el('details', {class: 'card'},
      el('summary', {}, el('b', {}, tool.name || pretty(tool.extra))), block('div', tool.description || '', 'said'), block('pre', pretty(tool.schema_text ?? tool.schema), 'code')));
    case 'message': return [(body.blocks || []).map((b, i) => blockOf(b, key, i)), isResults(key) && executions(key)];
    case 'tool_execution': return execution(body, info);
    case 'sub_graph': return [el('b', {}, body.title), block('div', body.summary || '', 'said')];
    case 'compaction': return [part('says in their place'), (body.summary || []).map(b => blockOf(b, key)), el('p', {class: 'quiet'}, count((body.replaced || []).length, 'node') + ' replaced: ',
      (body.replaced || []).slice(0, 50).map(id => {
        const k = keyOfID(id);
        return k === null ? '' : [link(k), ' '];
      }).flat())];
    case 'stop_reason': return block('div', [body.reason, body.detail].filter(Boolean).join('\n'), 'said');
    case 'custom': return block('pre', pretty(body.json_text ?? body.json), 'code');
  }
  return block('pre', pretty(body), 'code');
}

const part = text => el('h3', {}, text);
const link = key => el('button', {class: 'link', onclick: () => select(key)}, 'n' + numberOf(key));

function execution(body, info) {
  const ran = info.ran;
  return [
    part(ran ? 'arguments, as the model wrote them' : 'arguments'), block('pre', pretty(input(body)) ?? '', 'code'),
    ran && [part('what ran instead' + (ran.tool ? ': ' + ran.tool : '')), input(ran) !== undefined && diffed(pretty(input(body)), pretty(input(ran)))],
    part(stateOf(body) || (body.is_error ? 'failed with' : 'result')), (body.result || []).length ? el('div', {class: body.is_error ? 'outcome bad' : 'outcome'}, body.result.map(b => blockOf(b))) : el('p', {class: 'quiet'}, body.state === 'started' ? 'no result yet' : 'no output'),
    info.full && el('details', {class: 'card'}, el('summary', {}, 'whole output'), info.full.map(b => blockOf(b))),
    info.details !== undefined && [part('details'), block('pre', pretty(info.details), 'code')],
    info.started && el('p', {class: 'quiet'}, 'started ' + info.started + (info.ended ? ', ended ' + info.ended : ', end unknown')),
  ].flat();
}

// executions lists the calls whose results a message holds.
function executions(key) {
  const calls = (nodeOf(key).parents || []).filter(parent => kindOf(parent) === 'tool_execution');
  const most = 200; // more are in the outline
  return calls.length > 0 && [el('table', {class: 'calls'}, el('tbody', {}, calls.slice(0, most).map(call => el('tr', {class: nodeOf(call).problems.some(p => p.grave) ? 'bad' : null},
    el('td', {}, link(call)), el('td', {}, el('b', {}, line(label(call), 40)), ' ' + summary(call)), el('td', {class: 'number'}, nodeOf(call).ms ? duration(nodeOf(call).ms) : ''))))), calls.length > most && el('p', {class: 'quiet'}, 'and ' + count(calls.length - most, 'more call'))];
}

// blockOf shows one block. What a message's block refers to, by its place, is found through the message's key.
function blockOf(b, key, place) {
  switch (b.type) {
    case 'text': return block('div', b.text || '', 'said');
    case 'thinking': return el('details', {class: 'card thinking', open: (b.text || '').length < 600},
      el('summary', {}, b.text ? 'thinking' : 'thinking, hidden by the provider'), block('div', b.text || '', 'said'));
    case 'tool_use': return el('div', {class: 'card call'}, el('div', {class: 'cardhead'}, '→ ', el('b', {}, b.name), ' ', executedBy(key, place)),
      block('pre', pretty(input(b)) ?? '', 'code'));
    case 'cut_tool_use': return el('div', {class: 'card'}, el('div', {class: 'cardhead'}, 'cut-off call of ', el('b', {}, b.name)),
      block('pre', pretty(input(b)) ?? '', 'code'));
    case 'tool_result': return resultOf(b, key);
    case 'image': return picturesOf(b.source || {});
    case 'document': return el('div', {class: 'card'}, el('div', {class: 'cardhead'}, 'document ', el('b', {}, b.title), ' ', sourceText(b.source || {})),
      b.source?.text !== undefined && block('div', b.source.text, 'said'));
  }
  return el('div', {class: 'card'}, el('div', {class: 'cardhead'}, b.type + ' block', b.api && ' of ' + b.api), block('pre', pretty(b.json ?? b), 'code'));
}

// executedBy links a call to the node that carried it out: the one whose index is the call's place among the calls.
function executedBy(key, place) {
  if (key === undefined) return null;
  const calls = saved(nodeOf(key)).body.blocks.flatMap((b, i) => b.type === 'tool_use' ? [i] : []);
  const kid = nodeOf(key).kids.find(k => kindOf(k) === 'tool_execution' && saved(nodeOf(k)).body.index === calls.indexOf(place));
  return kid === undefined ? null : link(kid);
}

function resultOf(b, key) {
  if (b.content === undefined && b.call_id === undefined && b.result_of !== undefined) return null; // the table below has it
  return el('div', {class: b.is_error ? 'card bad' : 'card'}, el('div', {class: 'cardhead'}, '← result ', el('span', {class: 'quiet'}, b.call_id)), (b.content || []).map(inner => blockOf(inner)));
}

function sourceText(source) {
  const size = source.data ? ', ' + count(Math.floor(source.data.length * 3 / 4), 'byte') : '';
  return [source.media_type, source.url, source.file_id && 'file ' + source.file_id].filter(Boolean).join(' ') + size;
}

// picturesOf shows an image whose bytes are here and are what browsers draw without running or fetching anything. Others are named.
function picturesOf(source) {
  const type = source.data && sniff(source.data);
  const name = el('div', {class: 'cardhead'}, 'image ', sourceText(source));
  if (!type) return el('div', {class: 'card'}, name);
  const bytes = Uint8Array.from(atob(source.data), c => c.charCodeAt(0));
  const url = URL.createObjectURL(new Blob([bytes], {type}));
  return el('div', {class: 'card'}, name, el('img', {src: url, alt: 'image that was sent', onload: () => URL.revokeObjectURL(url)}));
}

// sniff tells by the first bytes what an image is; null for everything that is no plain picture, such as SVG.
function sniff(data) {
  try {
    const head = atob(data.slice(0, 24));
    if (head.startsWith('\x89PNG\r\n\x1a\n')) return 'image/png';
    if (head.startsWith('\xff\xd8\xff')) return 'image/jpeg';
    if (head.startsWith('GIF87a') || head.startsWith('GIF89a')) return 'image/gif';
    if (head.startsWith('RIFF') && head.slice(8, 12) === 'WEBP') return 'image/webp';
  } catch { /* not base64 */ }
  return null;
}

// diffed is two texts in one, with what differs marked.
function diffed(a, b) {
  return el('pre', {class: 'code diff'}, differences(a ?? '', b ?? '').map(([op, text]) =>
    op === '=' ? text : el(op === '-' ? 'del' : 'ins', {}, text)));
}

function keyOfID(id) {
  for (const node of graph.nodes.values()) if (node.id === id) return node.key;
  return null;
}

function copyButton(name, text) {
  return el('button', {onclick: async () => {
    try {
      await copy(await text());
      status('Copied.');
    } catch (err) {
      status('Not copied: ' + err.message);
    }
  }}, name);
}

// copy puts text on the clipboard, also where the browser gives pages no clipboard.
async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = el('textarea', {class: 'offscreen'});
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand('copy');
  area.remove();
  if (!done) throw new Error('the browser does not let a page copy');
}

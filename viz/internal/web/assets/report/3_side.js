// What the shown conversations have in common: their paths, as a matrix, their first failures, tools and models.

const pathsAtFirst = innerWidth > 720 ? 12 : 4;
let allPaths = false;
let listedPaths = []; // those that conversations took which the other filters leave, the most taken first

function drawSide(list) {
  const members = new Map();
  for (const row of data.rows) if (row.path && isShown(row, 'path')) members.set(row.path, (members.get(row.path) || 0) + 1);
  const taken = data.paths.filter(path => members.has(path.number) || path.number === view.path);
  listedPaths = taken;
  const most = allPaths ? taken.length : pathsAtFirst;

  const failures = new Map();
  for (const row of list) if (row.failure) failures.set(row.failure.kind, [...failures.get(row.failure.kind) || [], row]);
  const kinds = [...failures].sort((a, b) => b[1].length - a[1].length);

  show($('side'),
    part('Paths', taken.length ? 'the same tools, the same failures; a ring is where one parts' : 'none', el('div', {id: 'paths'}, taken.slice(0, most).map(path => pathRow(path, members.get(path.number) || 0))),
      taken.length > most && el('button', {onclick: () => { allPaths = true; draw(); }}, 'all ' + taken.length + ' paths')),
    kinds.length > 0 && part('First failures', '', el('table', {class: 'sums'}, kinds.slice(0, 20).map(([kind, rows]) =>
      el('tr', {}, el('td', {class: 'number right'}, number(rows.length)),
        el('td', {class: 'word'}, el('button', {class: 'link why', 'aria-pressed': String(view.failure === kind), onclick: () => onlyFailure(kind)}, kind)))))),
    data.tools.length > 0 && part('Tools', 'of all conversations', el('table', {class: 'sums'},
      el('tr', {}, ['calls', 'failed', 'p50', 'p95', 'tool'].map((title, i) => el('th', {class: i < 4 ? 'right' : ''}, title))),
      data.tools.map(tool => el('tr', {}, [number(tool.calls), tool.failed ? number(tool.failed) + ' (' + percent(tool.failed / tool.calls) + ')' : '–',
        tool.timed ? duration(tool.p50_ms) : '–', tool.timed ? duration(tool.p95_ms) : '–'].map(text => el('td', {class: 'number right' + (text.includes('(') ? ' failed' : '')}, text)), el('td', {class: 'word'}, tool.name || '(no name)'))))),
    data.models.length > 0 && part('Models', 'of all conversations', el('table', {class: 'sums'},
      el('tr', {}, ['responses', 'input', 'output', 'cached', ...data.currency ? [data.currency] : [], 'model'].map((title, i, all) => el('th', {class: i < all.length - 1 ? 'right' : ''}, title))),
      data.models.map(model => el('tr', {}, [number(model.responses), number(model.usage.input || 0), number(model.usage.output || 0), number(model.usage.cache_read || 0),
        ...data.currency ? [model.money] : []].map(text => el('td', {class: 'number right'}, text)), el('td', {class: 'word'}, model.model || '(no model)'))))));
}

const percent = share => share < 0.01 ? '<1%' : Math.floor(share * 100) + '%';

const part = (title, note, ...content) => el('details', {open: innerWidth > 720 || title === 'Paths'}, el('summary', {}, el('h2', {}, title), ' ', el('span', {class: 'quiet'}, note)), content);

const stepOf = i => data.steps[i];

// pathRow is a row of the matrix. What is the same as in the path that it parts from is pale.
function pathRow(path, members) {
  const {from} = path;
  const cells = path.cells.map((one, i) => cell(one, from + i, path));
  const left = path.steps - from - cells.length;
  return el('button', {class: 'pathrow', 'aria-pressed': String(view.path === path.number), onclick: () => onlyPath(path.number)},
    el('span', {class: 'number right'}, number(members) + '×'),
    el('span', {class: 'badge ' + (gone.has(path.outcome) ? 'bad' : path.outcome === 'ended' ? 'on' : 'odd')}, path.outcome),
    el('span', {class: 'cells', 'aria-hidden': 'true'}, from > 0 && el('span', {class: 'quiet'}, number(from) + '+ '), cells, left > 0 && el('span', {class: 'quiet'}, ' +' + number(left))),
    el('span', {class: 'parts'}, el('b', {}, path.number + ' '), parts(path)));
}

// parts is where a path parts from another one, in words.
function parts(path) {
  if (!path.base) return path.cells.map(one => one.label).join(', ');
  return 'after ' + path.same + ' steps of ' + path.base + ': ' + (path.step || 'ends') + (path.instead ? ' instead of ' + path.instead : '');
}

function cell(one, i, path) {
  const kind = one.failed ? 'failed' : {user: 'user', assistant: 'assistant', 'tool call': 'tool', stop: 'stop'}[one.kind] || 'aside';
  return el('span', {class: ['cell', kind, path.base && i < path.same ? 'same' : '', path.base && i === path.same ? 'part' : ''].join(' '), title: (i + 1) + ' ' + one.label}, one.failed ? '✕' : '');
}

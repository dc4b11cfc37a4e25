// The conversation as the page knows it. Patches arrive here and nowhere else; everything else only reads.

const graph = {
  nodes: new Map(), // by key
  places: new Map(),
  folds: new Map(), // the boxes that hold several nodes, by key
  edges: new Map(), // by "from to"
  frames: [], rooms: [], heads: [], refs: [], found: [], totals: [],
  problems: [], // those of found that count now
  width: 0, height: 0, note: '',
  order: [], // keys in reading order
  version: 0, // counts the changes of all this
};

// apply takes in what is new. What follows from it is computed anew as a whole: it takes a few milliseconds for 20,000
// nodes.
function apply(patch) {
  if (patch.reset) {
    for (const map of [graph.nodes, graph.places, graph.folds, graph.edges]) map.clear();
    Object.assign(graph, {frames: [], rooms: [], heads: [], refs: [], found: [], totals: [], note: ''});
  }
  for (const key of patch.gone || []) {
    graph.nodes.delete(key);
    graph.places.delete(key);
    graph.folds.delete(key);
  }
  for (const [from, to] of patch.cut || []) graph.edges.delete(from + ' ' + to);
  for (const node of patch.nodes || []) graph.nodes.set(node.key, node);
  for (const place of patch.places || []) graph.places.set(place.key, place);
  for (const fold of patch.folds || []) graph.folds.set(fold.key, fold);
  for (const edge of patch.edges || []) graph.edges.set(edge.from + ' ' + edge.to, edge);
  if (patch.problems !== undefined) graph.found = patch.problems;
  for (const whole of ['frames', 'rooms', 'heads', 'refs', 'totals', 'width', 'height', 'note']) {
    if (patch[whole] !== undefined) graph[whole] = patch[whole];
  }
  relate();
}

// relate finds the children of each node, what hangs on what, and the reading order.
function relate() {
  graph.order = [...graph.places.values()].sort((a, b) => a.n - b.n).map(place => place.key);
  for (const node of graph.nodes.values()) Object.assign(node, {kids: [], owner: null, names: []});
  for (const key of graph.order) {
    const node = graph.nodes.get(key);
    for (const parent of node.parents || []) graph.nodes.get(parent)?.kids.push(key);
  }
  for (const [i, key] of graph.heads.entries()) {
    if (graph.heads.length > 1) graph.nodes.get(key)?.names.push('head ' + (i + 1));
  }
  for (const ref of graph.refs) for (const key of ref.keys) graph.nodes.get(key)?.names.push(ref.name);
  judge();
  saidTexts.clear();
}

// judge says what is a problem now: during a run, a call that waits for its result is none.
function judge() {
  graph.version++;
  for (const node of graph.nodes.values()) node.problems = [];
  graph.problems = graph.found.filter(problem => !problem.waits || live.state !== 'running');
  for (const problem of graph.problems) graph.nodes.get(problem.key)?.problems.push(problem);
}

const nodeOf = key => graph.nodes.get(key);
const placeOf = key => graph.places.get(key);
const numberOf = key => graph.places.get(key)?.n;
const byNumber = (a, b) => numberOf(a) - numberOf(b);

// saved is what a node says, parsed. Most nodes are never looked at, so it is done when somebody does. JavaScript's
// numbers would lose digits: a number that is not written as JavaScript would write it stays as its text, in an object
// of class Digits.
function saved(node) {
  if (!node.parsed || node.parsedRaw !== node.raw) {
    node.parsed = parseExactly(node.raw);
    node.parsedRaw = node.raw;
  }
  return node.parsed;
}

// skimmed is saved for what goes through all nodes, which has no time for digits.
const skimmed = node => node.parsedRaw === node.raw ? node.parsed : JSON.parse(node.raw);

class Digits {
  constructor(text) { this.text = text; }
}

function parseExactly(text) {
  try {
    return JSON.parse(text, (key, value, context) =>
      typeof value === 'number' && context && context.source !== String(value) ? new Digits(context.source) : value);
  } catch {
    return JSON.parse(text); // it nests too deeply to be walked
  }
}

// conversationOf is the owner of the conversation that a node is drawn in: the key of the node that it hangs on, null
// for the outermost.
function conversationOf(key) {
  const frame = placeOf(key)?.frame ?? -1;
  return frame < 0 ? null : graph.frames[frame]?.owner ?? null;
}

// headsOf are the ends of a conversation, by its owner.
const headsOf = owner => owner === null ? graph.heads : nodeOf(owner)?.opens || [];

// pathTo is everything that a node follows from, in reading order, and itself.
function pathTo(...keys) {
  const seen = new Set(keys);
  const stack = [...keys];
  while (stack.length) {
    for (const parent of nodeOf(stack.pop())?.parents || []) {
      if (!seen.has(parent)) {
        seen.add(parent);
        stack.push(parent);
      }
    }
  }
  return [...seen].filter(key => graph.places.has(key)).sort(byNumber);
}

// endOf is the head that lies after a node: the first one in order that follows from it, or the node itself.
function endOf(key) {
  const after = below(key);
  return headsOf(conversationOf(key)).find(head => after.has(head)) ?? key;
}

// below is a node and all that follows from it.
function below(key) {
  const seen = new Set([key]);
  const stack = [key];
  while (stack.length) {
    for (const kid of nodeOf(stack.pop())?.kids || []) {
      if (!seen.has(kid)) {
        seen.add(kid);
        stack.push(kid);
      }
    }
  }
  return seen;
}

// inside is all of the conversations that hang on the nodes, and on theirs.
function inside(keys) {
  const seen = new Set();
  const stack = [...keys].flatMap(key => nodeOf(key)?.opens || []);
  while (stack.length) {
    const key = stack.pop();
    if (seen.has(key) || !graph.nodes.has(key)) continue;
    seen.add(key);
    for (const next of [nodeOf(key).parents, nodeOf(key).opens].flat()) if (next !== undefined) stack.push(next);
  }
  return seen;
}

// siblings are the nodes that stand where this one does: the other children of its parent, or the other beginnings.
function siblings(key) {
  const node = nodeOf(key);
  const conversation = conversationOf(key);
  const all = node.parents?.length ? nodeOf(node.parents[0]).kids
    : graph.order.filter(other => !nodeOf(other).parents?.length);
  return all.filter(other => conversationOf(other) === conversation);
}

// branches are the siblings of a node, where they are alternatives and not calls side by side.
function branches(key) {
  if (isCall(key)) return [];
  const node = nodeOf(key);
  if (!node.parents?.length) return [];
  return siblings(key).filter(other => !isCall(other));
}

// sums adds up what the calls of nodes took. A run's totals are not added: they repeat what its nodes say.
function sums(keys) {
  const total = {nodes: 0, usage: [0, 0, 0, 0, 0], ms: 0, cost: 0, priced: 0, unpriced: 0, answers: 0, calls: 0,
    failed: 0};
  for (const key of keys) {
    const node = nodeOf(key);
    if (!node) continue;
    total.nodes++;
    // What a tool took itself is what the sub-agent's nodes say, where there are any.
    if (node.usage && !node.opens) node.usage.forEach((n, i) => { total.usage[i] += n; });
    if (node.cost !== undefined) {
      total.cost += node.cost;
      total.priced++;
    } else if (node.usage && !isCall(key)) total.unpriced++;
    if (isCall(key)) total.calls++;
    else if (node.ms) {
      total.ms += node.ms;
      total.answers++;
    }
    if (node.problems.some(problem => problem.grave)) total.failed++;
  }
  return total;
}

// The conversation as the page knows it. Patches arrive here and nowhere else; everything else only reads.

import {live} from './live.js';
import {isCall, saidTexts} from './words.js';

export const graph = {
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

// apply adds a patch to the graph. Everything derived from the graph is computed anew: that takes a few milliseconds
// for 20,000 nodes.
export function apply(patch) {
  collect(patch);
  relate();
}

// collect adds a patch to the graph, and computes nothing: more of it follows.
export function collect(patch) {
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
}

// relate finds the reading order, and the children and the names of each node.
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

// judge finds what is a problem now. During a run, a call that waits for its result is none.
export function judge() {
  graph.version++;
  for (const node of graph.nodes.values()) node.problems = [];
  graph.problems = graph.found.filter(problem => !problem.waits || live.state !== 'running');
  for (const problem of graph.problems) graph.nodes.get(problem.key)?.problems.push(problem);
}

export const nodeOf = key => graph.nodes.get(key);
export const placeOf = key => graph.places.get(key);
export const numberOf = key => graph.places.get(key)?.n;
export const byNumber = (a, b) => numberOf(a) - numberOf(b);

// saved is the saved form of a node, parsed at its first use: most nodes are never looked at. JavaScript's numbers
// would lose digits. A number that JavaScript would write in another way stays as its text, in an object of class
// Digits.
export function saved(node) {
  if (!node.parsed || node.parsedRaw !== node.raw) {
    node.parsed = parseExactly(node.raw);
    node.parsedRaw = node.raw;
  }
  return node.parsed;
}

// skimmed is like saved, for code that goes through all nodes. It does not keep digits: that would take too long.
export const skimmed = node => node.parsedRaw === node.raw ? node.parsed : JSON.parse(node.raw);

export class Digits {
  constructor(text) { this.text = text; }
}

// parseExactly parses JSON and keeps the digits of its numbers. Where the browser does not give the source of a value,
// numbers are those of JavaScript.
export function parseExactly(text) {
  try {
    return JSON.parse(text, (key, value, context) =>
      typeof value === 'number' && context && context.source !== String(value) ? new Digits(context.source) : value);
  } catch {
    return JSON.parse(text); // it nests too deeply to be walked
  }
}

// conversationOf names the conversation of a node by its owner: the key of the call that started it, or of another node
// with a conversation inside; null for the outermost.
export function conversationOf(key) {
  const frame = placeOf(key)?.frame ?? -1;
  return frame < 0 ? null : graph.frames[frame]?.owner ?? null;
}

// headsOf returns the heads of a conversation, by its owner.
export const headsOf = owner => owner === null ? graph.heads : nodeOf(owner)?.opens || [];

// pathTo returns nodes and all their ancestors, in reading order.
export function pathTo(...keys) {
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

// endOf returns the first head below a node; the node itself if there is none.
export function endOf(key) {
  const after = below(key);
  return headsOf(conversationOf(key)).find(head => after.has(head)) ?? key;
}

// below returns a node and all its descendants.
export function below(key) {
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

// inside returns the nodes of the conversations inside the given nodes, at any depth.
export function inside(keys) {
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

// siblings returns the children of a node's first parent, or all nodes without a parent, in its conversation. The node
// is one of them.
export function siblings(key) {
  const node = nodeOf(key);
  const conversation = conversationOf(key);
  const all = node.parents?.length ? nodeOf(node.parents[0]).kids
    : graph.order.filter(other => !nodeOf(other).parents?.length);
  return all.filter(other => conversationOf(other) === conversation);
}

// branches returns the siblings of a node that are alternatives, itself included. The calls of one message are not.
export function branches(key) {
  if (isCall(key)) return [];
  const node = nodeOf(key);
  if (!node.parents?.length) return [];
  return siblings(key).filter(other => !isCall(other));
}

// sums adds up the tokens, times and costs of nodes. The totals of a run are not added: they repeat those of its nodes.
export function sums(keys) {
  const total = {nodes: 0, usage: [0, 0, 0, 0, 0], ms: 0, cost: 0, priced: 0, unpriced: 0, answers: 0, calls: 0,
    failed: 0};
  for (const key of keys) {
    const node = nodeOf(key);
    if (!node) continue;
    total.nodes++;
    // The usage of a call with a sub-agent repeats that of the sub-agent's nodes.
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

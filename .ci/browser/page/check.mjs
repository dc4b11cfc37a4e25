#!/usr/bin/env node
// Opens pages in a headless browser and uses them. README.md says how it is called.
import {barriers, close, downloaded, inFirefox, newContext, outside, printed, tooPale, watch, within} from './browser.mjs';
import {execFileSync} from 'node:child_process';
import {mkdtempSync, readdirSync, readFileSync, writeFileSync} from 'node:fs';
import {createServer} from 'node:http';
import path from 'node:path';
import {isDeepStrictEqual} from 'node:util';

const [dir, ...wanted] = process.argv.slice(2);

function equal(got, want, what) {
  if (!isDeepStrictEqual(got, want)) throw new Error(what + ': got ' + JSON.stringify(got) + ', want ' + JSON.stringify(want));
}
function ok(value, what) {
  if (!value) throw new Error(what);
}
const text = name => readFileSync(path.join(dir, name), 'utf8');

// serve starts a server that answers with route.fulfill, and returns its address. A request without an answer stays open.
async function serve(server, context) {
  const http = createServer(async (asked, answer) => {
    let body = '';
    for await (const piece of asked) body += piece;
    const route = {fulfill: ({status = 200, contentType = 'text/plain', body = '', open = false}) => {
      answer.writeHead(status, {'content-type': contentType}).write(body);
      if (!open) answer.end();
    }};
    server(route, {url: () => 'http://check.test' + asked.url, method: () => asked.method, headers: () => asked.headers, postData: () => body});
  });
  await new Promise(done => http.listen(0, '127.0.0.1', done));
  context.on('close', () => { http.closeAllConnections(); http.close(); });
  return 'http://127.0.0.1:' + http.address().port + '/';
}

// open opens a page and records everything that it must not do.
async function open(name, {hash = '', options = {}, server, clock = false} = {}) {
  const context = await newContext({viewport: {width: 1400, height: 900}, ...options});
  const page = await context.newPage();
  page.setDefaultTimeout(60000);
  if (clock) await page.clock.install();
  const url = server ? await serve(server, context) : 'file://' + path.join(dir, name);
  const watched = await watch(page, asked => server ? asked.startsWith(url) : asked.split('#')[0] === url);
  await page.addInitScript(() => {
    window.seen = {copied: []};
    Object.defineProperty(navigator, 'clipboard', {value: {writeText: async copied => { window.seen.copied.push(copied); }}});
  });
  const began = performance.now();
  await page.goto(url + hash);
  page.sins = async () => (await watched()).filter(sin => !sin.startsWith('console: Failed to load resource')); // its status is the check's
  if (options.javaScriptEnabled !== false) {
    await page.waitForSelector(server ? '#state' : '.row').catch(async err => { throw new Error([...await page.sins(), err.message].join('\n')); });
  }
  page.opened = Math.round(performance.now() - began);
  return page;
}

const selected = page => page.evaluate(() => document.querySelector('.heading a')?.textContent);
const rows = page => page.evaluate(() => [...document.querySelectorAll('.row')].map(row => row.querySelector('.number')?.textContent || row.querySelector('.text').textContent));
const press = async (page, ...keys) => { for (const key of keys) await page.keyboard.press(key); };
const content = (page, selector) => page.evaluate(s => document.querySelector(s)?.textContent, selector);
const settle = page => page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))));

const checks = {
  async opens() {
    const page = await open('release.html');
    equal(await page.title(), 'Release 2.4', 'title');
    equal(await selected(page), 'n4', 'what failed first is selected');
    equal(await rows(page), ['n0', 'n1', 'n2', 'n3', 'n7', 'n4', 'n5', 'n6', 'n8', 'n9', 'n22', 'n23', 'n24', 'n25', 'n27', 'n28'], 'rows');
    equal(await content(page, '#problems'), '✕ 3 failures', 'problems');
    ok((await content(page, '#totals')).startsWith('32 nodes, 9 model calls, 7 tool calls, 3 failed'), 'totals');
    await settle(page);
    ok(await page.evaluate(() => document.querySelectorAll('.box').length) > 3, 'boxes are drawn');
    equal(await page.evaluate(() => [...document.querySelectorAll('.box.selected text')].slice(0, 2).map(e => e.textContent)), ['run_tests', 'failed: --- FAIL: TestCompaction (0.31s)'], 'the selected box says why it failed');
    return page;
  },

  async keyboard() {
    const page = await open('release.html', {hash: '#n0'});
    const walk = [];
    for (const key of ['j', 'j', 'k', 'ArrowDown', 'ArrowDown', 'j', 'End', 'Home', 'End', 'p', 'p', 'c', 'Home', 'p']) {
      await press(page, key);
      walk.push(await selected(page));
    }
    equal(walk, ['n1', 'n2', 'n1', 'n2', 'n3', 'n7', 'n28', 'n0', 'n28', 'n27', 'n26', 'n27', 'n0', 'n0'], 'j k ↓ End Home p c');
    await page.evaluate(() => { location.hash = '#n23'; });
    await press(page, ']');
    equal(await selected(page), 'n29', 'the other branch');
    equal((await rows(page)).slice(-3), ['n29', 'n30', 'n31'], 'its path');
    await press(page, '[');
    equal(await selected(page), 'n23', 'and back');
    await press(page, '?');
    ok(await page.isVisible('#help'), 'help');
    await press(page, 'Escape');
    ok(!await page.isVisible('#help'), 'no help');
    return page;
  },

  // Where a letter is drawn tells where a text begins: the first letter of a long row must be in view.
  async scripts() {
    const page = await open('scripts.html', {hash: '#n0'});
    const places = await page.evaluate(() => {
      const at = (e, i) => {
        const text = document.createTreeWalker(e, NodeFilter.SHOW_TEXT).nextNode(), range = new Range();
        range.setStart(text, i < 0 ? text.length + i : i);
        range.setEnd(text, i < 0 ? text.length + i + 1 : i + 1);
        return range.getBoundingClientRect();
      };
      const row = document.querySelector('.row .oneline'), said = document.querySelector('.said');
      const {left, right} = row.getBoundingClientRect();
      return {
        rowIsCut: row.scrollWidth > row.clientWidth, rowBegins: at(row, 0).left >= left && at(row, 0).right <= right + 1,
        saidBegins: at(said, 0).right - said.getBoundingClientRect().right, saidEnds: at(said, -1).left < at(said, 0).left,
        boxLines: [...document.querySelectorAll('.box.selected text')].map(e => e.getAttribute('direction')),
      };
    });
    ok(places.rowIsCut && places.rowBegins, 'a row that is cut shows its beginning: ' + JSON.stringify(places));
    ok(Math.abs(places.saidBegins) < 2 && places.saidEnds, 'a sentence begins on the right, and ends on the left: ' + JSON.stringify(places));
    equal(places.boxLines, [null, 'rtl', 'rtl'], 'the lines of a box');
    const sides = await page.evaluate(() => [...document.querySelectorAll('.box.selected')].map(box => {
      const right = box.querySelector('rect').getBoundingClientRect().right;
      return [...box.querySelectorAll('text[direction]')].every(e => right - e.getBoundingClientRect().right < 16 && right > e.getBoundingClientRect().right);
    }));
    equal(sides, [true], 'begin at its right side');
    return page;
  },

  // The graph fills its place, and the panels are as wide as the reader wants them.
  async panels() {
    const page = await open('release.html', {options: {viewport: {width: 1440, height: 900}}});
    await settle(page);
    const width = id => page.evaluate(id => Math.round(document.getElementById(id).getBoundingClientRect().width), id);
    const empty = () => page.evaluate(() => {
      const canvas = document.getElementById('canvas').getBoundingClientRect(), boxes = [...document.querySelectorAll('.box')].map(e => e.getBoundingClientRect());
      return [Math.min(...boxes.map(b => b.left)) - canvas.left, canvas.right - Math.max(...boxes.map(b => b.right))].map(Math.round);
    });
    const [left, right] = await empty();
    ok(left < 40 || Math.abs(left - right) < 40, 'nothing is empty beside the graph: ' + [left, right]);

    const before = await width('left');
    await page.focus('#split-left');
    await press(page, 'ArrowRight', 'ArrowRight');
    equal(await width('left'), before + 40, 'by keyboard');
    const handle = await page.locator('#split-inspector').boundingBox();
    const inspector = await width('inspector');
    await page.mouse.move(handle.x + 3, 400);
    await page.mouse.down();
    await page.mouse.move(handle.x - 97, 400, {steps: 4});
    await page.mouse.up();
    ok(Math.abs(await width('inspector') - inspector - 100) < 5, 'by mouse: ' + inspector + ' became ' + await width('inspector'));
    await page.focus('#split-left');
    await press(page, 'Enter');
    equal(await width('left'), before, 'and back');

    await page.focus('#outline');
    await press(page, 'w');
    await settle(page);
    equal(await width('middle'), 1440, 'the graph alone');
    await press(page, 'w');
    equal(await width('left'), before, 'and everything again');
    return page;
  },

  async folds() {
    const page = await open('release.html', {hash: '#n7'});
    equal((await rows(page)).slice(3, 6), ['n3', 'n7', 'n8'], 'a fan is one row');
    ok((await content(page, '.row.grave .text')).startsWith('run_tests, read_file, search_issues'), 'and names its tools');
    await press(page, 'ArrowRight');
    equal((await rows(page)).slice(3, 9), ['n3', 'n7', 'n4', 'n5', 'n6', 'n8'], 'that opens');
    equal(await page.getAttribute('#row4', 'aria-expanded'), 'true', 'and says so');
    await press(page, 'j', 'ArrowLeft');
    equal(await selected(page), 'n7', '← leads to the fan');
    await press(page, 'ArrowLeft');
    equal((await rows(page)).slice(3, 6), ['n3', 'n7', 'n8'], 'and closes it');
    await press(page, 'Enter');
    equal((await rows(page)).length, 16, 'Enter opens it, too');
    return page;
  },

  async search() {
    const page = await open('release.html', {hash: '#n0'});
    await press(page, '/');
    await page.keyboard.type('COMPACTION');
    // A page searches when nothing is typed for a moment: what it found for the first letters may still be there.
    await page.waitForFunction(() => document.getElementById('found').textContent === '7 matches, 1 elsewhere');
    equal(await rows(page), ['4 nodes hidden', 'n4', 'n5', 'n6', '1 node hidden', 'n8', 'n9', '1 node hidden', 'n22', '6 nodes hidden'], 'rows');
    await press(page, 'Enter');
    equal(await selected(page), 'n4', 'Enter goes to the first');
    await press(page, 'Escape');
    equal(await page.evaluate(() => document.activeElement.id), 'outline', 'Escape leaves the field');
    await press(page, 'n', 'n', 'n');
    equal(await selected(page), 'n8', 'n goes on');
    await press(page, 'N');
    equal(await selected(page), 'n6', 'N goes back');
    await press(page, 'Escape');
    ok(!(await rows(page)).some(row => row.includes('hidden')), 'Escape ends the search');
    return page;
  },

  async found() {
    const page = await open('release.html', {hash: '#n0'});
    const list = () => page.evaluate(() => [...document.querySelectorAll('.match')].map(e => [...e.children].map(line => line.textContent)));
    const marks = () => page.evaluate(() => [...document.querySelectorAll('.match mark')].map(e => e.textContent));

    await press(page, '/');
    await page.keyboard.type('COMPACTION');
    await settle(page);
    equal(await content(page, '#found-note'), '7 matches of “compaction”', 'how many');
    equal((await list()).map(([head]) => head.split(' ')[0]), ['n4', 'n5', 'n6', 'n8', 'n9', 'n12', 'n22'], 'a flat list');
    ok((await marks()).length === 7 && (await marks()).every(mark => mark.toLowerCase() === 'compaction'), 'each with its match marked: ' + await marks());
    ok((await list())[5][0].includes('sub-agent: review'), 'in sub-agents, too: ' + (await list())[5][0]);

    await press(page, 'ArrowDown', 'j', 'j');
    equal(await selected(page), 'n5', '↓ leads to the list');
    await page.click('.match >> nth=5');
    equal([await selected(page), await content(page, '#crumbs')], ['n12', 'conversation › review n9'], 'a click leads there');
    ok(await page.evaluate(() => [...CSS.highlights.get('found')].map(String).join()) === 'compaction', 'and the inspector marks it');
    await press(page, 'Escape');
    ok(!await page.isVisible('#found-view') && await page.isVisible('#canvas'), 'Escape leads back to the graph');
    equal(await page.evaluate(() => document.activeElement.id), 'outline', 'and the outline');

    const hits = async query => { await page.fill('#search', query); await settle(page); return (await list()).map(([head]) => head.split(' ')[0]); };
    equal(await hits('n15'), ['n15'], 'a number');
    const id = await page.evaluate(() => document.querySelector('.heading .id').firstChild.textContent);
    equal(await hits(id), ['n12'], 'an ID');
    equal(await hits('toolu_01'), ['n4'], 'the ID of a call');
    equal(await hits('tool failed'), ['n4'], 'an error');
    equal(await hits('max_tokens'), ['n30'], 'on another branch');
    ok((await list())[0][0].includes('another branch'), 'and says so');
    equal(await hits('search_issues'), ['n1', 'n3', 'n6'], 'a tool');
    equal((await hits('sonnet')).length, 9, 'a model');

    await page.fill('#search', '');
    await page.setViewportSize({width: 390, height: 844});
    await page.click('#view-outline');
    await page.fill('#search', 'history');
    ok(await page.isVisible('#search'), 'on a small screen the field stays');
    await page.click('#view-found-view');
    ok(await page.isVisible('.match') && await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'until somebody asks for the list');
    return page;
  },

  async filters() {
    const page = await open('release.html', {hash: '#n0'});
    await page.click('#filters button:has-text("tools")');
    equal(await rows(page), ['n0', 'n1', 'n2', 'n3', '4 nodes hidden', 'n8', '2 nodes hidden', 'n22', 'n23', 'n24', '2 nodes hidden', 'n27', 'n28'], 'connectors');
    await page.click('.connector >> nth=0');
    equal((await rows(page)).slice(4, 9), ['4 nodes hidden', 'n4', 'n5', 'n6', 'n7'], 'that open');
    await settle(page);
    ok(await page.evaluate(() => document.querySelectorAll('.box.filtered').length > 0), 'the graph keeps its nodes, dimmed');
    await press(page, 'Escape');
    await page.click('#filters button:has-text("only problems")');
    equal(await rows(page), ['4 nodes hidden', 'n4', '13 nodes hidden'], 'only problems');
    return page;
  },

  async compare() {
    const page = await open('release.html');
    await press(page, '=');
    ok((await content(page, '#compare')).includes('They share 12 nodes, up to n22.'), 'the common ancestor');
    const marks = name => page.evaluate(n => [...document.querySelectorAll('#compare ' + n)].map(e => e.textContent), name);
    equal((await marks('del'))[0], 'first', 'what the left says');
    equal((await marks('ins'))[0], 'second', 'what the right says');
    ok((await marks('.sum'))[0].startsWith('6 nodes, 2 model calls, 1 tool call'), 'totals');
    ok((await marks('.why')).some(why => why.startsWith('max_turns')), 'why one failed: ' + await marks('.why'));
    await page.click('[aria-label="swap sides"]');
    equal((await marks('del'))[0], 'second', 'swapped');
    await press(page, 'Escape');
    ok(!await page.isVisible('#compare'), 'Escape ends it');
    return page;
  },

  async 'sub-agents'() {
    const page = await open('release.html', {hash: '#n9'});
    await press(page, 'Enter');
    equal(await content(page, '#crumbs'), 'conversation › review n9', 'the way');
    equal(await rows(page), ['n10', 'n11', 'n12', 'n13', 'n18', 'n19', 'n20'], 'the reviewer');
    await page.evaluate(() => { location.hash = '#n15'; });
    await page.waitForFunction(() => document.querySelector('.heading a')?.textContent === 'n15');
    await press(page, 'Enter');
    equal(await content(page, '#crumbs'), 'conversation › review n9 › history n15', 'further in');
    equal(await rows(page), ['n16', 'n17'], 'whom it asked');
    await press(page, 'Backspace');
    equal(await selected(page), 'n15', 'back');
    await press(page, 'Backspace');
    equal(await selected(page), 'n9', 'and back');
    ok(!await page.isVisible('#crumbs'), 'outside');
    return page;
  },

  async 'deep links'() {
    const page = await open('release.html', {hash: '#n19'});
    equal(await selected(page), 'n19', 'a number');
    equal(await content(page, '#crumbs'), 'conversation › review n9', 'in a sub-agent');

    const id = await page.evaluate(() => document.querySelector('.heading .id').firstChild.textContent);
    await page.evaluate(() => { location.hash = '#n0'; });
    await page.waitForFunction(() => document.querySelector('.heading a').textContent === 'n0');
    await page.evaluate(name => { location.hash = '#' + name; }, id);
    await page.waitForFunction(() => document.querySelector('.heading a').textContent === 'n19');

    await press(page, 'j');
    await page.waitForFunction(() => document.querySelector('.heading a').textContent === 'n20');
    const next = await page.evaluate(() => document.querySelector('.heading .id').firstChild.textContent);
    await page.waitForFunction(name => location.hash === '#' + name, next); // the address follows, by the id
    equal(await page.evaluate(() => document.querySelector('.heading a').getAttribute('href')), '#' + next, 'and so does the link');

    await page.click('#share summary');
    await page.click('.menu button:has-text("Copy link")');
    equal(await page.evaluate(() => window.seen.copied), [page.url().split('#')[0] + '#' + next], 'and the copied one');
    await page.click('#share summary');

    const address = n => page.waitForFunction(want => document.querySelector('.heading a').textContent === want && location.hash === '#' + document.querySelector('.heading .id').firstChild.textContent, n);
    await press(page, '2', 'Home');
    await address('n19'); // from the table of calls
    await press(page, '3', 'Home', 'j', 'ArrowRight');
    await address('n4'); // from the timeline
    await press(page, '/');
    await page.keyboard.type('max_tokens');
    await press(page, 'ArrowDown', 'j');
    await address('n30'); // from what was found

    const odd = await open('release.html', {hash: '#%%%<script>'});
    equal(await selected(odd), 'n4', 'what is no link is none');
    await odd.context().close();
    return page;
  },

  async calls() {
    const page = await open('release.html', {hash: '#n0'});
    const table = () => page.evaluate(() => [...document.querySelectorAll('#call-rows .callrow')].map(row => [...row.children].map(cell => cell.textContent)));
    const column = async i => (await table()).map(cells => cells[i]);
    await press(page, '2');
    equal((await column(0)).slice(0, 4), ['n19', 'n30', 'n3', 'n13'], 'the dearest calls come first');
    equal((await table())[1].slice(2), ['✕ ', '0.0173', '1.4 s', '131', '2.0k', '240', '1.0k'], 'one of them'); // 131·3 + 1,024·15 + 2,020·0.3 + 240·3.75 millionths
    ok((await table())[1][1].startsWith('claude-sonnet-4-5 the response ended: max_tokens'), 'says why it failed');
    await press(page, 'Home', 'j', 'j');
    equal(await selected(page), 'n3', 'the keys go through the table, and the inspector follows');
    equal(await page.evaluate(() => document.querySelector('.row[aria-selected=true] .number').textContent), 'n3', 'as does the outline');
    equal(await page.evaluate(() => document.getElementById(document.getElementById('calls-grid').getAttribute('aria-activedescendant')).firstChild.textContent), 'n3', 'and the active row');
    for (const [name, first] of [['out', 'n30'], ['in', 'n9'], ['cached', 'n27'], ['failed', 'n4'], ['took', 'n9']]) {
      await page.click('.callhead button:text-is("' + name + '")');
      equal((await column(0))[0], first, 'most of ' + name);
    }
    await press(page, 'S');
    equal([(await column(0))[0], await page.getAttribute('.col-ms[role=columnheader]', 'aria-sort')], ['n14', 'ascending'], 'S turns it round');

    await page.click('#calls button:text-is("by model")');
    equal(await table(), [['claude-sonnet-4-5', '9', '✕ 1', '0.0813', '16 s', '3.4 s', '7.9k', '9.9k', '2.5k', '3.0k']], 'by model');
    await press(page, 'b');
    equal(await column(0), ['review', 'run_tests', 'history', 'search_issues', 'read_file'], 'by tool, the slowest first');
    equal((await table())[1].slice(1, 6), ['2', '✕ 1', '', '18 s', '9.1 s'], 'run_tests');
    await press(page, 'b');
    equal(await table(), [['main conversation', '11', '✕ 2', '0.0523', '', '', '2.7k', '9.9k', '2.5k', '2.1k'], ['sub-agent: review', '4', '', '0.0274', '22 s', '22 s', '5.0k', '0', '0', '830'],
      ['sub-agent: history', '1', '', '0.00156', '6.2 s', '6.2 s', '220', '0', '0', '60']], 'by sub-agent');
    await press(page, 'j', 'Enter');
    equal(await column(0), ['n14', 'n13', 'n19', 'n15'], 'Enter shows the calls of one, sorted as before');
    await press(page, 'Home');
    equal(await content(page, '#crumbs'), 'conversation › review n9', 'which the outline follows');
    await press(page, 'Escape');
    equal((await table()).length, 3, 'Escape leads back to the totals');
    await press(page, 'Escape', '1');
    ok(await page.isVisible('#canvas') && !await page.isVisible('#calls'), 'the graph again');

    await page.setViewportSize({width: 390, height: 844});
    equal(await page.evaluate(() => [...document.querySelectorAll('#views button')].filter(e => e.checkVisibility()).map(e => e.textContent)), ['Outline', 'Graph', 'Calls', 'Timeline', 'Cache'], 'all views on a small screen');
    await page.click('#view-calls');
    ok(await page.isVisible('#calls-grid') && await page.isVisible('#inspector') && !await page.isVisible('#outline'), 'the table in place of the outline');
    ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'within 390 pixels');
    await page.click('#view-outline');
    ok(await page.isVisible('#outline') && !await page.isVisible('#calls-grid'), 'and the outline again');
    return page;
  },

  async timeline() {
    const page = await open('release.html', {hash: '#n4'});
    await press(page, '3');
    const turns = () => page.evaluate(() => [...document.querySelectorAll('.turn')].map(turn => turn.querySelector('.number').textContent + ' ' + [...turn.querySelectorAll('.bar')].map(bar => bar.dataset.n).join(' ')));
    equal(await turns(), ['n2 n2', 'n3 n3 n4 n5 n6', 'n8 n8 n9', 'n12 n12', 'n13 n13 n14 n15', 'n16 n16', 'n17 n17', 'n19 n19', 'n20 n20', 'n22 n22', 'n23 n23', 'n24 n24 n25', 'n27 n27', 'n28 n28'], 'a row a turn, sub-agents below their call');
    const bar = n => page.evaluate(name => { const e = document.querySelector('.bar[data-n=' + name + ']'), box = e.getBoundingClientRect(); return {x: box.left, end: box.right, y: box.top, w: box.width, text: e.title, classes: [...e.classList]}; }, n);
    const [asked, tests, read, review, inner] = [await bar('n3'), await bar('n4'), await bar('n5'), await bar('n9'), await bar('n15')];
    ok(Math.abs(tests.x - read.x) < 1 && tests.y < read.y, 'calls side by side begin together, in lanes of their own');
    ok(asked.end <= tests.x + 1, 'and after the response');
    ok(inner.x > review.x && inner.end < review.end, 'a sub-agent works within its call');
    ok(Math.abs((tests.end - tests.x) / (review.end - review.x) - 8.4 / 21.7) < 0.02, 'bars have the length of their time');
    equal(tests.text, 'run_tests, n4, after 1.3 s, waited 20 ms, took 8.4 s, tool failed', 'what a bar says');
    ok(tests.classes.includes('grave') && !read.classes.includes('grave'), 'a failure is seen');
    ok((await page.evaluate(() => [...document.querySelectorAll('.tick.idle')].map(e => e.textContent))).join().includes('⋯ 4 min 0 s'), 'a pause is cut short, and says how long it was');

    await page.click('.bar[data-n=n15]');
    equal([await selected(page), await content(page, '#crumbs')], ['n15', 'conversation › review n9'], 'a click selects, and the outline follows');
    equal((await turns()).length, 14, 'the timeline stays');
    await press(page, '3', 'Home', 'j', 'ArrowRight', 'ArrowRight');
    equal(await selected(page), 'n5', 'the keys go through rows and bars');
    equal(await page.evaluate(() => document.querySelector('.bar.selected').dataset.n), 'n5', 'and the bar is marked');
    const before = (await bar('n4')).w;
    await press(page, '+', '+');
    ok((await bar('n4')).w > 2 * before, '+ zooms');
    await press(page, '0');
    ok(Math.abs((await bar('n4')).w - before) < 1, '0 shows all rows again');
    await press(page, 'j', 'Enter');
    equal((await turns()).slice(0, 4), ['n2 n2', 'n3 n3 n4 n5 n6', 'n8 n8 n9', 'n22 n22'], 'Enter folds a sub-agent');
    await page.evaluate(() => { location.hash = '#n17'; });
    await page.waitForFunction(() => document.querySelector('.bar.selected')?.dataset.n === 'n17');

    await page.setViewportSize({width: 390, height: 844});
    await settle(page);
    ok(await page.isVisible('#timeline-list') && await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'it fits into 390 pixels');
    const untimed = await open('2000.html');
    await press(untimed, '3');
    ok((await content(untimed, '#timeline-note')).endsWith('; ◇ how long a call took is unknown: it stands where its node was made'), 'what is unknown is said');
    equal(await untimed.evaluate(() => document.querySelectorAll('.bar:not(.unknown)').length), 0, 'and no bar has a length');
    await untimed.context().close();
    return page;
  },

  async cache() {
    const page = await open('broken.html', {hash: '#n6'});
    await press(page, '4');
    equal(await page.evaluate(() => [...document.querySelectorAll('.column')].filter(e => e.classList.contains('broke')).map(e => e.dataset.n)), ['n9', 'n15'], 'broken prefixes are red');
    equal(await page.evaluate(() => document.querySelector('#cache-breaks li pre').textContent.slice(0, 24)), 'Today is MondayTuesday. ', 'and what changed in the prompt is marked');

    const heights = n => page.evaluate(name => [...document.querySelectorAll('.column[data-n=' + name + '] > :is(.input, .written, .read, .estimate)')].map(e => [e.className, Math.round(e.getBoundingClientRect().height)]), n);
    const [[, input], [, written], [, read]] = await heights('n6');
    ok(input < 3 && written < 5 && read > 90, 'most was read from the cache: ' + [input, written, read]);
    equal((await heights('n9')).map(([name]) => name), ['input'], 'and nothing of it where the prefix was broken');
    equal((await heights('n21')).map(([name]) => name), ['estimate'], 'what is unknown has no parts');
    equal(await content(page, '#cache-note'), '12 requests; 73 % of the input was read from the cache; ✕ 2 broken prefixes', 'in words');

    await press(page, 'b');
    equal([await selected(page), await content(page, '#cache-said')], ['n9', 'n9 0 of 2,092 tokens predicted, 0 read: system prompt 1 changed (n7)'], 'b leads to the first, and says why');
    ok((await content(page, '.facts')).includes('system prompt 1 changed'), 'as does the inspector');
    await page.click('#cache-said .link >> nth=1');
    ok((await content(page, '#detail')).includes('Today is Tuesday.'), 'a link leads to the cause');

    await press(page, '4', 'b', 'b', 'ArrowRight');
    equal(await selected(page), 'n17', 'keys');
    equal(await page.evaluate(() => [...document.querySelectorAll('.row .badge')].filter(e => e.textContent === '✕ cache').length), 2, 'the outline marks them');

    await page.setViewportSize({width: 390, height: 844});
    await settle(page);
    ok(await page.isVisible('#cache-strip') && await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'it fits into 390 pixels');
    return page;
  },

  async problems() {
    const page = await open('release.html', {hash: '#n0'});
    const walk = [];
    for (const key of ['e', 'e', 'e', 'e', 'E', 'E']) {
      await press(page, key);
      walk.push(await selected(page) + ' ' + await content(page, '.troubles'));
    }
    equal(walk, ['n4 tool failed', 'n30 the response ended: max_tokens', 'n31 the run ended: max_turns', 'n4 tool failed', 'n31 the run ended: max_turns',
      'n30 the response ended: max_tokens'], 'e and E');
    equal(await content(page, '#status'), '2 of 3: the response ended: max_tokens', 'status');
    return page;
  },

  async inspector() {
    const page = await open('release.html', {hash: '#n24'});
    ok((await content(page, '.facts')).includes('claude-sonnet-4-5 (anthropic)'), 'model');
    ok((await content(page, '.facts')).includes('130 in, 96 out, 2.0k read from cache, 240 written to cache'), 'tokens');
    ok((await content(page, '.facts')).includes('0.00334'), 'cost'); // 130·3 + 96·15 + 2,020·0.3 + 240·3.75 millionths
    ok((await content(page, '#totals')).endsWith('cost 0.0813'), 'cost of all'); // 7,905·3 + 3,015·15 + 9,920·0.3 + 2,500·3.75 millionths
    equal(await content(page, '.call .code'), '{\n  "package": "./store",\n  "race": true,\n  "timeout_s": 600\n}', 'arguments');
    await page.click('.call .link');
    equal(await selected(page), 'n25', 'the call leads to what carried it out');
    equal(await page.evaluate(() => [...document.querySelectorAll('#detail del, #detail ins')].map(e => e.textContent)), ['600', '120'], 'what ran instead');
    ok((await content(page, '#detail')).includes('timeouts are cut to 120 s'), 'details');
    await page.click('#tab-JSON');
    ok((await content(page, '#detail .code')).includes('"kind": "tool_execution"'), 'saved form');
    await page.evaluate(() => { location.hash = '#n7'; });
    await page.click('#tab-Says');
    equal(await page.evaluate(() => document.querySelectorAll('.calls tr').length), 3, 'results');
    await page.evaluate(() => { location.hash = '#n28'; });
    await page.waitForFunction(() => document.querySelector('.heading a').textContent === 'n28');
    ok((await content(page, '.facts')).includes('0.0412'), 'cost');
    return page;
  },

  async request() {
    const page = await open('release.html', {hash: '#n27'});
    await page.click('#tab-Request');
    await page.waitForSelector('#detail .fresh');
    ok(/The first \d\d % are as in the call before, n24\./.test(await content(page, '#detail')), 'what is shared');
    ok((await content(page, '#detail .fresh')).includes('"tool_result"'), 'what is new');
    ok(!(await content(page, '#detail .fresh')).includes('We want to release'), 'and only that');
    await page.click('#detail button:has-text("Copy")');
    equal(await page.evaluate(() => window.seen.copied), [text('request.json')], 'the request, byte for byte');
    await page.click('#detail input');
    equal(await page.evaluate(() => [...document.querySelectorAll('#detail pre')].map(e => e.textContent).join('')), text('request.json'), 'and as it is shown');

    // A request that a thousand others lead to, and one in their middle.
    const long = await open('chain.html');
    for (const [node, body] of JSON.parse(text('chain.json'))) {
      await long.evaluate(name => { location.hash = '#' + name; }, node);
      await long.waitForFunction(name => document.querySelector('.heading a').textContent === name, node);
      await long.click('#tab-Request');
      await long.waitForSelector('#detail .fresh');
      await long.evaluate(() => { window.seen.copied = []; });
      await long.click('#detail button:has-text("Copy")');
      ok((await long.evaluate(() => window.seen.copied[0])) === body, 'the request of ' + node + ', byte for byte');
    }
    await long.context().close();
    return page;
  },

  async 'long texts'() {
    const page = await open('long.html', {hash: '#n1'});
    await page.click('#tab-Request');
    await page.waitForSelector('#detail .more');
    ok((await content(page, '#detail .more')).startsWith('show all 13,'), 'the request is cut until somebody asks');
    await page.click('#tab-JSON');
    await page.evaluate(() => { location.hash = '#n0'; });
    await page.click('#tab-Says');
    equal(await content(page, '#detail .more'), 'show all 13,000,000 characters', 'so is the text');
    await page.evaluate(() => { location.hash = '#n2002'; });
    await page.waitForSelector('.calls');
    equal(await page.evaluate(() => document.querySelectorAll('.calls tr').length), 200, 'calls in the table');
    ok((await content(page, '#detail')).includes('and 1,800 more calls'), 'and how many more there are');
    await press(page, '/');
    await page.keyboard.type('long text');
    await page.waitForFunction(() => document.getElementById('found').textContent !== '2,003 matches'); // the search waits for a pause
    equal(await content(page, '#found'), '1 match', 'it is searched');
    return page;
  },

  async copies() {
    const page = await open('release.html');
    const isOpen = () => page.evaluate(() => document.getElementById('share').open);
    for (const [i, form] of ['mermaid', 'json'].entries()) {
      await page.click('#share summary');
      await page.click('[data-copy="all ' + form + '"]');
      await page.waitForFunction(n => window.seen.copied.length === n && !document.getElementById('share').open, i + 1);
    }
    await page.click('#share summary');
    await page.mouse.click(200, 880);
    equal(await isOpen(), false, 'a click elsewhere closes the menu');
    await page.click('#share summary');
    await page.focus('#outline');
    await press(page, 'Escape');
    equal(await isOpen(), false, 'and so does Escape, wherever the focus is');
    await page.click('#share summary');
    const copied = await page.evaluate(() => window.seen.copied);
    for (const [i, name] of ['release.mmd', 'release.json'].entries()) ok(copied[i] === text(name), name + ' is copied as it is');
    ok(await downloaded(page, 'conversation.json', () => page.click('.menu button:has-text("Download JSON")')) === text('release.json'), 'and downloaded');

    // A diagram that is not in the page: the way out, by keyboard and by mouse. The test draws the JSON.
    const large = await open('tangled.html');
    await large.evaluate(() => {
      const later = setTimeout;
      window.setTimeout = (f, ms) => { window.seen.delay = ms; return later(f, ms); };
      document.getElementById('outline').focus();
    });
    const refused = () => large.waitForFunction(() => document.getElementById('status').textContent.startsWith('Not copied: too large for'));
    const way = 'copy it as JSON, save that as copied.json, and draw it with "plait render --as svg copied.json"';
    await press(large, 'y', 'Enter');
    await refused();
    ok((await content(large, '#status')).endsWith(way), 'what to do');
    ok(await large.evaluate(() => window.seen.delay) > 20000, 'it stays until it is read and written down');
    await press(large, 'ArrowRight', 'Enter');
    await large.waitForFunction(() => window.seen.copied.length === 1);
    await press(large, 'y');
    await large.click('[data-copy="all mermaid"]');
    await refused();
    await large.click('[data-copy="all json"]');
    await large.waitForFunction(() => window.seen.copied.length === 2);
    const [byKey, byMouse] = await large.evaluate(() => window.seen.copied);
    equal(byKey, byMouse, 'the conversation');
    writeFileSync(path.join(dir, 'copied.json'), byKey);
    await large.context().close();
    return page;
  },

  // parts copies each part from each node, for the test to read.
  async parts() {
    const page = await open('shared.html');
    const parts = await page.evaluate(async () => {
      const parts = [];
      const outline = document.getElementById('outline');
      const key = name => outline.dispatchEvent(new KeyboardEvent('keydown', {key: name, bubbles: true}));

      for (let n = 0; n < 1000; n++) {
        location.hash = '#n' + n;
        await new Promise(done => setTimeout(done, 20));
        if (document.querySelector('.heading a').textContent !== 'n' + n) break; // there are no more
        if (document.getElementById('share').open) key('y');
        key('y');

        const end = [...document.querySelectorAll('.row')].pop().querySelector('.number').textContent;
        for (const kind of ['up', 'from', 'subtree']) {
          window.seen.copied = [];
          document.querySelector('[data-copy="' + kind + ' json"]').click();
          for (let i = 0; i < 100 && !window.seen.copied.length; i++) await new Promise(done => setTimeout(done, 1));
          parts.push({N: 'n' + n, End: end, Kind: kind, JSON: window.seen.copied[0] ?? document.getElementById('status').textContent});
        }
      }
      return parts;
    });
    writeFileSync(path.join(dir, 'parts.json'), JSON.stringify(parts));
    page.info = parts.length + ' parts';

    // By keyboard alone.
    await page.evaluate(() => { location.hash = '#n3'; window.seen.copied = []; document.getElementById('share').open = false; document.getElementById('outline').focus(); });
    await page.waitForFunction(() => document.querySelector('.heading a').textContent === 'n3');
    await press(page, 'y', 'ArrowDown', 'ArrowDown', 'ArrowDown', 'ArrowRight', 'Enter');
    await page.waitForFunction(() => window.seen.copied.length === 1);
    const known = parts.find(part => part.N === 'n3' && part.Kind === 'subtree').JSON;
    const uuid = /[0-9a-f]{8}-[0-9a-f-]{27}/g;
    equal((await page.evaluate(() => window.seen.copied[0])).replace(uuid, ''), known.replace(uuid, ''), 'a subtree, by keyboard');
    equal(await content(page, '#status'), 'Copied: subtree of n3 as JSON.', 'and it says so');

    await press(page, 'Escape');
    equal(await page.evaluate(() => [document.activeElement.id, document.getElementById('share').open]), ['outline', false], 'Escape leaves the menu');
    await page.setViewportSize({width: 390, height: 844});
    await press(page, 'y');
    equal(await page.evaluate(() => [...document.querySelectorAll('.menu button, .menu span')].filter(e => { const box = e.getBoundingClientRect(); return box.left < 0 || box.right > innerWidth; }).map(e => e.textContent)),
      [], 'all of it is on a small screen');
    return page;
  },

  // curl gives the copied command to a shell, with a curl that only writes down what it gets.
  async curl() {
    const page = await open('shared.html', {hash: '#n3'});
    await press(page, 'y', 'End', 'ArrowUp', 'ArrowUp', 'Enter');
    await page.waitForFunction(() => window.seen.copied.length === 1);
    await press(page, 'Escape');
    await page.click('#tab-Request');
    await page.waitForSelector('#detail .toolbar');
    await page.click('#detail button:text-is("Copy")');
    await page.click('#detail button:has-text("cURL")');
    await page.waitForFunction(() => window.seen.copied.length === 3);
    const [command, body, again] = await page.evaluate(() => window.seen.copied);
    equal(command, again, 'the menu and the request copy the same');
    ok(body.startsWith('@{') && body.includes('touch pwned'), 'a hostile body');

    await page.click('#tab-Says');
    await press(page, ']'); // a response of another API, with a hostile model
    await press(page, 'y', 'End', 'ArrowUp', 'ArrowUp', 'Enter');
    await page.waitForFunction(() => window.seen.copied.length === 4);

    const run = (command, env) => {
      const folder = mkdtempSync(path.join(dir, 'curl-'));
      writeFileSync(path.join(folder, 'curl'), '#!/bin/sh\nfor a; do printf "%s\\n" "$a"; done > args\ncat > body\n', {mode: 0o755});
      execFileSync('/bin/sh', ['-c', command], {cwd: folder, env: {PATH: folder + ':/usr/bin:/bin', ...env}, stdio: 'pipe'});
      equal(readdirSync(folder).sort(), ['args', 'body', 'curl'], 'nothing else ran');
      equal(readFileSync(path.join(folder, 'body'), 'utf8'), body, 'the exact body arrives');
      return readFileSync(path.join(folder, 'args'), 'utf8').trimEnd().split('\n');
    };
    equal(run(await page.evaluate(() => window.seen.copied[3]), {GEMINI_API_KEY: 'the key', GOOGLE_GEMINI_BASE_URL: 'http://127.0.0.1:1'}), ['-sS',
      'http://127.0.0.1:1/v1beta/models/m%22%24%28touch%20pwned%29%60id%60%27%21%2F..%2Fx%3Fkey%3Dy:generateContent', '-H', 'Content-Type: application/json', '-H', 'x-goog-api-key: the key', '--data-binary', '@-'],
    'a model is a part of the address and nothing else');
    equal(run(command, {ANTHROPIC_API_KEY: 'the key'}), ['-sS', 'https://api.anthropic.com/v1/messages', '-H', 'Content-Type: application/json', '-H', 'x-api-key: the key',
      '-H', 'anthropic-version: 2023-06-01', '--data-binary', '@-'], 'and the key, from the environment');
    return page;
  },

  async dark() {
    const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const [white, black] = ['rgb(255, 255, 255)', 'rgb(22, 24, 28)'];
    let page = await open('release.html', {options: {colorScheme: 'dark'}});
    equal(await back(), black, 'as the system has it');
    await page.click('#theme');
    equal(await back(), white, 'light');
    await page.reload();
    equal(await back(), white, 'still');
    await page.context().close();

    page = await open('release.html');
    equal(await back(), white, 'as another system has it');
    await page.click('#theme');
    await page.click('#theme');
    equal(await back(), black, 'dark');
    return page;
  },

  async contrast() {
    let page;
    const poor = [];
    for (const [name, ...keys] of [['release.html', '2'], ['release.html', '2', 'b', 'b'], ['release.html', '3'], ['broken.html', '4', 'b'], ['reading.html', 'j'], ['branches.html', '='], ['release.html', 'r'], ['release.html', '/', 'c', 'o', 'ArrowDown', 'j']]) {
      for (const colorScheme of ['light', 'dark']) {
        await page?.context().close();
        page = await open(name, {options: {colorScheme}});
        await press(page, ...keys);
        await settle(page);
        poor.push(...(await page.evaluate(tooPale)).map(what => colorScheme + ' ' + name + ' ' + keys + ': ' + what));
      }
    }
    equal([...new Set(poor)], [], 'text of too little contrast (WCAG AA, 4.5)');
    return page;
  },

  async print() {
    const page = await open('release.html', {options: {colorScheme: 'dark'}});
    if (!inFirefox) { // Playwright cannot show a page as it is on paper in Firefox
      await page.emulateMedia({media: 'print'});
      await page.waitForSelector('#paper section'); // the page hears of the change a moment later
      ok(!await page.isVisible('#outline') && await page.isVisible('#paper'), 'nothing else');
      ok(await page.evaluate(() => getComputedStyle(document.querySelector('#paper .mono')).fontFamily.includes('mono')), 'what a tool returned is in a monospaced font');
    }
    const {texts: [paper], bytes} = await printed(page, '#paper');
    for (const words of ['We want to release 2.4 today.', '--- FAIL: TestCompaction', 'Take the first way', 'tag 2.4 after the changelog', 'n28 stop']) ok(paper.includes(words), words);
    ok(bytes > 10000, 'a PDF');
    if (!inFirefox) await page.emulateMedia({media: 'screen'});
    equal(await page.evaluate(() => document.getElementById('paper').childElementCount), 0, 'the paper is put away');
    return page;
  },

  async motion() {
    const moving = page => page.evaluate(() => { document.body.classList.add('running'); document.querySelector('.live-only').hidden = false; return document.getAnimations().length; });
    const moves = await open('release.html');
    equal(await moving(moves), 1, 'one thing moves');
    await moves.context().close();
    const page = await open('release.html', {options: {reducedMotion: 'reduce'}});
    equal(await moving(page), 0, 'and nothing for those who want it so');
    return page;
  },

  async hostile() {
    const page = await open('hostile.html');
    const said = JSON.parse(text('hostile.json'));
    const wrong = await page.evaluate(async all => {
      const wrong = [];
      for (const {n, text} of all) {
        location.hash = '#n' + n;
        await new Promise(done => addEventListener('hashchange', () => setTimeout(done), {once: true}));
        const shown = document.querySelector('#detail .said')?.textContent;
        if (shown !== text) wrong.push([n, text, shown]);
      }
      return wrong;
    }, said.slice(1));
    equal(wrong, [], 'every text is shown letter for letter');

    for (const {text} of said.slice(0, 40)) await page.fill('#search', text.replace(/[\r\n]+/g, ' '));
    await press(page, 'Escape', 'Escape', '=');
    ok(await page.isVisible('#compare'), 'compared');
    await press(page, 'Escape');

    await page.click('#tab-JSON');
    const {texts: paper} = await printed(page, '#paper .said');
    const want = said.map(s => s.text);
    equal(want.filter((t, i) => paper[i] !== t), [], 'and on paper');
    page.info = said.length + ' texts';
    return page;
  },

  async 'hostile names'() {
    const page = await open('names.html');
    const n = await page.evaluate(async () => {
      let n = 0;
      for (document.getElementById('outline').focus(); ; n++) {
        const number = () => document.querySelector('.heading a').textContent;
        const before = number();
        document.getElementById('outline').dispatchEvent(new KeyboardEvent('keydown', {key: 'j', bubbles: true}));
        if (number() === before) return n;
        if (n % 7 === 0) document.getElementById('tab-JSON').click();
        if (n % 7 === 3) document.getElementById('tab-Says').click();
      }
    });
    ok(n > 5, 'the whole path was walked');

    // Every view has such a text, or a title that has.
    const shows = async css => {
      await page.waitForFunction(css => [...document.querySelectorAll(css)].some(e => e.checkVisibility() && (e.textContent.includes('<script>') || e.querySelector('[title*="<script>"]'))), css)
        .catch(() => { throw new Error('no hostile text in ' + css); });
    };
    await page.click('#tab-Request');
    await shows('#detail pre');
    await page.fill('#search', '<script>');
    await shows('#found-view');
    await press(page, 'Enter');

    const answer = '#n' + (Number((await selected(page)).slice(1)) + 1); // the found one is a system prompt
    for (const [view, css] of [['1', '#boxes text'], ['2', '#calls-grid'], ['3', '#timeline-list'], ['4', '#cache']]) {
      await page.waitForFunction(() => location.hash === '#' + document.querySelector('.heading .id').firstChild.textContent); // it follows
      await page.evaluate(hash => { location.hash = hash; }, answer);
      await page.waitForFunction(hash => '#' + document.querySelector('.heading a').textContent === hash, answer);
      await press(page, 'Escape', view);
      await shows(css);
      await press(page, 'End', 'k', 'Home');
    }

    await press(page, '2');
    for (const totals of ['model', 'tool', 'sub-agent']) {
      await page.click('#calls button:text-is("by ' + totals + '")');
      await shows('#call-rows');
    }

    await press(page, '1', '0');
    await settle(page);
    await printed(page, '#paper');
    page.info = n + ' nodes';
    return page;
  },

  async reading() {
    const page = await open('reading.html', {hash: '#n1'});
    const texts = selector => page.evaluate(s => [...document.querySelectorAll('#detail ' + s)].map(e => e.textContent), selector);
    equal(await texts('.said'), ['I edit it:\n\n```go\nfunc main() {}\n```\nThen `go test`.'], 'a text keeps every letter');
    equal(await texts('.fence:not(.mark)'), ['func main() {}\n'], 'fenced code stands out');
    ok(await page.evaluate(() => getComputedStyle(document.querySelector('.fence:not(.mark)')).fontFamily.includes('mono')), 'in a monospaced font');
    equal(await texts('.line'), ['  func main() {\n', '- \tprintln(1)\n', '+ \tprintln(2)\n', '+ \tprintln(3)\n', '  }\n', '- a\n', '+ b\n'], 'replacements are differences');
    equal(await texts('.call h3'), ['old_string → new_string', 'edits 1', 'oldText → newText', 'content'], 'each argument is shown once');
    equal(await texts('.linediff del'), ['- \tprintln(1)\n', '- a\n'], 'what goes');
    equal((await texts('.call .code:not(.linediff)')).slice(0, 1), ['{\n  "path": "main.go",\n  "replace_all": false\n}'], 'other arguments are JSON');
    ok((await texts('.call .code')).includes('package main\n\n<b>no markup</b>\n'), 'an argument of several lines is text');

    equal((await texts('.call .code:not(.linediff)'))[2], '{\n  "__proto__": {\n    "path": "a"\n  },\n  "path": "b.go"\n}', 'whatever an argument is called');
    await page.evaluate(() => { location.hash = '#n4'; });
    await page.waitForFunction(() => document.querySelector('.heading a').textContent === 'n4');
    const said = (await texts('.outcome .said'))[0];
    ok(said.startsWith('{"rows":[{"id":0'), 'a result is the text that it is');
    await page.click('#detail button:text-is("as JSON")');
    equal((await texts('.tree > details > .inner > *')).length, 2, 'and can be read as JSON');
    equal((await texts('.tree .leaf')).pop(), '"big": 12345678901234567890', 'with its digits');
    await page.click('.tree .inner summary');
    await page.waitForFunction(() => document.querySelectorAll('#detail .tree .inner .inner > *').length === 201);
    await page.click('#detail .tree .more');
    equal((await texts('.tree .inner .inner > details')).length, 300, 'all of it, when somebody asks');
    return page;
  },

  async images() {
    const page = await open('images.html', {hash: '#n0'});
    await page.waitForFunction(() => document.querySelector('#detail img')?.naturalWidth === 1);
    for (const n of [1, 2, 3]) {
      await press(page, 'j');
      equal(await selected(page), 'n' + n, 'the next');
      equal(await page.evaluate(() => document.querySelectorAll('#detail img').length), 0, 'n' + n + ' is named and not shown');
      ok((await content(page, '#detail')).includes('image'), 'named');
    }
    return page;
  },

  // policy does on purpose what must not be possible, so that it is known that it would be seen.
  async policy() {
    const page = await open('release.html');
    const refused = await page.evaluate(async () => {
      const refused = [];
      const attempt = async (name, act) => { try { await act(); } catch { refused.push(name); } };
      await attempt('innerHTML', () => { document.body.innerHTML = '<b>x</b>'; });
      // A debugger's own code may use eval, and what a timer calls is not a debugger's.
      await attempt('eval', () => new Promise((done, fail) => setTimeout(() => { try { done((0, eval)('window.pwned = 1')); } catch (err) { fail(err); } })));
      await attempt('fetch', () => fetch('https://example.org/'));
      await attempt('policy', () => window.trustedTypes.createPolicy('x', {}));

      const script = document.createElement('script');
      await attempt('script', () => { script.textContent = 'window.pwned = 1'; });
      script.append('window.pwned = 1');
      await attempt('insert', () => { document.body.append(script); });

      const style = document.createElement('div');
      style.setAttribute('style', 'color: red');
      document.body.append(style, Object.assign(new Image(), {src: 'https://example.org/x.png'}));
      await new Promise(done => setTimeout(done, 100));
      if (style.style.color !== 'red') refused.push('style');
      return refused;
    });
    equal(refused.filter(name => name !== 'insert'), ['innerHTML', 'eval', 'fetch', 'policy', 'script', 'style'], 'refused');

    const sins = await page.sins();
    for (const what of ['connect-src', 'img-src', 'style-src-attr', 'require-trusted-types-for']) ok(sins.some(sin => sin.startsWith('violation: ' + what)), 'a violation of ' + what + ' is seen: ' + sins);
    ok(sins.some(sin => sin.startsWith('markup: <img')), 'and so is markup: ' + sins);
    ok(!sins.includes('a script ran'), 'and no script ran');

    page.sins = async () => sins.filter(sin => !/^(violation: |markup: |error: Content-Security-Policy: |console: )/.test(sin));
    return page;
  },

  async barriers() {
    const found = [];
    let page;
    const views = {'the graph': ['1'], calls: ['2'], 'by tool': ['b', 'b'], 'by sub-agent': ['b'], timeline: ['3'], cache: ['4'],
      found: ['/', 't', 'e', 'ArrowDown'], request: ['Escape', 'Escape', '1', 'r'], share: ['r', 'y'], keys: ['Escape', '?'], compare: ['Escape', '='], 'a problem': ['Escape', 'e']};
    for (const [width, height] of [[1440, 900], [390, 844]]) {
      for (const name of ['release.html', 'folded.html', 'scripts.html', 'reading.html', 'images.html']) {
        await page?.context().close();
        page = await open(name, {options: {viewport: {width, height}}});
        for (const [view, keys] of Object.entries(name === 'release.html' ? views : {'the page': []})) {
          await press(page, ...keys);
          await settle(page);
          found.push(...(await barriers(page)).map(what => [width, name, view, what].join(', ')));
        }
      }
    }
    equal(found, [], 'what axe finds');
    return page;
  },
  async narrow() {
    const page = await open('release.html', {options: {viewport: {width: 1000, height: 700}}});
    const wide = () => page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
    ok(!await wide(), 'it fits into 1,000 pixels');
    for (const part of ['#outline', '#canvas', '#inspector']) ok(await page.isVisible(part), part);
    await page.setViewportSize({width: 420, height: 800});
    ok(!await wide(), 'it fits into 420 pixels');
    for (const part of ['#outline', '#inspector']) ok(await page.isVisible(part), part);

    // Requests with words that are wider than the window, one that is not known, and one after it.
    const phone = await open('narrow.html', {options: {viewport: {width: 390, height: 844}}});
    const fits = async what => equal(await phone.evaluate(outside, '#inspector, #inspector *'), [], what + ' fits into 390 pixels');
    const show = async (node, words) => {
      await phone.evaluate(name => { location.hash = '#' + name; }, node);
      await phone.waitForFunction(name => document.querySelector('.heading a').textContent === name, node);
      await phone.click('#tab-Request');
      await phone.waitForFunction(words => document.getElementById('detail').textContent.includes(words), words);
    };
    await show('n3', 'as in the call before');
    await phone.click('#detail .shared summary');
    await fits('a request');
    await phone.click('#detail input');
    await fits('its exact form');
    await show('n5', 'no such key');
    await fits('the reason why it is not known');
    await show('n7', 'not compared');
    await fits('the reason why it is not compared');
    await phone.setViewportSize({width: 1200, height: 844});
    await phone.waitForFunction(() => {
      const box = document.querySelector('.box.selected')?.getBoundingClientRect(), canvas = document.getElementById('canvas').getBoundingClientRect();
      return box && box.left >= canvas.left && box.right <= canvas.right;
    }).catch(() => { throw new Error('the graph of a page that was narrow when it was opened is not in view'); });
    equal(await phone.sins(), [], 'narrow.html');
    await phone.context().close();
    return page;
  },

  async roles() {
    const page = await open('release.html');
    equal(await page.evaluate(() => [...document.querySelectorAll('button, input, select, textarea, [role=tree], section, nav')]
      .filter(e => e.checkVisibility() && !e.textContent.trim() && !e.getAttribute('aria-label')).map(e => e.outerHTML)), [], 'everything has a name');
    const tree = await page.evaluate(() => {
      const active = document.getElementById(document.getElementById('outline').getAttribute('aria-activedescendant'));
      return [document.activeElement.getAttribute('role'), active.getAttribute('role'), active.getAttribute('aria-selected'), active.getAttribute('aria-level'),
        active.getAttribute('aria-posinset'), active.getAttribute('aria-setsize'), document.querySelectorAll('[aria-selected=true][role=treeitem]').length];
    });
    equal(tree, ['tree', 'treeitem', 'true', '2', '6', '16', 1], 'the tree');
    equal(await page.getAttribute('#status', 'aria-live'), 'polite', 'status');
    for (let i = 0; i < 12; i++) {
      await press(page, 'Tab');
      const [width, style] = await page.evaluate(() => {
        const e = document.activeElement, s = getComputedStyle(e.dataset.fold ? e.querySelector('rect') : e);
        return e.dataset.fold ? [s.strokeWidth, s.stroke] : [s.outlineWidth, s.outlineStyle];
      });
      const at = await page.evaluate(() => document.activeElement.id || document.activeElement.outerHTML);
      if (at !== 'outline' && !at.startsWith('<body')) ok(parseFloat(width) >= 1 && style !== 'none', 'focus is seen: ' + at);
    }
    return page;
  },

  async 'without JavaScript'() {
    const page = await open('release.html', {options: {javaScriptEnabled: false}});
    ok(await page.isVisible('noscript') && (await page.textContent('noscript p')).includes('JavaScript, which is off'), 'a note');
    return page;
  },

  // A server that is gone without a word is noticed, and what it had sent is not asked for again.
  async 'live silence'() {
    const asked = [];
    const page = await open('live.html', {hash: '#token=sesame', clock: true, server: async (route, request) => {
      const name = new URL(request.url()).pathname.slice(1);
      if (!name) return route.fulfill({contentType: 'text/html; charset=utf-8', body: text('live.html')});
      asked.push(request.headers()['last-event-id'] ?? '');
      const event = 'event: patch\nid: s-' + asked.length + '\ndata: ' + text('patch' + Math.min(asked.length, 2) + '.json').replaceAll('\n', '') + '\n\n';
      if (asked.length < 3) route.fulfill({contentType: 'text/event-stream', body: event + 'event: activity\ndata: {"state":"idle"}\n\n', open: true});
    }});
    await page.waitForSelector('.row');
    await page.clock.fastForward(39000);
    equal(asked, [''], 'a short silence is none');
    await page.clock.fastForward(3000);
    await page.waitForFunction(() => document.getElementById('state').textContent.startsWith('reconnecting'));
    await page.clock.fastForward(1000);
    await page.waitForFunction(() => document.querySelectorAll('.row').length === 4);
    equal(asked, ['', 's-1'], 'it names the last event');
    await page.clock.fastForward(41000);
    await page.clock.fastForward(1000);
    await page.waitForFunction(() => document.getElementById('state').textContent.startsWith('reconnecting'));
    await page.clock.fastForward(41000); // the third request is never answered
    await page.clock.fastForward(2000);
    const deadline = Date.now() + 10000;
    while (asked.length < 4 && Date.now() < deadline) await page.clock.fastForward(1000);
    equal(asked.slice(0, 4), ['', 's-1', 's-2', 's-2'], 'one that is not answered is made again');
    return page;
  },

  // An event is read in time that is in proportion to its size: with 20 MB in small pieces, any other takes minutes.
  async 'long event'() {
    const source = readFileSync(new URL('../../../viz/page/internal/web/assets/live.js', import.meta.url), 'utf8');
    const reading = source.slice(source.indexOf('// readEvents reads'), source.indexOf('// hear takes in'));
    const readEvents = new Function('const silence = 40000;' + reading + '; return readEvents;')();
    const bytes = written => new TextEncoder().encode(written), piece = bytes('x'.repeat(4000)), heard = [];
    const body = new ReadableStream({start(stream) {
      stream.enqueue(bytes('event: patch\r\nid: 7\r\ndata: "'));
      for (let i = 0; i < 5000; i++) stream.enqueue(piece);
      stream.enqueue(bytes('"\r\n\r\n:\n\nevent: a\ndata: 1\ndata: 2\n\n'));
      stream.close();
    }});
    const began = performance.now();
    await readEvents(body, (name, data, id) => heard.push([name, String(data).length, id])).catch(err => heard.push(String(err)));
    const took = Math.round(performance.now() - began);
    equal(heard[0], ['patch', 20000000, '7'], 'the event');
    ok(took < 10000, 'it takes ' + took + ' ms');
    const page = await open('release.html');
    page.info = took + ' ms for 20 MB';
    return page;
  },

  async live() {
    const asked = [];
    let streams = 0, goOn, end;
    const looked = new Promise(done => { goOn = done; }), ended = new Promise(done => { end = done; });
    const page = await open('live.html', {hash: '#token=sesame', server: async (route, request) => {
      const name = new URL(request.url()).pathname.slice(1);
      if (!name) return route.fulfill({contentType: 'text/html; charset=utf-8', body: text('live.html')});
      asked.push([request.method(), name, request.headers().authorization, request.postData()]);
      if (name !== 'events') return route.fulfill({status: request.method() === 'GET' ? 200 : 202, body: 'the bytes of ' + new URL(request.url()).search.slice(0, 6)});

      streams++;
      const event = (kind, data) => 'event: ' + kind + '\ndata: ' + JSON.stringify(data) + '\n\n';
      if (streams > 3) return; // the fourth stays open
      if (streams === 2) await looked;
      if (streams === 3) {
        await ended;
        return route.fulfill({contentType: 'text/event-stream', body: event('activity', {state: 'idle'})});
      }
      return route.fulfill({contentType: 'text/event-stream', body: event('patch', JSON.parse(text(streams === 1 ? 'patch1.json' : 'patch2.json'))) +
        event('activity', streams === 1 ? {state: 'running', turn: 2, begin: true, text: 'A f', tools: [{id: 't', tool: 'look', input: '{"x":1}', started: new Date(Date.now() - 65000).toISOString()}]} : {state: 'running', text: 'ir <b>tree</b>', tools: [{id: 't', ended: true}]})});
    }});

    await page.waitForSelector('.row');
    equal(await selected(page), 'n1', 'it follows the end');
    ok(/A f.*look/.test(await content(page, '#now')), 'what is said, and what runs');
    ok(/1 min [5-9] s/.test(await content(page, '#now .elapsed')), 'for how long: ' + await content(page, '#now .elapsed'));

    goOn();
    await page.waitForFunction(() => document.querySelectorAll('.row').length === 4);
    equal(await selected(page), 'n3', 'after the connection broke it has what is new');
    equal(await content(page, '#now'), 'A fir <b>tree</b>', 'and the words go on, as text');
    equal(asked.filter(a => a[1] === 'events').every(a => a[2] === 'Bearer sesame'), true, 'the token is in a header');

    await press(page, 'k');
    equal(await page.getAttribute('#follow', 'aria-pressed'), 'false', 'who looks around is left there');
    equal(await page.inputValue('.fork textarea'), 'Another?', 'a turn can be edited');
    await page.fill('.fork textarea', 'A flower?');
    ok(await page.isDisabled('.fork button'), 'but not run while another run goes on');

    end();
    await page.click('.fork button');
    await page.waitForFunction(() => document.getElementById('status').textContent.startsWith('It runs.'));
    const fork = asked.find(a => a[1] === 'fork');
    equal([fork[0], fork[2]], ['POST', 'Bearer sesame'], 'fork');
    const patch = JSON.parse(text('patch2.json'));
    equal(JSON.parse(fork[3]), {at: patch.nodes[2].id, edit: 'A flower?'}, 'in place of the message');
    equal(await page.getAttribute('#follow', 'aria-pressed'), 'true', 'and is followed');

    await page.evaluate(() => { location.hash = '#n3'; });
    await page.click('#tab-Request');
    await page.waitForFunction(() => document.getElementById('detail').textContent.includes('the bytes of ?node='));
    return page;
  },

  async 'live refused'() {
    const page = await open('live.html', {hash: '#token=old', server: (route, request) => request.url().endsWith('/')
      ? route.fulfill({contentType: 'text/html; charset=utf-8', body: text('live.html')}) : route.fulfill({status: 401, body: 'no token'})});
    await page.waitForFunction(() => document.getElementById('state').textContent === 'refused');
    equal(await content(page, '#status'), 'no token', 'and says why');
    ok(!page.url().includes('token'), 'the address has no token any more');
    ok((await content(page, '#refused')).includes('The server refused it: no token.'), 'on the page');
    ok((await content(page, '#refused')).includes('Open the address that the program printed'), 'and what to do');
    equal(await page.evaluate(() => [...document.querySelectorAll('#top > *, main, #index')].filter(e => e.checkVisibility()).map(e => e.innerText.trim())),
      ['Live', 'refused', '◐'], 'and nothing else');
    await page.setViewportSize({width: 390, height: 844});
    ok(await page.evaluate(() => { const box = document.querySelector('#refused').getBoundingClientRect(); return box.left >= 0 && box.right <= innerWidth; }), 'on a small screen, too');
    return page;
  },

  async 'live link'() {
    let copied = '';
    const server = async (route, request) => {
      const name = new URL(request.url()).pathname.slice(1);
      if (!name) return route.fulfill({contentType: 'text/html; charset=utf-8', body: text('live.html')});
      if (request.headers().authorization !== 'Bearer open & shut') return route.fulfill({status: 401, body: 'no token'});
      if (request.url().endsWith('events')) return route.fulfill({contentType: 'text/event-stream', body: 'event: patch\ndata: ' + text('patch2.json') + '\n\n'});
    };

    const first = await open('live.html', {hash: '#token=open+%26+shut', server});
    await first.waitForSelector('.row');
    ok(!await first.evaluate(() => location.href.includes('token')), 'the address has no token any more');
    await press(first, 'Home', 'j');
    equal(await selected(first), 'n1', 'a node that is not the last');

    await first.click('#share summary');
    await first.click('.menu button:has-text("Copy link with token")');
    await first.waitForFunction(() => window.seen.copied.length === 1);
    copied = await first.evaluate(() => window.seen.copied[0]);
    await first.context().close();

    const page = await open('live.html', {hash: copied.slice(copied.indexOf('#')), server});
    await page.waitForSelector('.row');
    equal(await selected(page), 'n1', 'the copied link leads there: ' + copied);
    equal(await page.getAttribute('#follow', 'aria-pressed'), 'false', 'and stays there');
    await page.reload();
    await page.waitForSelector('.row');
    ok(!await page.evaluate(() => location.href.includes('token')), 'a reload needs no token in the address');

    const stranger = await open('live.html', {server});
    await stranger.waitForSelector('#refused h2');
    await stranger.evaluate(hash => { location.hash = hash; }, copied.slice(copied.indexOf('#')));
    await stranger.waitForSelector('.row');
    equal(await selected(stranger), 'n1', 'a link that is opened in a page without a token works there');
    await stranger.context().close();
    return page;
  },

  async 'live errors'() {
    const error = 'no such key: ' + 'k'.repeat(300) + '\nthe last word';
    let said = {state: 'idle', error};
    const page = await open('live.html', {hash: '#token=sesame', server: async (route, request) => {
      const name = new URL(request.url()).pathname.slice(1);
      if (!name) return route.fulfill({contentType: 'text/html; charset=utf-8', body: text('live.html')});
      if (name === 'events') return route.fulfill({contentType: 'text/event-stream', body: 'event: patch\ndata: ' + text('patch1.json') +
        '\n\nevent: activity\ndata: ' + JSON.stringify(said) + '\n\n'});
    }});
    await page.waitForSelector('.error');
    equal(await content(page, '#now'), error, 'the whole error');
    const [wide, high] = await page.evaluate(() => { const e = document.querySelector('.error'); return [e.scrollWidth > e.clientWidth, e.clientHeight]; });
    ok(!wide && high > 60, 'is seen on several lines: ' + high);
    said = {state: 'running', turn: 1};
    await page.waitForFunction(() => document.querySelector('.fork button').disabled && document.querySelector('.fork .why').textContent.startsWith('A run is under way'));
    return page;
  },

  async 'long compare'() {
    const page = await open('branches.html', {options: {viewport: {width: 390, height: 800}}});
    await press(page, '=');
    const outside = () => page.evaluate(() => [...document.querySelectorAll('#compare button, #compare select, #compare p')]
      .filter(e => { const box = e.getBoundingClientRect(); return box.left < 0 || box.right > innerWidth; }).map(e => e.textContent.slice(0, 20)));
    equal(await outside(), [], 'what can be pressed is on a screen of 390 pixels');
    ok(await page.evaluate(() => document.getElementById('compare').scrollWidth <= innerWidth), 'nothing lies beside it');
    equal(await page.evaluate(() => document.querySelectorAll('.sides > .side').length), 2 + 2 * 500, 'rows');
    equal(await content(page, '#compare > .more'), '… and 101 more rows', 'how many there are');
    equal(await page.evaluate(() => document.querySelectorAll('.sides del, .sides ins').length), 2, 'unrelated sentences have no marks, related ones do');
    await page.click('#compare > .more');
    equal(await page.evaluate(() => document.querySelectorAll('.sides > .side').length), 2 + 2 * 601, 'all rows');
    ok(await page.evaluate(() => !document.querySelector('#compare > .more')), 'and no more');
    return page;
  },

  async 'long numbers'() {
    const page = await open('20000.html');
    await press(page, 'End');
    await settle(page);
    equal(await page.evaluate(() => [...document.querySelectorAll('.row > .number')].filter(e => e.scrollWidth > e.clientWidth).map(e => e.textContent)), [], 'numbers fit their column');
    ok((await selected(page)).length === 6, 'at the end');
    return page;
  },

  'folded graph': () => foldedGraph(),

  '2000 nodes': () => large('2000.html'),
  '20000 nodes': () => large('20000.html'),
};

// foldedGraph opens and closes folded boxes by keyboard, by mouse and by what is selected elsewhere.
async function foldedGraph() {
  const page = await open('folded.html', {hash: '#n0'});
  const folds = () => page.evaluate(() => [...document.querySelectorAll('.box.fold')].map(e => e.getAttribute('aria-label')));
  const opened = () => page.evaluate(() => [...document.querySelectorAll('.open-fold')].map(e => e.textContent));
  const chosen = () => page.evaluate(() => [...document.querySelectorAll('.box.selected')].map(e => (e.matches('.fold') ? 'folded: ' : '') + e.querySelector('.first').textContent));
  const focused = () => page.evaluate(() => document.activeElement.getAttribute('aria-expanded'));

  // What no box may do: lie on another, or across the outline of an open one.
  const overlaps = () => page.evaluate(() => {
    const box = e => ['x', 'y', 'width', 'height'].map(name => Number(e.getAttribute(name)));
    const inner = [...document.querySelectorAll('.box')].map(box).map(([x, y, w, h]) => [x + 3, y + 3, x + w - 3, y + h - 3]);
    const frames = [...document.querySelectorAll('.open-fold .outline')].map(box).map(([x, y, w, h]) => [x, y, x + w, y + h]);
    const apart = (a, b) => a[2] <= b[0] || b[2] <= a[0] || a[3] <= b[1] || b[3] <= a[1];
    const holds = (a, b) => a[0] <= b[0] && b[2] <= a[2] && a[1] <= b[1] && b[3] <= a[3];
    const found = [];
    inner.forEach((a, i) => inner.slice(i + 1).forEach(b => { if (!apart(a, b)) found.push([a, b]); }));
    for (const frame of frames) for (const other of [...inner, ...frames]) if (!apart(frame, other) && !holds(frame, other) && !holds(other, frame)) found.push([frame, other]);
    return found;
  });

  await press(page, '0');
  await settle(page);
  ok((await content(page, '.fold-note')).startsWith('399 nodes in '), 'how it is folded: ' + await content(page, '.fold-note'));
  ok(await page.evaluate(() => document.querySelectorAll('.box').length) <= 80, 'few boxes');
  ok(await page.evaluate(() => [...document.querySelectorAll('.box.failed')].some(e => e.textContent.includes('<img src=x'))), 'the failure has a box, as text');
  const [first] = await folds();
  ok(first.startsWith('… ') && first.includes(' tool calls'), 'a box says what is in it: ' + first);

  // By keyboard.
  await press(page, 'f', 'Enter');
  await settle(page);
  const [shown] = await opened();
  ok(shown.startsWith('▾ … ') && first.startsWith(shown.slice(2)), 'f and Enter open the first: ' + shown);
  equal(await focused(), 'true', 'it has the focus');
  ok((await folds()).every(text => text !== first), 'and it is a box no more');
  await press(page, 'f', 'Enter');
  await settle(page);
  equal((await opened()).length, 2, 'and what is folded in it');
  await press(page, '0');
  await settle(page);
  equal(await overlaps(), [], 'no box lies on another');
  await press(page, ' ');
  await settle(page);
  equal([(await opened()).length, await focused()], [1, 'false'], 'Space closes it');

  // What somebody opened stays open; what a selection opened does not.
  const byHand = await opened();
  await page.evaluate(() => { location.hash = '#n300'; });
  await page.waitForFunction(() => document.querySelector('.heading a').textContent === 'n300');
  await settle(page);
  equal(await chosen(), ['user'], 'a link unfolds its node');
  ok((await opened()).length > 1, 'in what it lies in');
  equal(await overlaps(), [], 'and nothing lies on it');
  await press(page, 'Home');
  await settle(page);
  equal(await opened(), byHand, 'which closes again');
  await press(page, 'F', 'f', 'F', 'f');
  await page.evaluate(() => document.querySelector('.open-fold').focus());
  await press(page, 'Enter');
  await settle(page);
  equal(await opened(), [], 'all is closed');

  // From the search, the outline, the table of calls and the timeline.
  await press(page, '/');
  await page.keyboard.type('question 47');
  await press(page, 'Enter');
  await page.click('#view-graph');
  await settle(page);
  equal(await chosen(), ['user'], 'the search unfolds');
  ok(await page.evaluate(() => document.querySelectorAll('.box.fold.filtered').length > 0 && !document.querySelector('.box.selected.filtered')), 'a folded box without a match is dim');

  await press(page, 'Escape', 'Escape', 'j', 'j');
  await settle(page);
  equal(await chosen(), ['search(query: trees)'], 'the outline does');

  await press(page, '2');
  await page.click('.callrow:not(.callhead) >> nth=10');
  const called = await selected(page);
  await press(page, '1');
  await settle(page);
  equal([(await chosen()).length, (await chosen())[0].startsWith('folded')], [1, false], 'the table of calls does: ' + called);

  await press(page, '3');
  await page.click('#timeline .bar >> nth=30');
  await press(page, '1');
  await settle(page);
  equal([(await chosen()).length, (await chosen())[0].startsWith('folded')], [1, false], 'the timeline does');

  // By mouse: the title of an open box closes it, also around what is selected.
  await page.evaluate(() => { location.hash = '#n300'; });
  await page.waitForFunction(() => document.querySelector('.heading a').textContent === 'n300');
  await press(page, 'f');
  await page.evaluate(() => document.querySelector('.open-fold').focus());
  await press(page, 'Enter');
  await settle(page);
  ok((await chosen()).every(text => text.startsWith('folded: … ')), 'a folded box is marked for what is selected in it: ' + await chosen());
  const {x, y, width} = await page.locator('.box.selected').boundingBox();
  await page.mouse.click(x + width / 2, y + 10);
  await settle(page);
  ok((await opened()).length > 0, 'a click opens');
  const title = await page.locator('.open-fold .bar').first().boundingBox();
  await page.mouse.click(title.x + title.width / 2, title.y + 8);
  await settle(page);
  equal(await opened(), [], 'a click on the title closes');

  // On a small screen.
  await page.setViewportSize({width: 390, height: 844});
  await page.click('#view-graph');
  await press(page, 'f', 'Enter');
  await settle(page);
  equal((await opened()).length, 1, 'on a small screen, too');
  ok(await page.evaluate(() => { const box = document.querySelector('.open-fold .bar').getBoundingClientRect(); return box.left >= 0 && box.left < 200; }), 'with its title in view');
  return page;
}

// large measures a large page, and holds that no more than what is seen is in it.
async function large(name) {
  const page = await open(name);
  const count = () => page.evaluate(() => document.getElementsByTagName('*').length);
  await settle(page);
  const most = [await count()];
  const time = async act => { const began = performance.now(); await act(); await settle(page); most.push(await count()); return Math.round(performance.now() - began); };
  const end = await time(() => press(page, 'End'));
  const fit = await time(() => press(page, '0'));
  const problem = await time(() => press(page, 'e'));
  const search = await time(async () => { await press(page, '/'); await page.keyboard.type('firs'); });
  ok(Math.max(...most) < 3000, 'elements: ' + most);

  // Where a search takes long, it waits for a pause of the typing.
  if (name === '20000.html') {
    const searches = await page.evaluate(async () => {
      const field = document.getElementById('search');
      let n = 0;
      const watch = new MutationObserver(() => n++);
      watch.observe(document.getElementById('found'), {childList: true});
      for (const typed of ['m', 'me', 'mes', 'mess']) {
        field.value = typed;
        field.dispatchEvent(new Event('input'));
        await Promise.resolve();
      }
      const before = n;
      await new Promise(done => setTimeout(done, 1000));
      watch.disconnect();
      return [before, n];
    });
    equal(searches, [0, 1], 'searches while somebody types, and in the pause after it');
  }

  // The table of calls has all of them, and makes those in view.
  await press(page, 'Escape', 'Escape');
  const table = await time(() => press(page, '2'));
  const sort = await time(() => press(page, 'Home', 's'));
  const last = await time(() => press(page, 'End'));
  ok(Math.max(...most) < 3000, 'elements with the table: ' + most);
  const turns = await time(() => press(page, '3'));
  const turn = await time(() => press(page, 'End'));
  ok(Math.max(...most) < 3000, 'elements with the timeline: ' + most);
  const requests = await time(() => press(page, '4'));
  ok(Math.max(...most) < 3000, 'elements with the cache: ' + most);
  await press(page, '1', 'Escape');

  // A key that is held down goes through many nodes: what follows from one is added up only where it stops.
  await press(page, 'Escape', 'Escape', 'Home');
  const [moves, sum] = await page.evaluate(() => {
    const began = performance.now();
    for (let i = 0; i < 20; i++) document.getElementById('outline').dispatchEvent(new KeyboardEvent('keydown', {key: 'j', bubbles: true}));
    return [Math.round(performance.now() - began), document.getElementById('from-here-on').textContent];
  });
  equal(sum, '…', 'the sum after 20 moves');
  await page.waitForFunction(() => document.getElementById('from-here-on').textContent.includes(' nodes'));
  const paint = await page.evaluate(() => Math.round(performance.getEntriesByName('first-contentful-paint')[0]?.startTime || 0));
  page.info = 'open ' + page.opened + ', first paint ' + paint + ', end ' + end + ', whole graph ' + fit + ', next problem ' + problem + ', search ' + search + ', table of calls ' + table + ', sorted ' + sort + ', its end ' + last + ', timeline ' + turns + ', its end ' + turn + ', cache ' + requests + ', 20 moves ' + moves + ' ms; elements at most ' + Math.max(...most);
  return page;
}

// shots takes pictures of a page, to be looked at.
async function shots(into, file) {
  for (const scheme of ['light', 'dark']) {
    const context = await newContext({viewport: {width: 1400, height: 900}, colorScheme: scheme});
    const page = await context.newPage();
    await page.goto('file://' + path.resolve(file));
    await page.waitForSelector('.row');
    await page.waitForFunction(() => document.getElementById('from-here-on')?.textContent !== '…');
    await settle(page);
    await page.screenshot({path: path.join(into, 'page-' + scheme + '.png')});
    await context.close();
  }
}

if (dir.startsWith('--shots=')) {
  await shots(dir.slice(8), wanted[0]);
} else {
  for (const name of wanted.length ? wanted : Object.keys(checks)) {
    const began = performance.now();
    const verdict = {name, ok: true, info: ''};
    let page;

    try {
      page = await within(300000, checks[name]());
      verdict.info = page.info || '';
      equal(await page.sins(), [], 'it did what no page may do');
    } catch (err) {
      Object.assign(verdict, {ok: false, error: String(err.stack || err).slice(0, 2000)});
      if (err.hangs) {
        console.log(JSON.stringify(verdict));
        process.exit(1);
      }
    }

    await page?.context().close().catch(() => {});
    console.log(JSON.stringify({...verdict, ms: Math.round(performance.now() - began)}));
  }
}
await close();

#!/usr/bin/env node
// Opens SVG pictures of conversations in Chromium, each as a document of its own, and reads back what is drawn.
// usage: node svg.mjs    (JSON lines in: {"name":..,"text":..}; one JSON line out for each)
// Line: boxes {id: {lines, fits}}, edges ["n0 n1 dashed"], frames {id: title}, width, font (the smallest, in pixels), and
// danger: what ran, was requested, or is an element or an attribute that a picture does not need.
import {chromium} from 'playwright-core';
import {readFileSync} from 'node:fs';

const browser = await chromium.launch({executablePath: process.env.CHROMIUM || '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu', '--font-render-hinting=none']});
const page = await browser.newPage({viewport: {width: 1440, height: 900}});
let text, seen;
await page.route('**/*', r => {
  if (r.request().url() === 'http://check.test/picture.svg') return r.fulfill({contentType: 'image/svg+xml', body: text});
  if (!r.request().url().endsWith('/favicon.ico')) seen.push('request ' + r.request().url());
  return r.abort();
});
page.on('dialog', d => { seen.push('dialog ' + d.message()); d.dismiss().catch(() => {}); });

for (const line of readFileSync(0, 'utf8').split('\n')) {
  if (!line.trim()) continue;
  const job = JSON.parse(line);
  text = job.text; seen = [];
  await page.goto('http://check.test/picture.svg');
  const out = await page.evaluate(() => {
    const svg = document.documentElement, all = s => [...svg.querySelectorAll(s)], danger = [];
    if (svg.localName !== 'svg' || document.querySelector('parsererror')) return {danger: ['not an SVG: ' + svg.textContent.slice(0, 300)]};
    for (const el of all('*')) {
      if (!['title', 'desc', 'style', 'g', 'rect', 'path', 'text', 'tspan'].includes(el.localName)) danger.push('element ' + el.localName);
      for (const at of el.attributes) if (/^on|href|^style$/i.test(at.name)) danger.push(`attribute ${at.name}=${at.value}`);
    }
    if (window.__pwned || window.pwned) danger.push('a script ran');

    const boxes = {}, frames = {};
    for (const g of all('g[role=listitem]')) {
      const outer = g.querySelector('path').getBBox(), texts = [...g.querySelectorAll('text')].map(t => t.getBBox());
      boxes[g.id] = {
        lines: [...g.querySelectorAll('tspan')].map(t => t.textContent),
        fits: texts.every(inner => inner.x >= outer.x && inner.x + inner.width <= outer.x + outer.width &&
          inner.y >= outer.y && inner.y + inner.height <= outer.y + outer.height),
      };
    }
    for (const g of all('g.title')) frames[g.dataset.frame] = g.querySelector('text').textContent;
    return {
      boxes, frames, danger, width: svg.getBoundingClientRect().width,
      edges: all('.edges path[data-from]').map(p => `${p.dataset.from} ${p.dataset.to} ${p.getAttribute('class') || ''}`),
      font: Math.min(...all('text, tspan').map(t => parseFloat(getComputedStyle(t).fontSize))),
    };
  });
  out.danger.push(...seen);
  console.log(JSON.stringify({name: job.name, ...out}));
}
await browser.close();

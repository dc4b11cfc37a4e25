// Checks the scripts of the pages with the type checker of TypeScript: as a page has them, one after the other in one
// scope. It prints each error with the script and the line.
import {spawnSync} from 'node:child_process';
import {copyFileSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';

const here = import.meta.dirname, assets = join(here, '../../../viz/page/internal/web/assets');
const scripts = folder => readdirSync(join(assets, folder)).filter(name => name.endsWith('.js')).sort().map(name => join(folder, name));
const pages = {page: scripts('.'), report: ['3_dom.js', ...scripts('report')]};

const work = mkdtempSync(join(tmpdir(), 'types-'));
let failed = false;
try {
  copyFileSync(join(here, 'types.d.ts'), join(work, 'types.d.ts'));
  for (const [page, names] of Object.entries(pages)) {
    const from = []; // the script and the line of each line
    let text = 'export {};\n';
    from.push('');
    for (const name of names) {
      readFileSync(join(assets, name), 'utf8').replace(/\n$/, '').split('\n').forEach((line, i) => {
        text += line + '\n';
        from.push(name + ':' + (i + 1));
      });
    }
    const file = page + '.js';
    writeFileSync(join(work, file), text);

    const tsc = spawnSync(process.execPath, [join(here, 'node_modules/typescript/bin/tsc'), '--allowJs', '--checkJs', '--noEmit',
      '--target', 'es2023', '--lib', 'es2024', '--module', 'preserve',
      'types.d.ts', file], {cwd: work, encoding: 'utf8'});
    for (const line of tsc.stdout.split('\n').filter(Boolean)) {
      console.log(line.replace(/^\w+\.js\((\d+),(\d+)\)/, (_, at, column) => from[at - 1] + ':' + column));
    }
    failed ||= tsc.status !== 0;
  }
} finally {
  rmSync(work, {recursive: true});
}
process.exit(failed ? 1 : 0);

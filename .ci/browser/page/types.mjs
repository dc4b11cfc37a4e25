// Checks the modules of the pages with the type checker of TypeScript. It prints each error with the module and the line.
import {spawnSync} from 'node:child_process';
import {readdirSync} from 'node:fs';
import {join} from 'node:path';

const here = import.meta.dirname, assets = join(here, '../../../viz/page/internal/web/assets');
const modules = readdirSync(assets, {recursive: true}).filter(name => name.endsWith('.js'));
if (!modules.length) throw new Error('no modules in ' + assets);
const tsc = spawnSync(process.execPath, [join(here, 'node_modules/typescript/bin/tsc'), '--allowJs', '--checkJs', '--noEmit',
  '--target', 'es2023', '--lib', 'es2024', '--module', 'preserve', '--noUnusedLocals', join(here, 'types.d.ts'), ...modules],
{cwd: assets, stdio: 'inherit'});
process.exit(tsc.status);

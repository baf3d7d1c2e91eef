import { expect } from 'chai';
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { TempDir } from './support/temp-dir.js';
import { tempDir } from './support/temp-dir.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Source lines with the rule that reports each, or null if none does. */
const FINDINGS: Readonly<Record<string, readonly (readonly [line: string, rule: string | null])[]>> = {
  'src/run/step.ts': [
    ['export const at = new Date();', 'house(no-clock)'],
    ['export const told = Date();', 'house(no-clock)'],
    ['export const then = new Date(0);', null],
    ['export const now = Date.now();', 'eslint(no-restricted-properties)'],
    ['export const id = globalThis.process.pid;', 'eslint(no-restricted-globals)'],
    ['export const forced = then as unknown as string;', 'house(no-forced-type)'],
    ['export const wide = then as unknown;', null],
  ],
  'src/system/clock.ts': [['export const at = new Date();', null]],
  'test/run/step.test.ts': [
    ["import { setTimeout as wait } from 'node:timers/promises';", 'eslint(no-restricted-imports)'],
    ['export const waited = wait(1);', null],
    ["it.only('runs', function () {", 'house(no-held-back-test)'],
    ['  this.skip();', 'house(no-held-back-test)'],
    ['});', null],
    ["describe.skip('A step', () => undefined);", 'house(no-held-back-test)'],
    ['export const timer = setTimeout(() => undefined, 1);', 'eslint(no-restricted-globals)'],
    ['export const forced = timer as unknown as string;', 'house(no-forced-type)'],
  ],
};

describe('The lint', () => {
  let house: TempDir;

  before(() => {
    house = tempDir();
    for (const [file, lines] of Object.entries(FINDINGS)) write(file, lines.map(([line]) => line).join('\n'));
    write('tsconfig.json', '{ "compilerOptions": { "types": ["node", "mocha"] } }');
    for (const file of ['.oxlintrc.json', 'test/support/lint-rules.mjs'])
      cpSync(join(ROOT, file), join(house.path, file));
    symlinkSync(join(ROOT, 'node_modules'), join(house.path, 'node_modules'));
  });
  after(() => house.remove());

  it('reports clocks, forced types, skipped tests and sleeps where they are not allowed', async () => {
    const program = join(ROOT, 'node_modules/oxlint/bin/oxlint');
    const said = await new Promise<string>((resolve) => {
      const words = [program, '--format', 'unix', ...Object.keys(FINDINGS)];
      execFile(process.execPath, words, { cwd: house.path }, (_, stdout) => resolve(stdout));
    });
    const found = [...said.matchAll(/^(\S+?):(\d+):.*\[Error\/(\S+)\]$/gm)].map(
      ([, file, line, rule]) => `${file}:${line} ${rule}`,
    );
    const wanted = Object.entries(FINDINGS).flatMap(([file, lines]) =>
      lines.flatMap(([, rule], index) => (rule === null ? [] : [`${file}:${index + 1} ${rule}`])),
    );
    expect(found.sort(), said).to.deep.equal(wanted.sort());
  });

  function write(file: string, text: string): void {
    mkdirSync(join(house.path, dirname(file)), { recursive: true });
    writeFileSync(join(house.path, file), `${text}\n`);
  }
});

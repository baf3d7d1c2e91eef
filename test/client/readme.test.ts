import { expect } from 'chai';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { instantModel } from '../support/instant-model.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { typeFaults } from '../support/type-faults.js';
import ts from 'typescript';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const README = readFileSync(join(ROOT, 'src/client/README.md'), 'utf8');
/** The address of the service in the examples. */
const EXAMPLE_URL = 'http://127.0.0.1:8000';
const PROJECT = {
  compilerOptions: {
    target: 'ES2023',
    module: 'NodeNext',
    types: ['node'],
    noEmit: true,
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: true,
  },
};

describe("The examples of the client's README", () => {
  let service: RunningService;
  let dir: TempDir;
  let program: string;

  before(async () => {
    service = await startService({ model: instantModel() });
    dir = tempDir();
    mkdirSync(join(dir.path, 'node_modules'));
    symlinkSync(ROOT, join(dir.path, 'node_modules/council-run-service'));
    for (const name of ['@types', 'ws'])
      symlinkSync(join(ROOT, 'node_modules', name), join(dir.path, 'node_modules', name));
    program = [...README.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code]) => code).join('\n');
    expect(program).to.include(EXAMPLE_URL);
    writeFileSync(join(dir.path, 'example.mts'), program);
  });
  after(async () => {
    await service.stop();
    dir.remove();
  });

  it('compile under the strictest compiler options', async () => {
    writeFileSync(join(dir.path, 'tsconfig.json'), JSON.stringify(PROJECT));
    expect(await typeFaults(join(dir.path, 'example.mts'))).to.equal('');
  });

  it('run to the end against a service', async () => {
    const { outputText } = ts.transpileModule(program.replace(EXAMPLE_URL, service.url), {
      compilerOptions: { target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.ESNext, verbatimModuleSyntax: true },
    });
    const file = join(dir.path, 'example.mjs');
    const said: unknown[][] = [];
    Reflect.set(globalThis, 'sayInExample', (...words: unknown[]) => void said.push(words));
    writeFileSync(file, `const console = { log: globalThis.sayInExample };\n${outputText}`);
    await import(pathToFileURL(file).href);
    expect(said.flat()).to.include.members([
      'master_agent',
      'RunCompleted',
      'completed',
      2,
      'a letter',
      'Dear mayor, …',
    ]);
    expect(service.faults).to.deep.equal([]);
  });
});

import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core';
import { expect } from 'chai';
import { execFile } from 'node:child_process';
import { cpSync, existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { typeFaults } from '../support/type-faults.js';
import ts from '../support/typescript.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const ENTRY = join(ROOT, 'dist/src/client/client.js');
/** Most that a page loads for the client, compressed, in bytes. */
const MAX_GZIP_BYTES = 12_000;
/** How a package of ES modules is not expected to be found: `attw --profile esm-only`. */
const NOT_ESM: readonly string[] = ['node10', 'node16-cjs'];

describe('The package of the client', () => {
  let dir: TempDir;
  let tarball: Uint8Array;

  before(async () => {
    dir = tempDir();
    const words = ['pack', '--ignore-scripts', '--json', '--pack-destination', dir.path];
    const { stdout } = await promisify(execFile)('npm', words, { cwd: ROOT, maxBuffer: 2 ** 24 });
    const [{ filename }] = JSON.parse(stdout) as [{ filename: string }];
    tarball = new Uint8Array(readFileSync(join(dir.path, filename)));
  });
  after(() => dir.remove());

  it('is clean by publint', async () => {
    const pkg = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Record<string, unknown>;
    const { messages } = await publint({ pack: { tarball: tarball.slice().buffer }, strict: true });
    expect(messages.map((message) => formatMessage(message, pkg))).to.deep.equal([]);
  });

  it('has types that are found as its modules are, by attw', async () => {
    const found = await checkPackage(createPackageFromTarballData(tarball));
    if (found.types === false) throw new Error('The package has no types');
    const problems = found.problems.filter(
      (problem) => !('resolutionKind' in problem && NOT_ESM.includes(problem.resolutionKind)),
    );
    expect(problems).to.deep.equal([]);
    expect(Object.keys(found.entrypoints)).to.deep.equal(['./client']);
  });

  it('is found by its name, and loads without the rest', async () => {
    const name = 'council-run-service/client';
    expect(await import(name)).to.include.keys('CouncilClient', 'StalePauseError');
  });

  it(`weighs at most ${MAX_GZIP_BYTES} bytes, compressed, with all that it loads`, () => {
    const texts = [...modulesOf(ENTRY).values()];
    expect(gzipSync(texts.join('\n')).length).to.be.lessThan(MAX_GZIP_BYTES);
  });

  it('loads nothing but itself', () => {
    const loaded = [...modulesOf(ENTRY).keys()].map((file) => relative(ROOT, file));
    const others = loaded.filter((file) => !file.startsWith('dist/src/client/'));
    expect(others).to.deep.equal([]);
  });

  it('does nothing when it is loaded, so that what is not used can be left out', () => {
    for (const [file, text] of modulesOf(ENTRY)) {
      const source = ts.createSourceFile(file, text, ts.ScriptTarget.ES2023);
      const acts = source.statements.filter((statement) => ts.isExpressionStatement(statement));
      expect(acts.map((statement) => statement.getText(source))).to.deep.equal([]);
    }
  });

  it('has types that compile in a browser project, by the strictest rules', async () => {
    const types = ['generated/schemas.d.ts', ...readdirSync(dirname(ENTRY)).map((name) => `client/${name}`)];
    const project = types.filter((path) => path.endsWith('.d.ts'));
    const folder = join(dir.path, 'browser');
    for (const path of project) cpSync(join(ROOT, 'dist/src', path), join(folder, path));
    const compilerOptions = {
      lib: ['es2023', 'dom'],
      target: 'es2023',
      module: 'esnext',
      moduleResolution: 'bundler',
      types: [],
      skipDefaultLibCheck: true,
      noEmit: true,
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
    };
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: project }));
    const faults = await typeFaults(folder);
    expect(faults).to.equal('');
  });
});

/** The texts of a module and of all that it loads, by file. */
function modulesOf(entry: string): ReadonlyMap<string, string> {
  const modules = new Map<string, string>();
  const load = (file: string): void => {
    if (modules.has(file)) return;
    const text = readFileSync(file, 'utf8');
    modules.set(file, text);
    for (const { fileName } of ts.preProcessFile(text).importedFiles) load(locate(fileName, file));
  };
  load(entry);
  return modules;
}

function locate(specifier: string, from: string): string {
  if (specifier.startsWith('.')) return resolve(dirname(from), specifier);
  const file = fileURLToPath(import.meta.resolve(specifier));
  if (!existsSync(file)) throw new Error(`${specifier} is no file`);
  return file;
}

import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core';
import { expect } from 'chai';
import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import type { TempDir } from '../support/temp-dir.js';
import { tempDir } from '../support/temp-dir.js';
import { typeFaults } from '../support/type-faults.js';
import ts from 'typescript';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const ENTRY = join(ROOT, 'dist/src/client/client.js');
/** The most compressed bytes that a page loads for the client. */
const MAX_GZIP_BYTES = 12_000;
/** Resolutions that do not apply to a package of ES modules, as in `attw --profile esm-only`. */
const NOT_ESM: readonly string[] = ['node10', 'node16-cjs'];

/** Files of a fresh clone that `npm pack` needs; a clone has no `dist`. */
const CLONE = ['src', 'schemas', 'package.json', 'package-lock.json', 'README.md', 'LICENSE'];

interface Packed {
  readonly tarball: Uint8Array;
  readonly files: readonly string[];
  readonly manifest: Readonly<Record<string, unknown>>;
}

/** Runs `npm pack` in a copy of the project without `dist`. */
async function packed(clone: string, ...words: string[]): Promise<Packed> {
  const run = await promisify(execFile)('npm', ['pack', '--json', ...words], { cwd: clone, maxBuffer: 2 ** 24 });
  const [report] = JSON.parse(run.stdout.slice(run.stdout.indexOf('['))) as [
    { readonly filename: string; readonly files: readonly { readonly path: string }[] },
  ];
  const folder = words.includes('-w') ? join(clone, 'src/client') : clone;
  return {
    tarball: new Uint8Array(readFileSync(join(clone, report.filename))),
    files: report.files.map(({ path }) => path),
    manifest: JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Record<string, unknown>,
  };
}

describe('The packages packed in a fresh clone', () => {
  let dir: TempDir;
  let service: Packed;
  let client: Packed;

  before(async () => {
    dir = tempDir();
    const clone = join(dir.path, 'clone');
    for (const name of CLONE) cpSync(join(ROOT, name), join(clone, name), { recursive: true });
    rmSync(join(clone, 'src/client/dist'), { recursive: true, force: true });
    symlinkSync(join(ROOT, 'node_modules'), join(clone, 'node_modules'));
    service = await packed(clone);
    client = await packed(clone, '-w', 'council-run-client');
  });
  after(() => dir.remove());

  it('contain the built service, console, command and client', () => {
    expect(service.files).to.include.members([
      'src/cli/council.mjs',
      'dist/src/main.js',
      'dist/src/client/client.d.ts',
      'dist/src/generated/requests.js',
      'dist/console/index.html',
      'schemas/run-request.json',
      'schemas/examples/code-review.blueprint.json',
    ]);
    expect(service.files.filter((path) => path.endsWith('.map') || path.startsWith('test'))).to.deep.equal([]);
  });

  it('include a client without dependencies', () => {
    expect(client.manifest).not.to.have.any.keys('dependencies', 'peerDependencies', 'optionalDependencies');
    expect(client.manifest['version']).to.equal(service.manifest['version']);
    expect(client.files).to.include.members(['dist/client/client.js', 'dist/client/client.d.ts']);
  });

  it('include a command that runs from the unpacked package', async () => {
    const place = join(dir.path, 'installed');
    mkdirSync(place);
    writeFileSync(join(place, 'service.tgz'), service.tarball);
    await promisify(execFile)('tar', ['-xzf', 'service.tgz'], { cwd: place });
    symlinkSync(join(ROOT, 'node_modules'), join(place, 'package/node_modules'));
    const command = join(place, 'package', (service.manifest['bin'] as { council: string }).council);
    const { stdout } = await promisify(execFile)(process.execPath, [command, '--help']);
    expect(stdout).to.include('council serve');
  });

  it('pass publint', async () => {
    for (const { tarball, manifest } of [service, client]) {
      const { messages } = await publint({ pack: { tarball: tarball.slice().buffer }, strict: true });
      expect(messages.map((message) => formatMessage(message, manifest))).to.deep.equal([]);
    }
  });

  it('pass attw: TypeScript finds the types of each module', async () => {
    for (const [{ tarball }, entry] of [
      [service, './client'],
      [client, '.'],
    ] as const) {
      const found = await checkPackage(createPackageFromTarballData(tarball));
      if (found.types === false) throw new Error('The package has no types');
      const problems = found.problems.filter(
        (problem) => !('resolutionKind' in problem && NOT_ESM.includes(problem.resolutionKind)),
      );
      expect(problems).to.deep.equal([]);
      expect(Object.keys(found.entrypoints)).to.deep.equal([entry]);
    }
  });

  it('include a client that can be imported by its name, and loads nothing of the service', async () => {
    const name = 'council-run-service/client';
    expect(await import(name)).to.include.keys('CouncilClient', 'StalePauseError');
  });

  it(`has at most ${MAX_GZIP_BYTES} compressed bytes, including all modules that it loads`, () => {
    const texts = [...modulesOf(ENTRY).values()];
    expect(gzipSync(texts.join('\n')).length).to.be.lessThan(MAX_GZIP_BYTES);
  });

  it('imports only its own modules', () => {
    const loaded = [...modulesOf(ENTRY).keys()].map((file) => relative(ROOT, file));
    const others = loaded.filter((file) => !file.startsWith('dist/src/client/'));
    expect(others).to.deep.equal([]);
  });

  it('has no effect on import, so that a bundler can omit unused parts', () => {
    for (const [file, text] of modulesOf(ENTRY)) {
      const source = ts.createSourceFile(file, text, ts.ScriptTarget.ES2023);
      const acts = source.statements.filter((statement) => ts.isExpressionStatement(statement));
      expect(acts.map((statement) => statement.getText(source))).to.deep.equal([]);
    }
  });

  it('has types that compile in a browser project under the strictest compiler options', async () => {
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

/** The source texts of a module and of all modules that it loads, by file. */
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

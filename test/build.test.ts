import { expect } from 'chai';
import { execFile } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  watch,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { rejectionOf } from './support/rejection.js';
import { untilTrue } from './support/until-true.js';
import { soakIt } from './support/soak.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

describe('The build', () => {
  let house: string;
  const inHouse = (path: string): string => join(house, path);
  const read = (path: string): string => readFileSync(inHouse(path), 'utf8');
  const write = (path: string, text: string): void => {
    mkdirSync(join(inHouse(path), '..'), { recursive: true });
    writeFileSync(inHouse(path), text);
    later(inHouse(path));
  };
  /** Dates a change after the last build, even on a file system with a coarse clock. */
  const later = (path: string): void => {
    const time = new Date(Date.now() + 2_000);
    utimesSync(path, time, time);
  };
  /** Runs the copy's build in a process of its own. */
  const build = async (...flags: string[]): Promise<void> => {
    await promisify(execFile)(process.execPath, [inHouse('src/build.mjs'), ...flags]);
  };
  const built = (): readonly string[] => filesUnder(inHouse('dist')).filter((path) => !path.endsWith('.map'));

  beforeEach(() => {
    house = mkdtempSync(join(tmpdir(), 'council-build-'));
    mkdirSync(inHouse('src'));
    cpSync(join(root, 'src/build.mjs'), inHouse('src/build.mjs'));
    symlinkSync(join(root, 'node_modules'), inHouse('node_modules'));
    write('src/greeting.ts', 'export const greeting: string = "hello";\n');
    write('src/deep/er/file.ts', 'export const depth: number = 2;\n');
    write('test/greeting.test.ts', 'export {};\n');
  });

  afterEach(() => {
    rmSync(house, { recursive: true, force: true });
  });

  it('makes the modules of src, and those of test with --all', async () => {
    await build();
    expect(built()).to.deep.equal(['.built-src', 'src/deep/er/file.js', 'src/greeting.js']);
    await build('--all');
    expect(built()).to.include.members(['.built-test', 'test/greeting.test.js']);
  });

  it('names the source and the line in stack traces', async () => {
    write('src/failing.ts', 'interface Nothing {\n  readonly nothing: never;\n}\n\nthrow new Error("failed");\n');
    await build();
    const failure = await rejectionOf(
      promisify(execFile)(process.execPath, ['--enable-source-maps', inHouse('dist/src/failing.js')]),
    );
    expect(String(failure)).to.include('src/failing.ts:5:');
  });

  it('names the file and line of a syntax error, and builds again once it is fixed', async () => {
    write('src/greeting.ts', 'export const greeting = ;\n');
    expect(String(await rejectionOf(build()))).to.include('src/greeting.ts:1:');
    write('src/greeting.ts', 'export const greeting = "good day";\n');
    await build();
    expect(read('dist/src/greeting.js')).to.include('good day');
  });

  soakIt('compiles the validators of recorded events again when a schema changes', async () => {
    cpSync(join(root, 'schemas'), inHouse('schemas'), { recursive: true });
    await build();
    const load = async (name: string): Promise<Record<string, Record<string, (data: unknown) => boolean>>> => {
      cpSync(inHouse('dist/src/generated/recorded-events.js'), inHouse(name));
      return (await import(pathToFileURL(inHouse(name)).href)) as Awaited<ReturnType<typeof load>>;
    };
    const started = { epoch: 1 };
    expect((await load('before.mjs'))['runEvents']?.['RunStarted']?.(started)).to.equal(true);
    const changed = read('schemas/run-events.json').replace('"required": ["epoch"]', '"required": ["epoch", "why"]');
    write('schemas/run-events.json', changed);
    await build();
    expect((await load('after.mjs'))['runEvents']?.['RunStarted']?.(started)).to.equal(false);
  });

  soakIt('puts types beside the client', async () => {
    cpSync(join(root, 'schemas'), inHouse('schemas'), { recursive: true });
    write('src/client/run.ts', 'export const idOf = (run: { readonly id: string }): string => run.id;\n');
    await build();
    expect(read('dist/src/client/run.d.ts')).to.match(/^export declare const idOf: \(run: /);
    expect(read('dist/src/generated/schemas.d.ts')).to.include('export interface RunResult');
  });

  it('needs no devDependencies', async () => {
    cpSync(join(root, 'schemas'), inHouse('schemas'), { recursive: true });
    write('src/client/run.ts', 'export const idOf = (run: { readonly id: string }): string => run.id;\n');
    rmSync(inHouse('node_modules'));
    mkdirSync(inHouse('node_modules'));
    for (const name of ['esbuild', '@esbuild', 'ajv', 'fast-deep-equal', 'json-schema-traverse', 'fast-uri']) {
      symlinkSync(join(root, 'node_modules', name), inHouse(`node_modules/${name}`));
    }
    await build();
    expect(built()).to.include('src/client/run.js').and.to.include('src/generated/requests.js');
    expect(built()).not.to.include('src/client/run.d.ts');
  });

  it('refuses an export of the client that does not state its type', async () => {
    cpSync(join(root, 'schemas'), inHouse('schemas'), { recursive: true });
    write('src/client/run.ts', 'export const length = [1].length;\n');
    expect(String(await rejectionOf(build()))).to.match(/types of src\/client\/run\.ts: .*explicit type/);
  });

  it('writes nothing when no source has changed', async () => {
    await build('--all');
    later(inHouse('dist/.built-src'));
    later(inHouse('dist/.built-test'));
    const before = statesOf(inHouse('dist'));
    await build('--all');
    expect(statesOf(inHouse('dist'))).to.deep.equal(before);
  });

  it('builds a changed source again, and removes files and folders whose source is gone', async () => {
    await build('--all');
    write('src/greeting.ts', 'export const greeting: string = "good day";\n');
    rmSync(inHouse('src/deep'), { recursive: true });
    await build();
    expect(read('dist/src/greeting.js')).to.include('good day');
    expect(built()).to.deep.equal(['.built-src', '.built-test', 'src/greeting.js', 'test/greeting.test.js']);
    expect(readdirSync(inHouse('dist/src'))).to.not.include('deep');
  });

  it('repeats a build that was killed before its end', async () => {
    await build();
    rmSync(inHouse('dist/.built-src'));
    write('dist/src/greeting.js', 'half of a build\n');
    await build();
    expect(read('dist/src/greeting.js')).to.include('hello');
  });

  it('bundles the console under a folder named after its content', async () => {
    write('src/console/index.html', '<!-- assets -->\n');
    write('src/console/console.css', 'p { margin: 0 }\n');
    write('src/console/main.tsx', 'import { greet } from "./greet.js";\ndocument.body.append(greet());\n');
    write('src/console/greet.ts', 'export const greet = (): string => "hello";\n');
    write('src/console/share/main.tsx', 'console.log(2);\n');
    await build();
    const [before] = /assets\/\w+/.exec(read('dist/console/index.html')) ?? [''];
    expect(read(`dist/console/${before}/main.js`)).to.include('hello');
    write('src/console/greet.ts', 'export const greet = (): string => "good day";\n');
    await build();
    const [after] = /assets\/\w+/.exec(read('dist/console/index.html')) ?? [''];
    expect(built().filter((path) => path.startsWith('console'))).to.deep.equal([
      `console/${after}/console.css`,
      `console/${after}/main.js`,
      `console/${after}/share.js`,
      'console/index.html',
    ]);
    expect(after).not.to.equal(before);
    expect(readdirSync(inHouse('dist/console/assets'))).to.have.lengthOf(1);
  });

  it('starts through a symbolic link', async () => {
    symlinkSync(house, inHouse('link'));
    await promisify(execFile)(process.execPath, [inHouse('link/src/build.mjs')]);
    expect(built()).to.include('src/greeting.js');
  });

  it('may run several times at once, and replaces each file in one step', async () => {
    await build();
    write('dist/src/gone.js', 'export {};\n');
    write('src/greeting.ts', 'export const greeting: string = "good day";\n');
    const changes = changesIn(inHouse('dist/src'));
    await Promise.all([build('--all'), build('--all')]);
    const seen = await changes.upToNow();
    const drafts = new Set(seen.map(({ name }) => name).filter((name) => /^greeting\.js\.[^m]/.test(name)));
    expect(drafts.size).to.be.within(1, 2);
    expect(seen.filter(({ name }) => name === 'greeting.js').map(({ kind }) => kind)).to.deep.equal(
      [...drafts].map(() => 'rename'),
    );
    expect(read('dist/src/greeting.js')).to.include('good day');
    expect(built()).not.to.include('src/gone.js');
  });
});

function filesUnder(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort();
}

/** The inode and the time of the last write of each file. */
function statesOf(folder: string): readonly string[] {
  return filesUnder(folder).map((path) => {
    const { ino, mtimeNs } = statSync(join(folder, path), { bigint: true });
    return `${path} ${ino} ${mtimeNs}`;
  });
}

/** Watches a folder's files: the event `rename` means that a name appears, disappears or belongs to another file. */
function changesIn(folder: string): {
  upToNow(): Promise<readonly { readonly kind: string; readonly name: string }[]>;
} {
  const told: { readonly kind: string; readonly name: string }[] = [];
  const watcher = watch(folder, { persistent: false }, (kind, name) => void told.push({ kind, name: name ?? '' }));
  return {
    async upToNow() {
      writeFileSync(join(folder, 'now'), '');
      await untilTrue(() => told.some(({ name }) => name === 'now'));
      rmSync(join(folder, 'now'));
      watcher.close();
      return told;
    },
  };
}

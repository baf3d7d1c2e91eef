import { expect } from 'chai';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  watch,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { rejectionOf } from './support/rejection.js';
import { untilTrue } from './support/until-true.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

describe('Build', () => {
  let house: string;
  const inHouse = (path: string): string => join(house, path);
  const write = (path: string, text: string): void => {
    mkdirSync(join(inHouse(path), '..'), { recursive: true });
    writeFileSync(inHouse(path), text);
  };
  /** A console that greets. */
  const writeConsole = (greeting: string): void => {
    write('src/console/index.html', '<!-- assets -->\n');
    for (const style of ['tokens', 'base']) write(`src/console/styles/${style}.css`, '');
    write('src/console/main.tsx', "import { h } from 'preact';\nimport { greet } from './greet.js';\ngreet(h);\n");
    write('src/console/share/main.tsx', 'console.log(2);\n');
    write('src/console/greet.ts', `export const greet = (h) => console.log("${greeting}", h);\n`);
  };
  /** The copy's own build, in this process. */
  const build = async (...flags: string[]): Promise<void> => {
    const program = (await import(pathToFileURL(inHouse('src/build.mjs')).href)) as {
      build(folders: readonly string[]): Promise<void>;
    };
    await program.build(['src']);
    if (flags.includes('--all')) await program.build(['test']);
  };
  /** The same as a process of its own. */
  const buildAside = async (...flags: string[]): Promise<void> => {
    await promisify(execFile)(process.execPath, [inHouse('src/build.mjs'), ...flags]);
  };
  const built = (): readonly string[] => filesUnder(inHouse('dist'));
  /** What was made of it with a console that says hello: to make one costs a second of a processor. */
  let withHello: string | null = null;
  const keepHello = (): void => {
    withHello = mkdtempSync(join(tmpdir(), 'council-built-'));
    cpSync(inHouse('dist'), withHello, { recursive: true });
  };
  const buildHello = async (): Promise<void> => {
    writeConsole('hello');
    if (withHello !== null) return cpSync(withHello, inHouse('dist'), { recursive: true });
    await build();
    keepHello();
  };

  after(() => {
    if (withHello !== null) rmSync(withHello, { recursive: true });
  });

  beforeEach(() => {
    house = mkdtempSync(join(tmpdir(), 'council-build-'));
    mkdirSync(inHouse('src'));
    for (const program of ['build.mjs', 'build-console.mjs'])
      cpSync(join(root, 'src', program), inHouse(`src/${program}`));
    symlinkSync(join(root, 'node_modules'), inHouse('node_modules'));
    write('src/greeting.ts', 'export const greeting: string = "hello";\n');
    write('src/deep/er/file.ts', 'export const depth: number = 2;\n');
    write('src/generated/schemas.d.ts', 'export type Nothing = never;\n');
    write('test/greeting.test.ts', 'export {};\n');
  });

  afterEach(() => {
    rmSync(house, { recursive: true, force: true });
  });

  it('transpiles src, and test with --all', async () => {
    await build();
    expect(built()).to.deep.equal(['.stamp-src', 'src/deep/er/file.js', 'src/greeting.js']);

    await build('--all');
    expect(built()).to.include.members(['.stamp-test', 'test/greeting.test.js']);
  });

  it('keeps every line and column where the source has it', async () => {
    await build();
    expect(readFileSync(inHouse('dist/src/greeting.js'), 'utf8')).to.equal(
      'export const greeting         = "hello";\n',
    );
  });

  it('refuses what is more than types, and names it', async () => {
    write('src/kinds.ts', 'export const x = 1;\nexport enum Kind { A }\n');
    expect(String(await rejectionOf(build()))).to.include('src/kinds.ts: "export enum Kind { A }" is');
    expect(built()).not.to.include('.stamp-src');
  });

  it('makes the validators of recorded events again when a schema changes', async () => {
    cpSync(join(root, 'schemas'), inHouse('schemas'), { recursive: true });
    await build();
    const load = async (name: string): Promise<Record<string, Record<string, (data: unknown) => boolean>>> => {
      cpSync(inHouse('dist/src/generated/recorded-events.js'), inHouse(name));
      return (await import(pathToFileURL(inHouse(name)).href)) as Awaited<ReturnType<typeof load>>;
    };
    const started = { epoch: 1 };
    expect((await load('before.mjs'))['runEvents']?.['RunStarted']?.(started)).to.equal(true);
    const file = inHouse('schemas/run-events.json');
    const changed = readFileSync(file, 'utf8').replace('"required": ["epoch"]', '"required": ["epoch", "why"]');
    writeFileSync(file, changed);
    await build();
    expect((await load('after.mjs'))['runEvents']?.['RunStarted']?.(started)).to.equal(false);
  });

  it('puts types beside the client and keeps them where what makes them is missing', async () => {
    cpSync(join(root, 'schemas'), inHouse('schemas'), { recursive: true });
    write('src/client/run.ts', 'export const idOf = (run: { readonly id: string }): string => run.id;\n');
    await build();
    expect(readFileSync(inHouse('dist/src/client/run.d.ts'), 'utf8')).to.match(/^export declare const idOf: \(run: /);
    expect(readFileSync(inHouse('dist/src/generated/schemas.d.ts'), 'utf8')).to.include('export interface RunResult');
    rmSync(inHouse('node_modules'));
    mkdirSync(inHouse('node_modules'));
    symlinkSync(join(root, 'node_modules/typescript'), inHouse('node_modules/typescript'));
    symlinkSync(join(root, 'node_modules/ajv'), inHouse('node_modules/ajv'));
    const before = statesOf(inHouse('dist'));
    await build();
    expect(statesOf(inHouse('dist'))).to.deep.equal(before);
    write('src/client/run.ts', 'export const idOf = (run: { readonly id: number }): number => run.id;\n');
    await build();
    expect(readFileSync(inHouse('dist/src/client/run.d.ts'), 'utf8')).to.include(': number');
    expect(existsSync(inHouse('dist/src/generated/schemas.d.ts'))).to.equal(true);
  });

  it('refuses what the client exports without naming its type', async () => {
    write('src/client/run.ts', 'export const length = [1].length;\n');
    let said = '';
    await build().catch((error: unknown) => (said = String(error)));
    expect(said).to.match(/The types of src\/client\/run\.ts cannot be told from it alone: .*explicit type/);
  });

  it('writes nothing when nothing has changed', async () => {
    await build('--all');
    const before = statesOf(inHouse('dist'));
    await build('--all');
    expect(statesOf(inHouse('dist'))).to.deep.equal(before);
  });

  it('follows a source that changes', async () => {
    await build();
    write('src/greeting.ts', 'export const greeting: string = "good day";\n');
    await build();
    expect(readFileSync(inHouse('dist/src/greeting.js'), 'utf8')).to.contain('good day');
  });

  it('transpiles again only the sources that changed', async () => {
    await build();
    const before = new Map(statesOf(inHouse('dist')).map((state) => [state.split(' ')[0], state]));
    write('src/greeting.ts', 'export const greeting: string = "good day";\n');
    await build();
    const written = statesOf(inHouse('dist')).filter((state) => before.get(state.split(' ')[0]) !== state);
    expect(written.map((state) => state.split(' ')[0])).to.deep.equal(['.stamp-src', 'src/greeting.js']);
  });

  it('makes the console after it could not be made, and leaves no page until then', async () => {
    const page = inHouse('dist/console/index.html');
    writeConsole('hello');
    write('dist/console/index.html', 'of another console\n');
    rmSync(inHouse('src/console/greet.ts'));
    expect(String(await rejectionOf(build()))).to.include('greet.js');
    expect(existsSync(page)).to.equal(false);
    writeConsole('hello');
    await build();
    expect(readFileSync(page, 'utf8')).to.include('/console/assets/');
    keepHello();
  });

  it('makes a changed console again beside a start, which never finds the one before', async () => {
    const page = inHouse('dist/console/index.html');
    const pageIfThere = (): string | null => (existsSync(page) ? readFileSync(page, 'utf8') : null);
    await buildHello();
    const old = readFileSync(page, 'utf8');
    writeConsole('good day');
    const start = spawn(process.execPath, [inHouse('src/build.mjs'), '--console-later'], { stdio: 'ignore' });
    await once(start, 'exit');
    expect(pageIfThere()).not.to.equal(old);
    await untilTrue(() => pageIfThere() !== null);
    expect(pageIfThere()).not.to.equal(old);
    await untilTrue(() => built().includes('.stamp-console'));
  });

  it('leaves the console as it is where the packages that it was made of lie elsewhere', async () => {
    await buildHello();
    const before = statesOf(inHouse('dist'));
    rmSync(inHouse('node_modules'));
    await buildAside('--console-later');
    expect(statesOf(inHouse('dist'))).to.deep.equal(before);
  });

  it('rebuilds everything after a build that was ended in the middle', async () => {
    await build();
    rmSync(inHouse('dist/.stamp-src'));
    write('dist/src/greeting.js', 'half of a build\n');
    await build();
    expect(readFileSync(inHouse('dist/src/greeting.js'), 'utf8')).to.contain('hello');
  });

  it('removes what has no source any more, and nothing of the other folder', async () => {
    await build('--all');
    rmSync(inHouse('src/deep'), { recursive: true });
    await build();
    expect(built()).to.deep.equal(['.stamp-src', '.stamp-test', 'src/greeting.js', 'test/greeting.test.js']);
  });

  it('starts through a symbolic link', async () => {
    await build();
    const link = inHouse('link');
    symlinkSync(house, link);
    // To see what has no source any more it need not load a compiler.
    rmSync(inHouse('src/greeting.ts'));
    await promisify(execFile)(process.execPath, [join(link, 'src/build.mjs')]);
    expect(built()).to.deep.equal(['.stamp-src', 'src/deep/er/file.js']);
  });

  it('may run several times at once, and never takes a file away from whoever runs from dist', async () => {
    await build();
    write('dist/src/gone.js', 'export {};\n');
    const file = inHouse('dist/src/greeting.js');
    write('src/greeting.ts', 'export const greeting: string = "good day";\n');

    const changes = changesIn(inHouse('dist/src'));
    await Promise.all([buildAside('--all'), buildAside('--all')]);
    const told = await changes.upToNow();
    // Each draft has taken its place in one step: nothing else has happened to it.
    const drafts = new Set(told.map(({ name }) => name).filter((name) => name.startsWith('greeting.js.')));
    expect(drafts.size).to.be.within(1, 2);
    expect(told.filter(({ name }) => name === 'greeting.js').map(({ kind }) => kind)).to.deep.equal(
      [...drafts].map(() => 'rename'),
    );
    expect(readFileSync(file, 'utf8')).to.include('good day');
    expect(built()).to.deep.equal([
      '.stamp-src',
      '.stamp-test',
      'src/deep/er/file.js',
      'src/greeting.js',
      'test/greeting.test.js',
    ]);
  });
});

function filesUnder(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort();
}

/** When and as which inode each file was written last. */
function statesOf(folder: string): readonly string[] {
  return filesUnder(folder).map((path) => {
    const { ino, mtimeNs } = statSync(join(folder, path), { bigint: true });
    return `${path} ${ino} ${mtimeNs}`;
  });
}

/** What the system tells of a folder's files: `rename` when a name comes or goes, or is another file's from now on. */
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

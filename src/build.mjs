/**
 * Makes dist from the sources with esbuild: the service (and the tests, with --all) module by module, the console as
 * bundles. esbuild removes types without checking them, so a start needs no devDependencies; `npm run build` checks them
 * first. Several builds may run at once, also beside a service that runs from dist: each file is replaced in one step.
 */
import { createHash, randomUUID } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const dist = join(root, 'dist');

/** Brings dist up to date with src, and with test if `withTests`. Does nothing if no source is newer than dist. */
export async function build({ withTests = false } = {}) {
  await bringUpToDate('src', ['src', 'schemas', 'package-lock.json'], async () => [
    ...(await modulesIn('src')),
    ...(await validators()),
    ...(await clientTypes()),
    ...(await consoleFiles()),
  ]);
  if (withTests) await bringUpToDate('test', ['test', 'package-lock.json'], () => modulesIn('test'));
}

/**
 * Writes the files that `make` returns as `[path in dist, text]` pairs, and removes those of earlier builds. The mark has
 * the time at which the build started, so a source that changes meanwhile is newer.
 */
async function bringUpToDate(name, sources, make) {
  const mark = join(dist, `.built-${name}`);
  const startedAt = new Date();
  if (existsSync(mark) && timeOfLastChange(sources) < statSync(mark).mtimeMs) return;
  const files = new Map(await make());
  for (const [path, text] of files) replace(join(dist, path), text);
  const folders = name === 'src' ? ['src', 'console'] : [name];
  const present = folders.flatMap((folder) => filesUnder(join(dist, folder)));
  const outdated = present.filter((file) => OUTPUT.test(file) && !files.has(relative(dist, file)));
  for (const file of outdated) rmSync(file, { force: true });
  for (const file of outdated) removeEmptyFolders(dirname(file));
  writeFileSync(mark, '');
  utimesSync(mark, startedAt, startedAt);
}

/** Removes a folder and its parents below dist as far as they are empty. */
function removeEmptyFolders(folder) {
  for (let each = folder; each !== dist; each = dirname(each)) {
    try {
      rmdirSync(each);
    } catch {
      // It holds files, or a concurrent build has removed it.
      return;
    }
  }
}

/** Files that a build makes; other files in dist are drafts of a concurrent build. */
const OUTPUT = /\.(js|js\.map|d\.ts|css|html|svg|webmanifest)$/;

/** In milliseconds. Folders count too, because removing or renaming a file changes only its folder. */
function timeOfLastChange(sources) {
  const paths = sources.map((source) => join(root, source)).filter((path) => existsSync(path));
  const entries = paths.filter((path) => statSync(path).isDirectory()).flatMap(entriesUnder);
  const all = [...paths, ...entries.map((entry) => join(entry.parentPath, entry.name))];
  return Math.max(...all.filter((path) => !path.startsWith(GENERATED)).map((path) => statSync(path).mtimeMs));
}

/** Types that the type check makes from the schemas: no sources. */
const GENERATED = join(root, 'src/generated');

/** JavaScript of a folder's modules, each with its source map. Browsers load the client, whose comments are in its types. */
async function modulesIn(folder) {
  const sources = filesUnder(join(root, folder)).filter((path) => path.endsWith('.ts') && !path.endsWith('.d.ts'));
  const isOfClient = (path) => path.startsWith(join(root, 'src/client/'));
  const options = { bundle: false, outbase: root, sourcemap: 'linked', sourcesContent: false };
  const [client, others] = await Promise.all([
    bundled({ ...options, entryPoints: sources.filter(isOfClient), minifyWhitespace: true }),
    bundled({ ...options, entryPoints: sources.filter((path) => !isOfClient(path)) }),
  ]);
  return [...client, ...others];
}

/** The validators of recorded events and of requests, which ajv compiles from the schemas. */
async function validators() {
  if (!existsSync(join(root, 'schemas/generate-validators.mjs'))) return [];
  const { VALIDATORS } = await import('../schemas/generate-validators.mjs');
  return Object.entries(VALIDATORS).map(([name, textOf]) => [`src/generated/${name}.js`, textOf()]);
}

/** Types of the client and of the schemas that it names. devDependencies make them, so a start works without. */
async function clientTypes() {
  const sources = filesUnder(join(root, 'src/client')).filter((path) => /(?<!\.d)\.ts$/.test(path));
  if (sources.length === 0 || !isInstalled('typescript') || !isInstalled('json-schema-to-typescript')) return [];
  const [{ default: ts }, { schemaTypes }] = await Promise.all([
    import('typescript'),
    import('../schemas/generate-types.mjs'),
  ]);
  const declarations = sources.map((path) => [
    relative(root, path).replace(/\.ts$/, '.d.ts'),
    declarationsOf(ts, path),
  ]);
  return [...declarations, ['src/generated/schemas.d.ts', await schemaTypes()]];
}

/** Made from each source alone, without a type check, because every export of the client states its type. */
function declarationsOf(ts, path) {
  const { outputText, diagnostics = [] } = ts.transpileDeclaration(readFileSync(path, 'utf8'), {
    fileName: path,
    reportDiagnostics: true,
    compilerOptions: {
      target: ts.ScriptTarget.ES2023,
      module: ts.ModuleKind.ESNext,
      verbatimModuleSyntax: true,
      strict: true,
      isolatedDeclarations: true,
      declaration: true,
    },
  });
  if (diagnostics.length === 0) return outputText;
  const faults = diagnostics.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'));
  throw new Error(`Cannot declare the types of ${relative(root, path)}: ${faults.join('; ')}`);
}

function isInstalled(name) {
  return existsSync(join(root, 'node_modules', name));
}

/** The page, and its assets under a folder named after their content, so that browsers may keep them for good. */
async function consoleFiles() {
  const folder = join(root, 'src/console');
  if (!existsSync(folder)) return [];
  const options = {
    bundle: true,
    minify: true,
    jsx: 'automatic',
    jsxImportSource: 'preact',
    outbase: folder,
    alias: { entities: join(folder, 'record/entities.ts') },
  };
  const [app, share] = await Promise.all([
    bundled({
      ...options,
      entryPoints: [join(folder, 'main.tsx'), join(folder, 'console.css')],
      splitting: true,
      chunkNames: '[name]-[hash]',
    }).then((files) => withFirstPageJoined(new Map(files))),
    // A shared file takes this one with it, so it is one module: what main.tsx loads later is in it.
    bundled({ ...options, entryPoints: { share: join(folder, 'share/main.tsx') } }),
  ]);
  const plain = readdirSync(folder).filter((name) => /\.(svg|webmanifest)$/.test(name));
  const assets = [...app, ...share, ...plain.map((name) => [name, readFileSync(join(folder, name), 'utf8')])];
  const version = createHash('sha256').update(JSON.stringify(assets)).digest('hex').slice(0, 12);
  const base = `/console/assets/${version}/`;
  const tags = [
    ...plain
      .filter((name) => name.endsWith('.webmanifest'))
      .map((name) => `<link rel="manifest" href="${base}${name}" />`),
    `<link rel="stylesheet" href="${base}console.css" />`,
    `<script type="module" src="${base}main.js"></script>`,
  ];
  const page = readFileSync(join(folder, 'index.html'), 'utf8').replace('<!-- assets -->', tags.join('\n    '));
  return [...assets.map(([path, text]) => [`console/assets/${version}/${path}`, text]), ['console/index.html', page]];
}

/**
 * Makes one module of those that the first page loads at once: esbuild splits them by the pages that use them, into dozens of
 * small ones, which take more bytes and requests. Modules that load later import from it.
 */
async function withFirstPageJoined(files) {
  const first = importedBy('main.js', files);
  const exported = new Set();
  const fromMain = (names, path) =>
    names.split(',').map((each) => {
      const [name, local = name] = each.split(' as ');
      const shared = `${name}$${first.indexOf(path)}`;
      exported.add(`export{${name} as ${shared}}from"./${path}"`);
      return `${shared} as ${local}`;
    });
  const isLater = ([path]) => path.endsWith('.js') && path !== 'main.js' && !first.includes(path);
  const later = [...files].filter(isLater).map(([path, text]) => [
    path,
    text.replace(/import(?:\{([^}]+)\}from)?"\.\/([^"]+)"/g, (whole, names, from) => {
      if (!first.includes(from)) return whole;
      return `import${names === undefined ? '' : `{${fromMain(names, from)}}from`}"./main.js"`;
    }),
  ]);
  const ofFiles = {
    name: 'files',
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^\.\// }, ({ path, kind }) =>
        kind === 'dynamic-import' ? { path, external: true } : { path: path.slice(2), namespace: 'files' },
      );
      onLoad({ filter: /./, namespace: 'files' }, ({ path }) => ({ contents: files.get(path) }));
    },
  };
  const stdin = { contents: ['import"./main.js"', ...exported].join(';') };
  const [[, main]] = await bundled({ stdin, bundle: true, minify: true, plugins: [ofFiles] });
  const others = [...files].filter(([path]) => !path.endsWith('.js'));
  return [['main.js', main], ...later, ...others];
}

/** The modules that a module of the console imports at once, and those that they import. */
function importedBy(path, files, found = new Set()) {
  for (const [, name] of files.get(path).matchAll(/(?:from|import)"\.\/([^"]+)"/g)) {
    if (found.has(name)) continue;
    found.add(name);
    importedBy(name, files, found);
  }
  return [...found];
}

/** Runs esbuild and returns its outputs as `[path, text]` pairs. */
async function bundled(options) {
  const { build: esbuild } = await import('esbuild');
  const { outputFiles } = await esbuild({
    ...options,
    outdir: dist,
    write: false,
    format: 'esm',
    target: 'es2023',
    charset: 'utf8',
    logLevel: 'warning',
    legalComments: 'none',
    // The options that matter to esbuild: a container's build has no tsconfig.json.
    tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true } },
  });
  return outputFiles.map(({ path, text }) => [relative(dist, path), text]);
}

/** Paths of a folder's files at any depth; a missing folder has none. */
function filesUnder(folder) {
  if (!existsSync(folder)) return [];
  return entriesUnder(folder)
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

function entriesUnder(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true });
}

/** Writes a file in one step: a concurrent reader gets the old text or the new one. */
function replace(path, text) {
  mkdirSync(dirname(path), { recursive: true });
  const draft = `${path}.${randomUUID()}`;
  writeFileSync(draft, text);
  renameSync(draft, path);
}

/** Whether node was started with this file, also through a symbolic link. */
function isMain() {
  return process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url);
}

if (isMain()) await build({ withTests: process.argv.includes('--all') });

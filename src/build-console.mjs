/**
 * Makes dist/console, what browsers load: the page, its styles, and as native modules all that src/console/main.tsx
 * loads, of this tree and of packages. They become a few modules; what nobody uses of them is left out, and names are
 * shortened: a third of what they would weigh one by one.
 */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const PAGE = join(root, 'src/console/index.html');
export const CONSOLE_ENTRY = join(root, 'src/console/main.tsx');
/** Loaded by no page: a file that somebody shares takes what this loads with it. */
const SHARED_ENTRY = join(root, 'src/console/share/main.tsx');
const STYLES = join(root, 'src/console/styles');
/** Come before the other styles, in this order. */
const FIRST_STYLES = ['tokens.css', 'base.css'];

/** What makes it beside the sources: a change of it makes all anew. */
export const CONSOLE_BUILDER = fileURLToPath(import.meta.url);

/**
 * All files of dist/console, as texts by path, the page last, and the files that they are made of.
 *
 * @param moduleOf gives the JavaScript of a source, JSX in it, by its path from the root and its text
 */
export async function buildConsole(moduleOf) {
  const { chunks, sources } = await chunksFrom({ main: CONSOLE_ENTRY, share: SHARED_ENTRY }, moduleOf);
  const files = new Map([...chunks.map(({ fileName, code }) => [fileName, code]), ['console.css', styles()]]);
  const version = versionOf(files);
  const placed = new Map([...files].map(([path, text]) => [`assets/${version}/${path}`, text]));
  placed.set('index.html', page(version, chunks));
  return { files: placed, sources: [...sources, PAGE, ...styleFiles()] };
}

/** @param input entries by the name of their chunk */
async function chunksFrom(input, moduleOf) {
  const { rollup } = await import('@rollup/wasm-node');
  const sources = [];
  const bundle = await rollup({
    input,
    plugins: [sourcesAndPackages(moduleOf, (path) => sources.push(path))],
    // Of the two ways to make elements the one whose calls are shorter.
    jsx: { mode: 'classic', factory: 'h', fragment: 'Fragment', importSource: 'preact' },
    // Of this tree a module is loaded for what it exports.
    treeshake: { moduleSideEffects: (path) => path.includes('/node_modules/') },
    onwarn: ({ message }) => {
      throw new Error(message);
    },
  });
  const { output } = await bundle.generate({
    format: 'es',
    manualChunks: chunkOf,
    entryFileNames: '[name].js',
    chunkFileNames: '[name].js',
  });
  const { minify } = await import('terser');
  const smaller = async (chunk) => ({ ...chunk, code: (await minify(chunk.code, MINIFIED)).code });
  return { chunks: await Promise.all(output.map(smaller)), sources };
}

/**
 * What becomes one module, by the first pattern that fits: few of many texts that resemble each other weigh less than
 * many of few. A visit loads `base` and `main` first, the others when their pages are opened.
 */
const CHUNKS = {
  // A run and all its moments: of the modules a shared file loads these and `base`, which ask no service.
  record:
    /^(node_modules\/diff\/|src\/(run|graph|council|eventsourcing)\/|src\/console\/(share\/shared|ui\/(graph|camera|text-diff)|record\/(?!counts|durations|draft-|plain-)|pages\/run\/(?!page|head|fork|pause|share)))/,
  base: /^(node_modules\/|src\/(client\/|console\/(shell\/router|ui\/(?!resource)|record\/)))/,
  runs: /^src\/console\/pages\/(run|compare|inbox)\//,
  blueprints: /^src\/console\/pages\/blueprint/,
  main: /^src\/console\/(main|shell|ui|pages)/,
};

function chunkOf(path) {
  return Object.keys(CHUNKS).find((chunk) => CHUNKS[chunk].test(nameOf(path)));
}

/** Of what makes code smaller only what takes no time that counts: all of it gains another 1 % for a second of work. */
const MINIFIED = {
  module: true,
  ecma: 2022,
  compress: {
    defaults: false,
    booleans: true,
    conditionals: true,
    evaluate: true,
    if_return: true,
    join_vars: true,
    properties: true,
    reduce_vars: true,
    side_effects: true,
  },
  mangle: true,
};

/** How modules are found, and become JavaScript. @param onLoad hears the path of each */
function sourcesAndPackages(moduleOf, onLoad) {
  return {
    name: 'sources-and-packages',
    resolveId(specifier, importer) {
      if (importer === undefined) return specifier;
      if (!specifier.startsWith('.')) return fileURLToPath(import.meta.resolve(specifier, pathToFileURL(importer)));
      return sourceAt(specifier, importer) ?? join(dirname(importer), specifier);
    },
    load(path) {
      onLoad(path);
      const text = readFileSync(path, 'utf8');
      return /\.tsx?$/.test(path) ? moduleOf(nameOf(path), text) : text;
    },
  };
}

/** Path of the source that a module of this tree imports; undefined where it is none. */
function sourceAt(specifier, importer) {
  const path = join(dirname(importer), specifier);
  return [path.replace(/\.js$/, '.ts'), path.replace(/\.js$/, '.tsx')].find(
    (each) => each !== path && existsSync(each),
  );
}

/** A path from the root, as the sources spell paths. */
function nameOf(path) {
  return relative(root, path).replaceAll(sep, '/');
}

function styleFiles() {
  const names = readdirSync(STYLES).filter((name) => name.endsWith('.css'));
  const ordered = [...FIRST_STYLES, ...names.filter((name) => !FIRST_STYLES.includes(name)).sort()];
  return ordered.map((name) => join(STYLES, name));
}

/** All style sheets as one, without comments, and without spaces where they mean nothing. */
function styles() {
  const text = styleFiles().map((file) => readFileSync(file, 'utf8'));
  return text
    .join('\n')
    .replace(/\/\*[^]*?\*\//g, '')
    .replace(/\s+/g, ' ')
    .replace(/ ?([{};,]) ?/g, '$1')
    .replaceAll(': ', ':')
    .replace(/([ :,(])0\./g, '$1.')
    .replaceAll(';}', '}');
}

/** Names what is served, so that browsers may keep it for good. */
function versionOf(files) {
  const hash = createHash('sha256');
  for (const [path, text] of files) hash.update(`${path}\n${text}\n`);
  return hash.digest('hex').slice(0, 12);
}

/** The page, which names what its first script loads so that browsers ask for all of it at once. */
function page(version, chunks) {
  const base = `/console/assets/${version}/`;
  const first = chunks.find(({ facadeModuleId }) => facadeModuleId === CONSOLE_ENTRY);
  const tags = [
    `<link rel="stylesheet" href="${base}console.css" />`,
    ...first.imports.map((path) => `<link rel="modulepreload" href="${base}${path}" />`),
    `<script type="module" src="${base}${first.fileName}"></script>`,
  ];
  return readFileSync(PAGE, 'utf8').replace('<!-- assets -->', tags.join('\n    '));
}

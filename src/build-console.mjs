/**
 * Makes dist/console, what browsers load: the page, its styles, and as one native module all that src/console/main.tsx
 * loads, of this tree and of packages; what a shared file takes with it is another. What nobody uses of them is left out,
 * and names are shortened: a third of what they would weigh one by one.
 */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const PAGE = join(root, 'src/console/index.html');
export const CONSOLE_ENTRY = join(root, 'src/console/main.tsx');
/** Loaded by no page: a file that somebody shares takes it with it. */
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
  const sources = new Set([PAGE, ...styleFiles()]);
  const plugin = sourcesAndPackages(moduleOf, (path) => sources.add(path));
  const files = new Map([
    ['main.js', await moduleFrom(CONSOLE_ENTRY, plugin)],
    ['share.js', await moduleFrom(SHARED_ENTRY, plugin)],
    ['console.css', styles()],
  ]);
  const version = versionOf(files);
  const placed = new Map([...files].map(([path, text]) => [`assets/${version}/${path}`, text]));
  placed.set('index.html', page(version));
  return { files: placed, sources: [...sources] };
}

/**
 * An entry with all that it loads, as one module: many texts that resemble each other weigh a twentieth less together,
 * as gzip, than in five parts.
 */
async function moduleFrom(entry, plugin) {
  const { rollup } = await import('@rollup/wasm-node');
  const bundle = await rollup({
    input: entry,
    plugins: [plugin],
    // Of the two ways to make elements the one whose calls are shorter.
    jsx: { mode: 'classic', factory: 'h', fragment: 'Fragment', importSource: 'preact' },
    // Of this tree a module is loaded for what it exports.
    treeshake: { moduleSideEffects: (path) => path.includes('/node_modules/') },
    onwarn: ({ message }) => {
      throw new Error(message);
    },
  });
  const { output } = await bundle.generate({ format: 'es' });
  const { minify } = await import('terser');
  const { code } = await minify(output[0].code, MINIFIED);
  return code;
}

/**
 * What is inlined less and written alike everywhere is longer, but shorter as gzip. `unsafe_arrows`: no package makes an
 * object by `new` of a function expression that does without `this`.
 */
const MINIFIED = {
  module: true,
  ecma: 2022,
  compress: { passes: 3, inline: 1, lhs_constants: false, sequences: false, unsafe_arrows: true },
};

/** How modules are found, and become JavaScript. @param onLoad hears the path of each */
function sourcesAndPackages(moduleOf, onLoad) {
  const loaded = new Map();
  return {
    name: 'sources-and-packages',
    resolveId(specifier, importer) {
      if (importer === undefined) return specifier;
      if (!specifier.startsWith('.')) return fileURLToPath(import.meta.resolve(specifier, pathToFileURL(importer)));
      return sourceAt(specifier, importer) ?? join(dirname(importer), specifier);
    },
    load(path) {
      if (!loaded.has(path)) {
        onLoad(path);
        const text = readFileSync(path, 'utf8');
        loaded.set(path, /\.tsx?$/.test(path) ? moduleOf(nameOf(path), text) : text);
      }
      return loaded.get(path);
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
    .replace(/ ?([{};,>]) ?/g, '$1')
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

/** The page, with the addresses of what it loads. */
function page(version) {
  const base = `/console/assets/${version}/`;
  const tags = [
    `<link rel="stylesheet" href="${base}console.css" />`,
    `<script type="module" src="${base}main.js"></script>`,
  ];
  return readFileSync(PAGE, 'utf8').replace('<!-- assets -->', tags.join('\n    '));
}

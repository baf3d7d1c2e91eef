/**
 * Transpiles src (and test, with --all) into dist when dist is stale. Types become blanks, so that every line and column
 * of dist is the source's own and no source map is needed; they are not checked, so a start needs no devDependencies:
 * `npm run build` checks them first. Safe to run in several processes at once, and beside
 * one that runs from dist: every file is replaced whole, files without a source go only then, and the stamp is last.
 */
import { createHash, randomUUID } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Made from the schemas, not transpiled: the validators of recorded events. */
const VALIDATORS = 'src/generated/recorded-events.ts';

/** Brings dist up to date with the folders named; returns whether anything had to be written. */
export async function build(folders) {
  const sources = folders
    .flatMap((folder) => filesUnder(folder))
    .filter((path) => path.endsWith('.ts') && !path.endsWith('.d.ts'));
  const texts = new Map(sources.sort().map((path) => [path, readFileSync(join(root, path), 'utf8')]));
  if (folders.includes('src')) for (const text of schemaTexts()) texts.set(VALIDATORS, text);
  const stampFile = join(root, 'dist', `.stamp-${folders.join('-')}`);
  const stamp = stampOf(texts);
  const last = readIfThere(stampFile);
  if (last === stamp.text) return false;

  // Whoever is ended in the middle leaves no stamp: what is in dist then is made anew.
  rmSync(stampFile, { force: true });
  const unchanged = stamp.unchangedSince(last);
  const { default: blankTypes } = await import('ts-blank-space');
  const outputs = new Set();
  for (const [path, text] of texts) {
    const output = join('dist', path.replace(/\.ts$/, '.js'));
    outputs.add(output);
    if (unchanged.has(path) && existsSync(join(root, output))) continue;
    if (path === VALIDATORS) {
      const { validators } = await import('../schemas/generate-validators.mjs');
      writeWhole(join(root, output), validators());
      continue;
    }
    const refuse = (syntax) => {
      throw new Error(`${path}: "${text.slice(syntax.pos, syntax.end).trim()}" is TypeScript that is more than types`);
    };
    writeWhole(join(root, output), blankTypes(text, refuse));
  }
  // Only what a build leaves: the drafts of another build under way end otherwise.
  const built = folders
    .flatMap((folder) => filesUnder(join('dist', folder)))
    .filter((path) => /\.js(\.map)?$/.test(path));
  for (const path of built) if (!outputs.has(path)) rmSync(join(root, path), { force: true });
  writeWhole(stampFile, stamp.text);
  return true;
}

/** All that the validators are made of, as one text; none where there are no schemas. */
function schemaTexts() {
  const files = filesUnder('schemas').filter((path) => /\.(json|mjs)$/.test(path));
  return files.length === 0
    ? []
    : [
        files
          .sort()
          .map((path) => readFileSync(join(root, path), 'utf8'))
          .join('\n'),
      ];
}

/** Paths of a folder's files at any depth, from the root; a missing folder has none. */
function filesUnder(folder) {
  try {
    return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => relative(root, join(entry.parentPath, entry.name)));
  } catch (error) {
    if (error.code === 'ENOENT') return [];
    throw error;
  }
}

/** What dist is made of: a line for this program, then one for each source, by the hashes of their texts. */
function stampOf(texts) {
  const builder = hashOf(readFileSync(fileURLToPath(import.meta.url)));
  const lines = new Map([...texts].map(([path, text]) => [path, `${hashOf(text)} ${path}`]));
  return {
    text: [builder, ...lines.values()].join('\n'),
    /** Paths of the sources that another stamp of the same program knows as they are. */
    unchangedSince(last) {
      const [earlier, ...known] = (last ?? '').split('\n');
      const there = new Set(earlier === builder ? known : []);
      return new Set([...lines].filter(([, line]) => there.has(line)).map(([path]) => path));
    },
  };
}

function hashOf(content) {
  return createHash('sha256').update(content).digest('hex');
}

function readIfThere(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}

function writeWhole(path, text) {
  mkdirSync(dirname(path), { recursive: true });
  const draft = `${path}.${randomUUID()}`;
  writeFileSync(draft, text);
  renameSync(draft, path);
}

/** Whether node was started with this file, also through a symbolic link. */
function isStarted() {
  try {
    return realpathSync(process.argv[1] ?? '') === fileURLToPath(import.meta.url);
  } catch {
    return false;
  }
}

if (isStarted()) {
  await build(['src']);
  if (process.argv.includes('--all')) await build(['test']);
}

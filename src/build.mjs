/**
 * Transpiles src (and test, with --all) into dist when dist is stale. Types are erased, not checked, so a start
 * needs no devDependencies; `npm run build` checks them first. Safe to run in several processes at once: every
 * file is written whole, and the stamp last.
 */
import { createHash, randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Brings dist up to date with the folders named; returns whether anything had to be written. */
export async function build(folders) {
  const sources = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name.endsWith('.ts') && !entry.name.endsWith('.d.ts'))
      .map((entry) => join(entry.parentPath, entry.name).slice(root.length)),
  );
  const texts = new Map(sources.sort().map((path) => [path, readFileSync(join(root, path), 'utf8')]));
  const stampFile = join(root, 'dist', `.stamp-${folders.join('-')}`);
  const stamp = fingerprint(texts);
  if (readIfThere(stampFile) === stamp) return false;

  const { default: ts } = await import('typescript');
  for (const folder of folders) rmSync(join(root, 'dist', folder), { recursive: true, force: true });
  for (const [path, text] of texts) {
    const { outputText } = ts.transpileModule(text, {
      fileName: join(root, path),
      compilerOptions: {
        target: ts.ScriptTarget.ES2023,
        module: ts.ModuleKind.ESNext,
        verbatimModuleSyntax: true,
        inlineSourceMap: true,
        inlineSources: true,
      },
    });
    writeWhole(join(root, 'dist', path.replace(/\.ts$/, '.js')), outputText);
  }
  writeWhole(stampFile, stamp);
  return true;
}

function fingerprint(texts) {
  const hash = createHash('sha256').update(readFileSync(fileURLToPath(import.meta.url)));
  for (const [path, text] of texts) hash.update(`\0${path}\0${text}`);
  return hash.digest('hex');
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

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await build(['src']);
  if (process.argv.includes('--all')) await build(['test']);
}

/**
 * Transpiles src (and test, with --all) into dist when dist is stale. Types become blanks, so that every line and column
 * of dist is the source's own and no source map is needed (but for the client, a library: it has its types beside it);
 * they are not checked, so a start needs no devDependencies: `npm run build` checks them first. Safe to run in several
 * processes at once, and beside one that runs from dist: every file is replaced whole, files without a source go only
 * then, and the stamp is last.
 */
import { execFile, spawn } from 'node:child_process';
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
import { constants, setPriority } from 'node:os';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { CONSOLE_BUILDER, CONSOLE_ENTRY, buildConsole } from './build-console.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));

/** What browsers load of the console is a form of its own. */
const CONSOLE = join(root, 'dist/console');
const CONSOLE_STAMP = join(root, 'dist', '.stamp-console');
/** Makes it, in a process of its own. */
const CONSOLE_PROGRAM = [fileURLToPath(import.meta.url), '--console'];
/** Made from the schemas, not transpiled: the validators of what is recorded and of what requests hold. */
const VALIDATORS = ['src/generated/recorded-events.ts', 'src/generated/requests.ts', 'src/generated/long-requests.ts'];
/** The client is a library: its types lie beside it, and those of the schemas that they are made of. */
const CLIENT = 'src/client/';
const CLIENT_TYPES = 'src/generated/schemas.d.ts';

/** Brings dist up to date with the folders named, the console with src. */
export async function build(folders) {
  const consoleMade = folders.includes('src') && !isConsoleWhole() ? makeConsoleBeside() : null;
  // Heard of below; it may fail before.
  consoleMade?.catch(() => undefined);
  await transpile(folders);
  await consoleMade;
}

/** The console takes longer than all else. */
async function makeConsoleBeside() {
  await promisify(execFile)(process.execPath, CONSOLE_PROGRAM);
}

/** The same without the console. */
export async function transpile(folders) {
  const texts = textsIn(folders);
  const stampFile = join(root, 'dist', `.stamp-${folders.join('-')}`);
  const stamp = stampOf(texts);
  const last = readIfThere(stampFile);
  if (last === stamp.text || (!texts.has(CLIENT_TYPES) && withoutTypes(last) === stamp.text)) return;

  // Whoever is ended in the middle leaves no stamp: what is in dist then is made anew.
  rmSync(stampFile, { force: true });
  const unchanged = stamp.unchangedSince(last);
  for (const [path, text] of texts) {
    const files = outputsOf(path);
    if (unchanged.has(path) && files.every((file) => existsSync(join(root, file)))) continue;
    const made = await madeOf(path, text);
    files.forEach((file, index) => writeWhole(join(root, file), made[index]));
  }
  const outputs = new Set([...texts.keys(), CLIENT_TYPES].flatMap(outputsOf));
  // Only what a build leaves: the drafts of another build under way end otherwise.
  const built = folders
    .flatMap((folder) => filesUnder(join('dist', folder)))
    .filter((path) => /\.(js(\.map)?|d\.ts)$/.test(path));
  for (const path of built) if (!outputs.has(path)) rmSync(join(root, path), { force: true });
  writeWhole(stampFile, stamp.text);
}

/** The console, when any of what it was made of has changed. Until it is made there is no page: nobody is served half. */
async function makeConsole() {
  if (isConsoleWhole()) return;
  removePage();
  const { files, sources } = await buildConsole(await moduleMaker());
  const kept = new Set([...files.keys()].map((path) => path.split('/')[1]));
  const stale = namesIn(join(CONSOLE, 'assets')).filter((name) => !kept.has(name));
  for (const name of stale) rmSync(join(CONSOLE, 'assets', name), { recursive: true, force: true });
  // The page comes last: it names the others.
  for (const [path, text] of files) writeWhole(join(CONSOLE, path), text);
  // Packages may lie elsewhere where this one is installed.
  const paths = [CONSOLE_BUILDER, ...sources].map((path) => relative(root, path));
  writeWhole(CONSOLE_STAMP, consoleStamp(paths.filter((path) => !/^(\.\.|node_modules)\b/.test(path))));
}

/** The same by a process for which nobody waits. */
export function makeConsoleLater() {
  if (isConsoleWhole()) return;
  removePage();
  const maker = spawn(process.execPath, CONSOLE_PROGRAM, { stdio: ['ignore', 'ignore', 'inherit'] });
  // The service beside it comes first.
  if (maker.pid !== undefined) setPriority(maker.pid, constants.priority.PRIORITY_BELOW_NORMAL);
  maker.unref();
}

function removePage() {
  for (const file of [CONSOLE_STAMP, join(CONSOLE, 'index.html')]) rmSync(file, { force: true });
}

/** Whether it is made of the sources as they are; there may be none. */
function isConsoleWhole() {
  if (!existsSync(CONSOLE_ENTRY)) return true;
  const last = readIfThere(CONSOLE_STAMP);
  return last !== null && last === consoleStamp(pathsIn(last)) && existsSync(join(CONSOLE, 'index.html'));
}

/** A line for each file that the console was made of. */
function consoleStamp(paths) {
  return paths.map((path) => `${hashOf(readIfThere(join(root, path)) ?? '')} ${path}`).join('\n');
}

function pathsIn(stamp) {
  return stamp.split('\n').map((line) => line.slice(line.indexOf(' ') + 1));
}

function namesIn(folder) {
  return existsSync(folder) ? readdirSync(folder) : [];
}

/** What dist is made of, by path: the sources in folders, and the schemas where something is made of them. */
function textsIn(folders) {
  const sources = folders
    .flatMap((folder) => filesUnder(folder))
    .filter((path) => path.endsWith('.ts') && !path.endsWith('.d.ts'));
  const texts = new Map(sources.sort().map((path) => [path, readFileSync(join(root, path), 'utf8')]));
  if (!folders.includes('src')) return texts;
  for (const text of schemaTexts()) {
    for (const path of VALIDATORS) texts.set(path, text);
    // What makes them is a devDependency: where it is missing, types that are there stay.
    if (sources.some(isOfClient) && isInstalled('json-schema-to-typescript')) texts.set(CLIENT_TYPES, text);
  }
  return texts;
}

/** What a source becomes, in the order of `madeOf`. */
function outputsOf(path) {
  if (path === CLIENT_TYPES) return [join('dist', path)];
  const output = join('dist', path.replace(/\.ts$/, ''));
  return isOfClient(path) ? [`${output}.d.ts`, `${output}.js`] : [`${output}.js`];
}

async function madeOf(path, text) {
  if (path === CLIENT_TYPES) return [await (await import('../schemas/generate-types.mjs')).schemaTypes()];
  if (VALIDATORS.includes(path)) {
    const made = await import('../schemas/generate-validators.mjs');
    return [made.VALIDATORS[basename(path, '.ts')]()];
  }
  if (isOfClient(path)) return await libraryModule(path, text);
  return [(await moduleMaker())(path, text)];
}

/** What makes the JavaScript of a source, of its path and text, with its JSX as it is. */
async function moduleMaker() {
  const [{ blankSourceFile }, { default: ts }] = await Promise.all([import('ts-blank-space'), import('typescript')]);
  const options = {
    languageVersion: ts.ScriptTarget.ESNext,
    impliedNodeFormat: ts.ModuleKind.ESNext,
    jsDocParsingMode: ts.JSDocParsingMode.ParseNone,
  };
  return (path, text) => {
    const refuse = (syntax) => {
      throw new Error(`${path}: "${text.slice(syntax.pos, syntax.end).trim()}" is TypeScript that is more than types`);
    };
    const kind = path.endsWith('.tsx') ? ts.ScriptKind.TSX : ts.ScriptKind.TS;
    return blankSourceFile(ts.createSourceFile(path, text, options, false, kind), refuse);
  };
}

/**
 * The types of a source, told from itself alone: what it exports names its types. And the module, which browsers load:
 * without the comments, a third of it, that stand beside the types too.
 */
async function libraryModule(path, text) {
  const { default: ts } = await import('typescript');
  const compilerOptions = {
    target: ts.ScriptTarget.ES2023,
    module: ts.ModuleKind.ESNext,
    verbatimModuleSyntax: true,
    strict: true,
  };
  const { outputText: types, diagnostics = [] } = ts.transpileDeclaration(text, {
    fileName: join(root, path),
    reportDiagnostics: true,
    compilerOptions: { ...compilerOptions, isolatedDeclarations: true, declaration: true },
  });
  const { outputText } = ts.transpileModule(text, { compilerOptions: { ...compilerOptions, removeComments: true } });
  if (diagnostics.length === 0) return [types, outputText];
  const faults = diagnostics.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'));
  throw new Error(`The types of ${path} cannot be told from it alone: ${faults.join('; ')}`);
}

function isOfClient(path) {
  return path.startsWith(CLIENT);
}

function isInstalled(name) {
  return existsSync(join(root, 'node_modules', name));
}

function withoutTypes(stamp) {
  return stamp?.replace(new RegExp(`\\n.* ${CLIENT_TYPES}$`, 'm'), '');
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
  const builder = hashOf(readFileSync(fileURLToPath(import.meta.url), 'utf8'));
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
  const is = (flag) => process.argv.includes(flag);
  if (is('--console')) {
    await makeConsole();
  } else if (is('--console-later')) {
    await transpile(['src']);
    makeConsoleLater();
  } else {
    await build(['src']);
    if (is('--all')) await build(['test']);
  }
}

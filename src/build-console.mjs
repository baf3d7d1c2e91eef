/**
 * Makes dist/console, what browsers load: the page, its styles, and as native modules all that src/console/main.tsx
 * loads, of this tree and of packages, each with the specifiers of its imports made relative and without comments.
 * There is no bundler: what is served is what is written here, file by file.
 */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join, posix, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const PAGE = 'src/console/index.html';
const ENTRY = 'src/console/main.tsx';
/** Loaded by no page: a file that somebody shares takes these modules with it. */
const SHARED_ENTRY = 'src/console/share/main.tsx';
const STYLES = 'src/console/styles';
/** Come before the other styles, in this order. */
const FIRST_STYLES = ['tokens.css', 'base.css'];

/** What makes it beside the sources: a change of it makes all anew. */
export const CONSOLE_BUILDER = import.meta.url;

/** All files of dist/console, by path, as texts; none where there are no sources of it. */
export async function consoleFiles() {
  if (!existsSync(join(root, ENTRY))) return new Map();
  const { default: ts } = await import('typescript');
  const modules = modulesFrom([ENTRY, SHARED_ENTRY], ts);
  const styles = styleSheets();
  const files = new Map([...modules].map(([path, { text }]) => [path, text]));
  for (const [path, text] of styles) files.set(path, text);
  const version = versionOf(files);
  const placed = new Map([...files].map(([path, text]) => [`assets/${version}/${path}`, text]));
  placed.set('index.html', page({ version, styles: [...styles.keys()], modules, entry: outputOf(ENTRY) }));
  return placed;
}

/** The modules that entries load, by their path from the assets' folder: their texts, and what they load at once. */
function modulesFrom(entries, ts) {
  const modules = new Map();
  const waiting = [...entries];
  for (const source of waiting) {
    const output = outputOf(source);
    if (modules.has(output)) continue;
    const { text, loaded, later } = transpiled(source, ts);
    modules.set(output, { text, loaded: loaded.map(outputOf) });
    waiting.push(...loaded, ...later);
  }
  return modules;
}

/** A module for browsers, and the sources of what it loads: at once, and later by `import()`. */
function transpiled(source, ts) {
  const [loaded, later] = [[], []];
  const rewritten = (specifier, list) => {
    const target = sourceOf(specifier.text, source);
    list.push(target);
    const path = posix.relative(posix.dirname(outputOf(source)), outputOf(target));
    return ts.factory.createStringLiteral(path.startsWith('.') ? path : `./${path}`);
  };
  const rewrite = (context) => (file) => {
    const visit = (node) => {
      if (ts.isImportDeclaration(node)) {
        const specifier = rewritten(node.moduleSpecifier, loaded);
        return ts.factory.updateImportDeclaration(node, node.modifiers, node.importClause, specifier, node.attributes);
      }
      if (ts.isExportDeclaration(node) && node.moduleSpecifier !== undefined) {
        const { modifiers, isTypeOnly, exportClause, attributes } = node;
        const specifier = rewritten(node.moduleSpecifier, loaded);
        return ts.factory.updateExportDeclaration(node, modifiers, isTypeOnly, exportClause, specifier, attributes);
      }
      if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
        const specifier = rewritten(node.arguments[0], later);
        return ts.factory.updateCallExpression(node, node.expression, node.typeArguments, [specifier]);
      }
      return ts.visitEachChild(node, visit, context);
    };
    return ts.visitNode(file, visit);
  };
  const { outputText } = ts.transpileModule(readFileSync(join(root, source), 'utf8'), {
    fileName: source.replace(/\.mjs$/, '.js'),
    transformers: { after: [rewrite] },
    compilerOptions: {
      target: ts.ScriptTarget.ES2022,
      module: ts.ModuleKind.ESNext,
      jsx: ts.JsxEmit.ReactJSX,
      jsxImportSource: 'preact',
      allowJs: true,
      verbatimModuleSyntax: true,
      removeComments: true,
    },
  });
  return { text: outputText.replace(/^ {4,}/gm, (indent) => ' '.repeat(indent.length / 4)), loaded, later };
}

/** The file that a specifier means, from the root. */
function sourceOf(specifier, importer) {
  if (specifier.startsWith('.')) {
    const path = posix.join(posix.dirname(importer), specifier);
    const found = [path, path.replace(/\.js$/, '.ts'), path.replace(/\.js$/, '.tsx')].find((each) =>
      existsSync(join(root, each)),
    );
    if (found === undefined) throw new Error(`${importer} imports "${specifier}", which is not there`);
    return found;
  }
  return relative(root, fileURLToPath(import.meta.resolve(specifier)))
    .split(sep)
    .join('/');
}

/** Where a source's module lies among the assets. */
function outputOf(source) {
  return source
    .replace(/^src\//, '')
    .replace(/^node_modules\//, 'packages/')
    .replace(/\.(tsx?|mjs)$/, '.js');
}

function styleSheets() {
  const names = readdirSync(join(root, STYLES)).filter((name) => name.endsWith('.css'));
  const order = [...FIRST_STYLES, ...names.filter((name) => !FIRST_STYLES.includes(name)).sort()];
  return new Map(
    order.map((name) => [`styles/${name}`, withoutComments(readFileSync(join(root, STYLES, name), 'utf8'))]),
  );
}

function withoutComments(css) {
  return css.replace(/\/\*[^]*?\*\//g, '').replace(/\n\s*/g, '\n');
}

/** Names what is served, so that browsers may keep it for good. */
function versionOf(files) {
  const hash = createHash('sha256');
  for (const [path, text] of files) hash.update(`${path}\n${text}\n`);
  return hash.digest('hex').slice(0, 12);
}

/** The page, which names its modules so that browsers ask for all of them at once. */
function page({ version, styles, modules, entry }) {
  const base = `/console/assets/${version}/`;
  const first = new Set([entry]);
  for (const path of first) for (const loaded of modules.get(path).loaded) first.add(loaded);
  const tags = [
    ...styles.map((path) => `<link rel="stylesheet" href="${base}${path}" />`),
    ...[...first].map((path) => `<link rel="modulepreload" href="${base}${path}" />`),
    `<script type="module" src="${base}${entry}"></script>`,
  ];
  return readFileSync(join(root, PAGE), 'utf8').replace('<!-- assets -->', tags.join('\n    '));
}

import { posix } from 'node:path';
import type { ImportDeclaration, Node } from 'typescript';
import ts from 'typescript';

/** One import, export-from, `import()` or `import('…')` type of a file. */
export interface Import {
  /** The specifier in the source: `./port.js`, `node:fs`, `koa`. */
  readonly specifier: string;
  /** Path below src without its ending, or null for a package. It begins with `..` for a file outside src. */
  readonly target: string | null;
  /** Whether it is a type import, which does not exist at run time. */
  readonly isType: boolean;
  /** Whether it is an `import()`, which loads only when it is executed. */
  readonly isLazy: boolean;
}

/** Imports by importing file; files are paths below src without their ending: `log/port`. */
export type ImportGraph = ReadonlyMap<string, readonly Import[]>;

/** Reads the imports of sources, given by their path below src (`log/port.ts`). Nothing is executed. */
export function importGraph(sources: ReadonlyMap<string, string>): ImportGraph {
  return new Map([...sources].map(([path, text]) => [path.replace(/\.tsx?$/, ''), importsOf(path, text)]));
}

function importsOf(path: string, text: string): readonly Import[] {
  const found: Import[] = [];
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.ES2023);
  const add = (specifier: Node | undefined, isType: boolean, isLazy = false): void => {
    if (specifier === undefined) return;
    const spelled = ts.isStringLiteralLike(specifier) ? specifier.text : specifier.getText(source);
    const target = /^\.\.?\//.test(spelled) ? posix.join(posix.dirname(path), spelled).replace(/\.js$/, '') : null;
    found.push({ specifier: spelled, target, isType, isLazy });
  };
  const visit = (node: Node): void => {
    if (ts.isImportDeclaration(node)) add(node.moduleSpecifier, isTypeImport(node));
    else if (ts.isExportDeclaration(node)) add(node.moduleSpecifier, node.isTypeOnly);
    else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) add(node.argument.literal, true);
    else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
      add(node.arguments[0], false, true);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

/** Under verbatimModuleSyntax `import { type A } from` still loads its module, so it counts as a run-time import. */
function isTypeImport(node: ImportDeclaration): boolean {
  return node.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword;
}

/** Import cycles: one for each import that closes a cycle. Each begins with its first name in alphabetical order. */
export function circlesIn(graph: ImportGraph): readonly (readonly string[])[] {
  const circles = new Map<string, readonly string[]>();
  const done = new Set<string>();
  const walk = (file: string, path: readonly string[]): void => {
    const start = path.indexOf(file);
    if (start >= 0) {
      const circle = fromFirstName(path.slice(start));
      circles.set(circle.join(), circle);
      return;
    }
    if (done.has(file)) return;
    for (const { target } of graph.get(file) ?? []) if (target !== null) walk(target, [...path, file]);
    done.add(file);
  };
  for (const file of [...graph.keys()].sort()) walk(file, []);
  return [...circles.values()];
}

function fromFirstName(circle: readonly string[]): readonly string[] {
  const at = circle.indexOf([...circle].sort()[0] ?? '');
  return [...circle.slice(at), ...circle.slice(0, at)];
}

/** The files that a file loads at run time, itself included, each with its path: `run/actor → log/chain`. */
export function loadedBy(file: string, graph: ImportGraph): ReadonlyMap<string, string> {
  const ways = new Map([[file, file]]);
  for (const [each, way] of ways) {
    for (const { target, isType } of graph.get(each) ?? []) {
      if (target !== null && !isType && !ways.has(target)) ways.set(target, `${way} → ${target}`);
    }
  }
  return ways;
}

/** Packages that a file loads at once: all except those behind an `import()`, by their specifiers. */
export function packagesAtOnce(file: string, graph: ImportGraph): readonly string[] {
  const files = new Set([file]);
  const packages = new Set<string>();
  for (const each of files) {
    for (const { specifier, target, isType, isLazy } of graph.get(each) ?? []) {
      if (isType || isLazy) continue;
      if (target !== null) files.add(target);
      else if (!specifier.startsWith('node:')) packages.add(specifier);
    }
  }
  return [...packages].sort();
}

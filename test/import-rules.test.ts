import { expect } from 'chai';
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { circlesIn, importGraph, loadedBy, type ImportGraph } from './support/import-graph.js';

/** What a part of src may import beside itself. Names are folders or files of src; a folder means all that is in it. */
interface Rule {
  readonly ours: readonly string[];
  /** Names that may be imported by `import type` only, beside those in `ours`. */
  readonly types: readonly string[];
  readonly node: 'any' | 'none' | readonly string[];
  readonly npm: readonly string[];
}

const SHARED_TYPES = ['ambient', 'generated'];
const PORTS = ['log/port', 'model/port', 'model/bounded', 'tools/tool'];
/** Pure functions over the log's port: they run wherever the port's types may be named. */
const LOG_HELPERS = ['log/append-check', 'log/append-surely', 'log/chain', 'log/canonical', 'wait', 'under-way'];
const READ_SIDE = [
  'projections/run-queries',
  'projections/run-views',
  'projections/run-feed',
  'projections/history',
  'projections/run-summary',
  'projections/blueprints',
  'projections/documents',
];
/** What a document is, and what may be wrong with it: read wherever events of documents are. */
const DOCUMENT_FACTS = ['audit', 'errors', 'events', 'record', 'standing'].map((name) => `library/document-${name}`);
const RUN_FACTS = ['run/events', 'run/evolve', 'run/state', 'run/stream'];
const RUN_FRONT = [
  ...RUN_FACTS,
  'run/registry',
  'run/request',
  'run/gate',
  'run/session',
  'run/fork',
  'run/override-refused',
];

/** A run's record as it is handed out. */
const AUDIT_TOLD = ['export', 'chart', 'chart-diagram', 'genealogy-diagram'].map((name) => `audit/${name}`);

const WIRE = ['wire', 'schema', 'validate', 'problems', 'json-text', 'absent', 'blueprint-rules'].map(
  (name) => `http/${name}`,
);

const ADAPTER: Rule = { ours: ['errors', 'bounded-body'], types: SHARED_TYPES, node: 'any', npm: [] };
const EDGE: Rule = {
  ours: [
    'errors',
    'request-source',
    'council',
    'blueprint',
    ...AUDIT_TOLD,
    ...RUN_FRONT,
    ...READ_SIDE,
    ...DOCUMENT_FACTS,
  ],
  types: [...SHARED_TYPES, 'log/chain', 'audit/audit-run'],
  node: 'any',
  npm: [],
};
const DOMAIN: Rule = { ours: ['errors'], types: [...SHARED_TYPES, ...PORTS], node: 'none', npm: [] };
const ADAPTERS = ['log', 'model', 'library', 'tools', 'data-dir'];
/** What the composition root wires behind the edges. */
const INSIDE = [
  'run',
  'cluster',
  'audit',
  'council',
  'blueprint',
  'projections',
  ...ADAPTERS,
  'errors',
  'ambient',
  'config',
];

/** What a composition root on the terminal opens. */
const CLI_ROOT = ['engine', 'config', 'ambient', 'signals', 'data-dir', 'model/provider', 'tools/provider'];

/** Who may import what (architecture, section 1). The longest name that fits a file is its rule. */
const RULES: Readonly<Record<string, Rule>> = {
  errors: { ours: [], types: [], node: 'none', npm: [] },
  // ConfigInvalid stands with the other errors a caller may catch.
  config: { ours: ['errors', 'setting-values'], types: [], node: 'none', npm: [] },
  'setting-values': { ours: ['errors', 'host-name'], types: [], node: 'none', npm: [] },
  ambient: { ours: [], types: [], node: ['node:crypto', 'node:perf_hooks'], npm: [] },

  'host-name': { ours: [], types: [], node: 'none', npm: [] },
  'request-source': { ours: ['host-name'], types: [], node: 'none', npm: [] },
  wait: { ours: [], types: ['ambient'], node: 'none', npm: [] },
  signals: { ours: [], types: ['ambient'], node: 'none', npm: [] },
  'bounded-body': { ours: [], types: [], node: 'none', npm: [] },
  'under-way': { ours: [], types: [], node: 'none', npm: [] },
  'worker-calls': { ours: [], types: [], node: ['node:worker_threads'], npm: [] },

  run: { ...DOMAIN, ours: ['errors', 'council', 'blueprint', ...LOG_HELPERS], npm: ['xstate'] },
  // The condition language is read wherever graphs are routed.
  council: { ...DOMAIN, ours: ['errors', 'blueprint/condition'] },
  blueprint: { ...DOMAIN, ours: ['errors', 'council', ...LOG_HELPERS] },

  cluster: { ...DOMAIN, ours: ['errors', 'run/state', ...LOG_HELPERS] },

  audit: {
    ...DOMAIN,
    ours: ['errors', 'council/limits', 'run', 'projections/run-summary', ...LOG_HELPERS],
    npm: ['xstate'],
  },

  log: { ...ADAPTER, npm: ['@photostructure/sqlite'] },
  'log/eventstoredb': {
    ...ADAPTER,
    ours: ['errors', 'wait', 'log/eventstoredb', 'log/port', 'log/append-check', 'log/flat-metadata'],
    npm: ['@grpc/grpc-js', 'protobufjs'],
  },
  'log/port': { ours: [], types: [], node: 'none', npm: [] },
  // Chooses the adapter by the environment's word.
  'log/open': { ...ADAPTER, ours: ['errors', 'log'], types: [...SHARED_TYPES, 'config'], node: 'none' },
  'log/append-surely': { ...ADAPTER, ours: ['errors', 'wait'], types: [...SHARED_TYPES, 'log/port'], node: 'none' },
  'log/copy': {
    ...ADAPTER,
    ours: ['errors', 'log/append-surely', 'log/chain', 'log/port'],
    types: [...SHARED_TYPES],
    node: 'none',
  },
  'log/chain': { ...ADAPTER, ours: ['errors', 'log/canonical'], types: [...SHARED_TYPES, 'log/port'], node: 'none' },
  'log/canonical': { ours: ['errors'], types: [], node: 'none', npm: [] },
  model: { ...ADAPTER, npm: ['@google/generative-ai'] },
  // Chooses the adapter by the environment's word.
  'model/provider': { ...ADAPTER, ours: ['errors', 'model'], types: [...SHARED_TYPES, 'config'], node: 'none' },
  library: { ...ADAPTER, ours: [...ADAPTER.ours, 'worker-calls'], types: [...SHARED_TYPES, 'ambient'] },
  'library/embedding-call': {
    ...ADAPTER,
    ours: [
      ...ADAPTER.ours,
      'library',
      'wait',
      ...['call-aborted', 'failed-exchange', 'field', 'retry-after'].map((name) => `model/${name}`),
    ],
    node: 'none',
  },
  'library/gemini-embeddings': { ...ADAPTER, ours: ['library', 'model/field'], node: 'none' },
  'library/openai-embeddings': { ...ADAPTER, ours: ['library', 'model/field'], node: 'none' },
  // Chooses the adapter by the environment's word.
  'library/provider': {
    ...ADAPTER,
    ours: ['errors', 'library', 'model/gemini'],
    types: [...SHARED_TYPES, 'config'],
    node: 'none',
  },
  // Documents are recorded as runs are: what they are is pure, whoever reads or writes them is given a log.
  ...Object.fromEntries(
    [
      'document-errors',
      'document-events',
      'document-audit',
      'document-record',
      'document-standing',
      'damaged-documents',
      'document-state',
      'recorded-passages',
      'take-in-document',
      'passage-feed',
      'shelf',
      'document-streams',
    ].map((name) => [
      `library/${name}`,
      {
        ours: ['errors', 'library', ...LOG_HELPERS],
        types: ['ambient', 'generated', 'log/port'],
        node: 'none' as const,
        npm: [],
      },
    ]),
  ),
  'library/full-text': { ...ADAPTER, ours: ['library'], node: 'none', npm: ['@photostructure/sqlite'] },
  'library/passage-rows': { ...ADAPTER, ours: ['library'], node: 'none', npm: ['@photostructure/sqlite'] },
  'library/passages-store': {
    ...ADAPTER,
    ours: ['library'],
    node: ['node:fs'],
    npm: ['@photostructure/sqlite'],
  },
  // One parser a file: whoever loads neither cannot run a stranger's file in this process.
  'library/pdf2json-runs': { ...ADAPTER, ours: ['errors', 'library'], npm: ['pdf2json'] },
  'library/pdf2json-scale': { ...ADAPTER, ours: ['errors', 'library'], node: 'none', npm: ['pdf2json'] },
  'library/pdfjs-runs': { ...ADAPTER, ours: ['errors', 'library'], npm: ['pdfjs-dist'] },
  // Cutting and putting together texts is pure.
  ...Object.fromEntries(
    ['chunk', 'text-run', 'glyph-text', 'segments', 'reading-order', 'line-ends', 'page-text'].map((name) => [
      `library/${name}`,
      { ...ADAPTER, ours: ['errors', 'library'], node: 'none' as const },
    ]),
  ),
  tools: { ...ADAPTER, types: [...SHARED_TYPES, 'library/passages'], node: 'none' },
  // A tool is told to models as the model port puts it.
  'tools/tool': { ...ADAPTER, types: [...SHARED_TYPES, 'model/port'], node: 'none' },
  // Chooses the adapter by the environment's word.
  'tools/provider': { ...ADAPTER, ours: ['errors', 'tools'], types: [...SHARED_TYPES, 'config'], node: 'none' },
  'data-dir': { ...ADAPTER, npm: ['@photostructure/sqlite'] },

  projections: {
    ours: [
      ...['errors', 'worker-calls', 'log/unreadable', 'blueprint/events'],
      ...[...RUN_FACTS, ...LOG_HELPERS, ...DOCUMENT_FACTS],
    ],
    types: [...SHARED_TYPES, 'log/port'],
    node: 'any',
    npm: ['@photostructure/sqlite', '@xstate/store'],
  },

  http: {
    ...EDGE,
    types: [...EDGE.types, 'library/shelf'],
    npm: ['koa', '@koa/router', 'koa-body', 'formidable', 'ajv'],
  },
  ws: { ...EDGE, types: [...EDGE.types, 'run/tokens'], npm: ['ws'] },
  // The terminal is an edge with a root of its own: it opens the engine, or is a client of the service. It reads and
  // writes what the REST edge does, in the same words, without the edge's server.
  cli: {
    ours: [...EDGE.ours, ...WIRE, ...CLI_ROOT, 'setting-values', 'wait', 'log/canonical'],
    types: [...EDGE.types, 'model/port', 'tools/web-search'],
    node: 'any',
    npm: ['ws'],
  },

  'cli/migrate': {
    ours: ['cli', 'ambient', 'config', 'data-dir', 'errors', 'log/copy', 'log/open', 'signals'],
    types: [],
    node: 'any',
    npm: [],
  },

  // Reads records where they lie, and proves them.
  'cli/audit': {
    ours: [
      'cli',
      'config',
      'ambient',
      'signals',
      'errors',
      'audit',
      'http/schema',
      'log/unreadable',
      'run/charts',
      'run/state',
    ],
    types: ['generated', 'log/chain', 'run/replay'],
    node: 'any',
    npm: [],
  },
  'cli/audit/line-diff': { ours: [], types: [], node: 'none', npm: ['diff'] },
  'cli/audit/folder-records': {
    ours: ['cli', 'errors', 'audit', 'data-dir', 'http/wire', 'log/embedded/read-only', 'run/stream'],
    types: ['log/chain', 'run/replay'],
    node: ['node:path'],
    npm: [],
  },

  surroundings: { ours: [], types: [...INSIDE], node: 'none', npm: [] },
  'library-here': {
    ours: [...INSIDE, 'surroundings', 'wait', 'document-audits-here'],
    types: ['generated'],
    node: ['node:path'],
    npm: [],
  },
  'document-audits-here': { ours: [...INSIDE, 'surroundings', 'under-way'], types: [], node: 'none', npm: [] },
  'audits-here': { ours: [...INSIDE, 'surroundings', 'runs-here'], types: ['generated'], node: 'none', npm: [] },
  'runs-here': { ours: [...INSIDE, 'surroundings'], types: ['generated'], node: 'none', npm: [] },
  engine: {
    ours: [...INSIDE, 'surroundings', 'runs-here', 'library-here', 'audits-here'],
    types: ['generated'],
    node: 'any',
    npm: [],
  },
  service: {
    ours: [...INSIDE, 'surroundings', 'engine', 'http', 'ws', 'cli', 'request-source'],
    types: ['generated'],
    node: 'any',
    npm: [],
  },
  // main makes what the environment chooses and tests replace: the data directory, the model, the web search.
  main: {
    ours: ['service', 'signals', 'config', 'errors', 'ambient', 'data-dir', 'log/unreadable', 'model', 'tools'],
    types: [],
    node: 'any',
    npm: ['pino'],
  },
};

/** Whatever these load at run time, however far away, must do without Node: they can then be simulated. */
const DOMAIN_FOLDERS = ['run', 'cluster', 'audit', 'council', 'blueprint'];

describe('Import rules', () => {
  const graph = importGraph(sourcesUnder(fileURLToPath(new URL('../../src/', import.meta.url))));

  it('finds the sources', () => {
    expect([...graph.keys()]).to.include.members(['errors', 'run/registry', 'log/port']);
  });

  it('holds every import to the direction of the architecture', () => {
    expect(violations(graph)).to.deep.equal([]);
  });

  it('keeps Node out of everything the domain loads', () => {
    expect(impurities(graph)).to.deep.equal([]);
  });

  it('has no circles, among types neither', () => {
    expect(circlesIn(graph).map((circle) => circle.join(' → '))).to.deep.equal([]);
  });
});

describe('Import rules, on invented sources', () => {
  const found = (sources: Record<string, string>): readonly string[] =>
    violations(importGraph(new Map(Object.entries(sources))));

  it('allow a type of a port and refuse its adapter', () => {
    expect(found({ 'run/actor.ts': `import type { EventLog } from '../log/port.js';` })).to.deep.equal([]);
    expect(found({ 'run/actor.ts': `import type { Store } from '../log/embedded.js';` })).to.deep.equal([
      'src/run/actor.ts may not import the types of ../log/embedded.js',
    ]);
  });

  it('refuse a value where a type is allowed, also beside an inline type', () => {
    expect(found({ 'council/step.ts': `import { type Ambient } from '../ambient.js';` })).to.deep.equal([
      'src/council/step.ts may not import ../ambient.js',
    ]);
    expect(found({ 'council/step.ts': `import type { Ambient } from '../ambient.js';` })).to.deep.equal([]);
  });

  it('refuse Node and packages that are not in the row', () => {
    expect(
      found({ 'run/a.ts': `import { readFileSync } from 'node:fs';\nimport { setup } from 'xstate';` }),
    ).to.deep.equal(['src/run/a.ts may not import node:fs']);
    expect(found({ 'http/a.ts': `import Koa from 'koa';\nimport { WebSocket } from 'ws';` })).to.deep.equal([
      'src/http/a.ts may not import ws',
    ]);
    expect(found({ 'http/a.ts': `import x from 'koa/lib/x.js';\nimport y from '@koa/routers';` })).to.deep.equal([
      'src/http/a.ts may not import @koa/routers',
    ]);
  });

  it('see every way to import', () => {
    const ways = [
      `import '../main.js';`,
      `import {\n  start,\n} from '../main.js';`,
      `export * from '../main.js';`,
      `export { start } from '../main.js';`,
      `const { start } = await import('../main.js');`,
    ];
    for (const way of ways) {
      expect(found({ 'http/a.ts': way }), way).to.deep.equal(['src/http/a.ts may not import ../main.js']);
    }
    expect(found({ 'http/a.ts': `let main: typeof import('../main.js');` })).to.deep.equal([
      'src/http/a.ts may not import the types of ../main.js',
    ]);
    expect(found({ 'http/a.ts': 'await import(`../${name}.js`);' })).to.have.lengthOf(1);
  });

  it('do not take comments and texts for imports', () => {
    expect(found({ 'http/a.ts': `// import '../main.js';\nconst text = "import '../main.js'";` })).to.deep.equal([]);
  });

  it('refuse files without a rule and imports from outside src', () => {
    expect(found({ 'helpers/a.ts': '' })).to.deep.equal(['src/helpers/a.ts has no rule: give it a row in RULES']);
    expect(found({ 'service.ts': `import x from '../schemas/x.json' with { type: 'json' };` })).to.deep.equal([
      'src/service.ts may not import ../schemas/x.json',
    ]);
  });

  it('keep the wire of EventStoreDB in its folder', () => {
    const source = `import { Client } from '@grpc/grpc-js';`;
    expect(found({ 'log/eventstoredb/connection.ts': source })).to.deep.equal([]);
    expect(found({ 'log/append-surely.ts': source, 'engine.ts': source })).to.deep.equal([
      'src/log/append-surely.ts may not import @grpc/grpc-js',
      'src/engine.ts may not import @grpc/grpc-js',
    ]);
  });

  it('take the longest name that fits: a file may be held tighter than its folder', () => {
    expect(found({ 'log/embedded.ts': `import 'node:fs';`, 'log/chain.ts': `import 'node:fs';` })).to.deep.equal([
      'src/log/chain.ts may not import node:fs',
    ]);
  });

  it('find Node behind what the domain loads, and not behind types', () => {
    const sources = {
      'run/a.ts': `import { b } from '../log/b.js';\nimport type { D } from '../log/d.js';`,
      'log/b.ts': `import { c } from './c.js';`,
      'log/c.ts': `import 'node:fs';`,
      'log/d.ts': `import 'node:net';`,
    };
    expect(impurities(importGraph(new Map(Object.entries(sources))))).to.deep.equal([
      'node:fs is loaded by run/a → log/b → log/c',
    ]);
  });

  it('find circles of any length, through types too', () => {
    const circles = (sources: Record<string, string>): unknown =>
      circlesIn(importGraph(new Map(Object.entries(sources))));
    expect(circles({ 'a.ts': `import './b.js';\nimport './c.js';`, 'b.ts': `import './c.js';`, 'c.ts': '' })).to.be
      .empty;
    expect(
      circles({ 'c.ts': `import type { A } from './a.js';`, 'b.ts': `import './c.js';`, 'a.ts': `import './b.js';` }),
    ).to.deep.equal([['a', 'b', 'c']]);
    expect(circles({ 'a.ts': `import './a.js';` })).to.deep.equal([['a']]);
  });
});

/** One sentence for each import that its file's rule does not allow. */
function violations(graph: ImportGraph): readonly string[] {
  return [...graph].flatMap(([file, imports]) => {
    const name = ruleNameOf(file);
    const rule = RULES[name ?? ''];
    if (name === null || rule === undefined) return [`src/${file}.ts has no rule: give it a row in RULES`];
    const own = name.includes('/') ? [] : [name];
    return imports
      .filter((each) => !isAllowed(each, { ...rule, ours: [...own, ...rule.ours] }))
      .map(({ specifier, isType }) => `src/${file}.ts may not import ${isType ? 'the types of ' : ''}${specifier}`);
  });
}

function ruleNameOf(file: string): string | null {
  const fitting = Object.keys(RULES).filter((name) => isIn(file, name));
  return fitting.sort((one, other) => other.length - one.length)[0] ?? null;
}

function isAllowed(
  { specifier, target, isType }: { specifier: string; target: string | null; isType: boolean },
  rule: Rule,
): boolean {
  if (target !== null) return [...rule.ours, ...(isType ? rule.types : [])].some((name) => isIn(target, name));
  if (specifier.startsWith('node:'))
    return rule.node === 'any' || (rule.node !== 'none' && rule.node.includes(specifier));
  return rule.npm.some((name) => isIn(specifier, name));
}

function impurities(graph: ImportGraph): readonly string[] {
  const found = new Map<string, string>();
  const domain = [...graph.keys()].filter((file) => DOMAIN_FOLDERS.some((folder) => isIn(file, folder)));
  for (const start of domain) {
    for (const [file, way] of loadedBy(start, graph)) {
      for (const { specifier, isType } of graph.get(file) ?? []) {
        if (!isType && specifier.startsWith('node:'))
          found.set(`${specifier} ${file}`, `${specifier} is loaded by ${way}`);
      }
    }
  }
  return [...found.values()];
}

function isIn(path: string, name: string): boolean {
  return path === name || path.startsWith(`${name}/`);
}

function sourcesUnder(src: string): ReadonlyMap<string, string> {
  const files = readdirSync(src, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts') && !entry.name.endsWith('.d.ts'))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
  return new Map(files.map((file) => [relative(src, file), readFileSync(file, 'utf8')]));
}

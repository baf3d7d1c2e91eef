import { expect } from 'chai';
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { circlesIn, importGraph, loadedBy, packagesAtOnce, type ImportGraph } from './support/import-graph.js';

/** What a part of src may import beside itself. Names are files of src, or folders with all files in them. */
interface Rule {
  readonly ours: readonly string[];
  /** Names that may be imported by `import type` only, beside those in `ours`. */
  readonly types: readonly string[];
  readonly node: 'any' | 'none' | readonly string[];
  readonly npm: readonly string[];
}

/** Any part may import these types, which load nothing. */
const SHARED_TYPES = ['system', 'generated'];

/** What a program may import. */
const EVERYTHING_BUT_PROGRAMS = [
  ...[
    'errors',
    'config',
    'config-values',
    'config-providers',
    'system',
    'eventlog',
    'eventsourcing',
    'models',
    'websearch',
    'embeddings',
    'pdf',
    'docx',
    'draft/marking',
    'jsonschema',
    'keys',
  ],
  ...[
    'graph',
    'council',
    'run',
    'blueprint',
    'documents',
    'ledger',
    'search',
    'cluster',
    'projections',
    'audit',
    'api',
  ],
  ...['http', 'mcp', 'openai-api', 'ws', 'telemetry', 'webhooks'],
];

/** Deterministic code: clock, ids and network are arguments. */
const PURE = { types: SHARED_TYPES, node: 'none', npm: [] } as const;
/** Code with input or output behind a port. It may import the types of settings. */
const ADAPTER = {
  types: [...SHARED_TYPES, 'config', 'config-values', 'config-providers'],
  node: 'any',
  npm: [],
} as const;

/** Packages of the Vercel AI SDK. */
const PROVIDER_PACKAGES = [...['@ai-sdk/provider', '@ai-sdk/openai-compatible', '@ai-sdk/anthropic', '@ai-sdk/google']];

/** Files that fold a run. */
const PURE_OF_RUN = [
  'run/budget/end',
  'run/cost-text',
  'run/effort',
  'run/events',
  'run/evolve',
  'run/failure-texts',
  'run/pauses/pause-view',
  'run/state',
];

/** What each part may import, from the lowest layer up. The longest name that fits a file is its rule. */
const RULES: Readonly<Record<string, Rule>> = {
  errors: { ...PURE, ours: [] },
  'config-values': { ...PURE, ours: ['errors', 'system'] },
  'config-providers': { ...PURE, ours: ['errors', 'system', 'config-values', 'models/prices', 'models/wires/wires'] },
  'config-warnings': { ...PURE, types: ['config-providers'], ours: [] },
  config: {
    ...PURE,
    ours: ['errors', 'system', 'graph/limits', 'config-values', 'config-providers', 'config-warnings'],
    node: ['node:fs'],
  },
  system: {
    ...PURE,
    ours: ['errors'],
    node: ['node:crypto', 'node:events', 'node:fs', 'node:net', 'node:perf_hooks', 'node:worker_threads'],
  },

  eventlog: { ...ADAPTER, ours: ['errors', 'system'], npm: ['@photostructure/sqlite'] },
  // The client is imported in this folder only.
  'eventlog/eventstoredb': {
    ...ADAPTER,
    ours: ['errors', 'system', 'eventlog'],
    npm: ['@eventstore/db-client', '@grpc/grpc-js'],
  },
  eventsourcing: { ...PURE, ours: ['errors', 'system', 'eventlog'] },

  models: { ...ADAPTER, ours: ['errors', 'system'], npm: ['undici', 'eventsource-parser', '@ai-sdk/provider'] },
  'models/wires': { ...ADAPTER, ours: ['errors', 'system', 'models'], npm: PROVIDER_PACKAGES },
  websearch: { ...ADAPTER, ours: ['errors', 'system'], types: [...ADAPTER.types, 'council'] },
  embeddings: { ...ADAPTER, ours: ['errors', 'system', 'models'], npm: PROVIDER_PACKAGES },
  // Shared by the console and docx.
  draft: {
    ...PURE,
    ours: [],
    types: ['generated', 'client/run-events'],
    npm: ['markdown-it', 'markdown-it-footnote'],
  },
  docx: { ...ADAPTER, ours: ['errors', 'draft'], npm: ['docx'] },
  pdf: { ...ADAPTER, ours: ['errors', 'system'], npm: ['pdf2json', 'pdfjs-dist'] },
  jsonschema: { ...ADAPTER, ours: ['errors', 'system'], npm: ['ajv', 'ajv-formats'] },

  keys: { ...PURE, ours: ['errors', 'system', 'generated', 'eventlog', 'eventsourcing'] },
  graph: { ...PURE, ours: ['errors', 'system'] },
  council: {
    ...PURE,
    ours: [
      'errors',
      'system',
      'eventsourcing/canonical-json',
      'graph',
      'models/usage',
      'models/thoughts',
      'models/json-in-text',
      'models/billing',
      'models/calls-in-text',
      'models/material',
    ],
    types: [...SHARED_TYPES, 'models', 'search'],
  },
  run: {
    ...PURE,
    ours: [
      'errors',
      'system',
      'generated',
      'eventlog',
      'eventsourcing',
      'graph',
      'council',
      'models/prices',
      'models/material',
    ],
    types: [...SHARED_TYPES, 'models', 'keys', 'draft/items'],
    npm: ['xstate'],
  },
  blueprint: {
    ...PURE,
    ours: ['errors', 'system', 'generated', 'eventlog', 'eventsourcing', 'keys', 'graph', 'council'],
  },
  documents: {
    ...PURE,
    ours: ['errors', 'system', 'generated', 'eventlog', 'eventsourcing', 'embeddings'],
    types: [...SHARED_TYPES, 'pdf'],
  },
  // Hashes and signatures are computed, so they are as deterministic as the rest.
  ledger: {
    ...PURE,
    ours: ['errors', 'system', 'generated', 'eventlog', 'eventsourcing', 'run/errors', 'run/events'],
    node: ['node:crypto'],
  },
  search: {
    ...ADAPTER,
    ours: ['errors', 'system', 'eventlog', 'embeddings', 'documents'],
    npm: ['@photostructure/sqlite'],
  },

  cluster: { ...PURE, ours: ['errors', 'system', 'eventlog', 'eventsourcing', 'run'] },
  projections: {
    ...ADAPTER,
    // Of the embeddings only how texts are split into words.
    ours: [
      ...['errors', 'system', 'eventlog', 'eventsourcing', 'ledger/errors', 'ledger/events'],
      ...['run', 'blueprint', 'documents', 'embeddings/words'],
    ],
    types: [...ADAPTER.types, 'keys'],
    npm: ['@photostructure/sqlite'],
  },
  audit: {
    ...PURE,
    ours: [
      ...[
        'errors',
        'system',
        'eventlog',
        'eventsourcing',
        'graph',
        'draft/quotations',
        'models/material',
        'draft/marking',
        'run',
        'projections',
      ],
    ],
    npm: ['xstate'],
  },

  // Serializers and checks of both edges.
  api: {
    ...PURE,
    ours: ['errors', 'system', 'generated', 'keys', 'graph', 'blueprint', 'models/material', 'projections/run-summary'],
    types: [
      ...SHARED_TYPES,
      'eventlog',
      'pdf',
      'docx',
      'jsonschema',
      'run',
      'documents',
      'projections',
      'audit',
      'webhooks/errors',
    ],
    node: ['node:fs', 'node:http'],
    npm: ['ajv', 'diff'],
  },
  http: {
    ...ADAPTER,
    // Errors of the log become responses.
    ours: [
      'errors',
      'system',
      'eventlog/errors',
      'keys',
      'graph',
      'council',
      'blueprint',
      'run',
      'documents',
      'ledger',
      'projections',
      'audit',
      'draft/marking',
      'api',
    ],
    types: [...ADAPTER.types, 'eventsourcing', 'jsonschema', 'docx'],
    npm: ['koa', '@koa/router', 'formidable', 'ajv'],
  },
  // It subscribes to the objects of other folders and calls none of their code.
  telemetry: {
    ...PURE,
    ours: ['system'],
    types: [...SHARED_TYPES, 'config', 'eventlog', 'models', 'run', 'http', 'webhooks'],
  },
  'telemetry/collector': { ...ADAPTER, ours: ['system', 'telemetry'], npm: ['undici'] },
  'telemetry/prometheus-text': { ...PURE, ours: [], types: ['telemetry'], npm: ['prom-client'] },
  // It uses what the routes of REST use.
  mcp: {
    ...PURE,
    ours: [
      ...['errors', 'system', 'api/access/access-refused', 'api/access/places', 'api/problems'],
      ...['blueprint/errors', 'blueprint/record'],
      ...['projections/run-summary', 'run/children/children', 'run/pauses/approvals', 'run/errors', 'run/state'],
      ...['http/answer', 'http/body', 'http/chunked-body', 'http/concurrency', 'http/openapi', 'http/route'],
      ...['http/routes/approvals', 'http/routes/god-mode', 'http/routes/runs', 'http/starts'],
    ],
    types: [...SHARED_TYPES, 'api/schemas', 'keys/caller', 'run/events'],
    node: ['node:http'],
    npm: ['@modelcontextprotocol/server', '@koa/router'],
  },
  ws: { ...ADAPTER, ours: ['errors', 'keys', 'run', 'projections', 'api'], npm: ['ws'] },
  // A door: it uses what the REST routes use. It reads runs, and no rule of a run is here.
  'openai-api': {
    ours: [
      ...[
        'errors',
        'system/element',
        'system/untrusted',
        'keys/caller',
        'council/cut',
        'graph/limits',
        'graph/output-node',
        'blueprint/record',
      ],
      ...[
        'run/children/children',
        'run/effort',
        'run/errors',
        'run/events',
        'run/state',
        'run/stream',
        'api/problems',
        'api/access/authentication',
        'api/access/limits',
      ],
      ...['http'],
    ],
    types: ['generated', 'models', 'api/problem-form'],
    // Their types.
    node: ['node:http'],
    npm: ['@koa/router'],
  },

  // A door of its own: events of runs leave by it.
  webhooks: {
    ...PURE,
    ours: [
      ...['errors', 'system', 'generated', 'eventlog', 'eventsourcing', 'api/problems', 'api/serializers/parent-run'],
      ...['run/errors', 'run/events', 'run/state', 'run/stream', 'http/body', 'http/route'],
    ],
    types: SHARED_TYPES,
    npm: ['@koa/router'],
  },
  'webhooks/post': { ...PURE, ours: ['system'], node: ['node:dns', 'node:http', 'node:https'] },

  // The client also runs in browsers, and shares only the schemas with the service.
  client: { ours: [], types: ['generated'], node: 'none', npm: [] },

  // Browsers load it: the client, and of the service only what folds and routes.
  console: {
    ours: [
      'client',
      'draft',
      'graph/label',
      'graph/limits',
      'run/budget/end',
      'run/cost-text',
      'run/failure-texts',
      'run/titled-topic',
      'system/dollars',
    ],
    types: ['generated', 'run/history'],
    node: 'none',
    npm: ['preact', '@preact/signals'],
  },
  'console/record': {
    ...PURE,
    ours: [
      ...['console/record', 'draft', 'eventsourcing/canonical-json', 'graph', 'council/deliberation', ...PURE_OF_RUN],
      ...['run/history', 'run/panels'],
      ...['run/budget/budget-text', 'run/budget/end', 'system/dollars', 'models/offline/sample'],
    ],
    types: ['generated', 'client/run-events', 'run/state'],
    npm: ['character-entities-html4', '@dagrejs/dagre', 'diff'],
  },

  // The composition root, and the two programs around it.
  app: { ...ADAPTER, ours: [...EVERYTHING_BUT_PROGRAMS, 'draft/items'], npm: ['@photostructure/sqlite'] },
  // `council serve` starts the service's program.
  cli: { ...ADAPTER, ours: [...EVERYTHING_BUT_PROGRAMS, 'app', 'client', 'draft/verdicts', 'main'], npm: ['diff'] },
  main: { ...ADAPTER, ours: [...EVERYTHING_BUT_PROGRAMS, 'app'], npm: ['pino'] },
};

/** Modules of Node that do no input or output. */
const HARMLESS = ['node:events'];

/** Nothing that these load at run time, directly or not, imports Node: so they can be simulated. */
const DOMAIN_FOLDERS = [
  'eventsourcing',
  'keys',
  'graph',
  'council',
  'run',
  'blueprint',
  'documents',
  'cluster',
  'audit',
  'draft',
  'console/record',
];

describe('Import rules', () => {
  const graph = importGraph(sourcesUnder(fileURLToPath(new URL('../../src/', import.meta.url))));

  it('finds the sources', () => {
    expect([...graph.keys()]).to.include.members(['errors', 'run/runs/runs', 'eventlog/port']);
  });

  it('holds every import to the direction of the layers', () => {
    expect(violations(graph)).to.deep.equal([]);
  });

  it('keeps Node out of everything the domain loads', () => {
    expect(impurities(graph)).to.deep.equal([]);
  });

  it('loads only packages at a start that every request needs', () => {
    expect(packagesAtOnce('main', graph)).to.deep.equal(['@photostructure/sqlite', 'pino']);
    const needed = ['@koa/router', 'diff/lib/patch/create.js', 'koa', 'xstate'];
    expect(packagesAtOnce('app/service', graph)).to.deep.equal(needed);
  });

  it('loads no package for the commands on records and keys before they run', () => {
    for (const name of ['events', 'state', 'diff', 'verify', 'fork', 'export', 'keys']) {
      expect(graph.has(`cli/commands/${name}`), name).to.equal(true);
      expect(packagesAtOnce(`cli/commands/${name}`, graph), name).to.deep.equal([]);
    }
  });

  it('has no circles, also among types', () => {
    expect(circlesIn(graph).map((circle) => circle.join(' → '))).to.deep.equal([]);
  });
});

describe('Import rules, on example sources', () => {
  const found = (sources: Record<string, string>): readonly string[] =>
    violations(importGraph(new Map(Object.entries(sources))));

  it('allow a type import where a value import is refused', () => {
    expect(found({ 'council/step.ts': `import type { LanguageModel } from '../models/port.js';` })).to.deep.equal([]);
    for (const value of ['{ geminiModel }', '{ type LanguageModel }']) {
      expect(found({ 'council/step.ts': `import ${value} from '../models/port.js';` })).to.deep.equal([
        'src/council/step.ts may not import ../models/port.js',
      ]);
    }
    expect(found({ 'council/step.ts': `import type { Service } from '../app/service.js';` })).to.deep.equal([
      'src/council/step.ts may not import the types of ../app/service.js',
    ]);
  });

  it('refuse modules of Node and packages that the rule does not name', () => {
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

  it('find every kind of import', () => {
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

  it('ignore comments and strings', () => {
    expect(found({ 'http/a.ts': `// import '../main.js';\nconst text = "import '../main.js'";` })).to.deep.equal([]);
  });

  it('refuse files without a rule and imports from outside src', () => {
    expect(found({ 'helpers/a.ts': '' })).to.deep.equal(['src/helpers/a.ts has no rule: give it a row in RULES']);
    expect(found({ 'app/service.ts': `import x from '../../schemas/x.json' with { type: 'json' };` })).to.deep.equal([
      'src/app/service.ts may not import ../../schemas/x.json',
    ]);
  });

  it('keep the client of EventStoreDB in its folder', () => {
    const source = `import { EventStoreDBClient } from '@eventstore/db-client';`;
    expect(found({ 'eventlog/eventstoredb/clients.ts': source })).to.deep.equal([]);
    expect(found({ 'eventlog/open.ts': source, 'app/context.ts': source })).to.deep.equal([
      'src/eventlog/open.ts may not import @eventstore/db-client',
      'src/app/context.ts may not import @eventstore/db-client',
    ]);
  });

  it('apply the rule with the longest name that fits', () => {
    const source = `import { DatabaseSync } from '@photostructure/sqlite';`;
    expect(found({ 'eventlog/embedded/file.ts': source, 'eventlog/eventstoredb/log.ts': source })).to.deep.equal([
      'src/eventlog/eventstoredb/log.ts may not import @photostructure/sqlite',
    ]);
  });

  it('find modules of Node that the domain loads indirectly, except by types', () => {
    const sources = {
      'run/a.ts': `import { b } from '../eventlog/b.js';\nimport type { D } from '../eventlog/d.js';`,
      'eventlog/b.ts': `import { c } from './c.js';`,
      'eventlog/c.ts': `import 'node:fs';`,
      'eventlog/d.ts': `import 'node:net';`,
    };
    expect(impurities(importGraph(new Map(Object.entries(sources))))).to.deep.equal([
      'node:fs is loaded by run/a → eventlog/b → eventlog/c',
    ]);
  });

  it('find circles of any length, also through types', () => {
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
        if (!isType && specifier.startsWith('node:') && !HARMLESS.includes(specifier))
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
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name) && !entry.name.endsWith('.d.ts'))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
  return new Map(files.map((file) => [relative(src, file), readFileSync(file, 'utf8')]));
}

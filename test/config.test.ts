import type { Config } from '../src/config.js';
import type { ProviderSettings } from '../src/config-providers.js';
import { expect } from 'chai';
import { fileURLToPath } from 'node:url';
import { readConfig } from '../src/config.js';
import { ConfigInvalid } from '../src/errors.js';
import { startChild } from './support/child.js';
import type { TempDir } from './support/temp-dir.js';
import { tempDir } from './support/temp-dir.js';

const MAIN = fileURLToPath(new URL('../src/main.js', import.meta.url));
const KEY = 'AIza-secret-key-of-this-test';

type Environment = Readonly<Record<string, string>>;

/** Values that are refused: the variable, the values, what the refusal says is accepted, and settings that it needs. */
const UNUSABLE: readonly [variable: string, values: readonly string[], accepted: string, beside?: Environment][] = [
  [
    'PORT',
    ['-1', '65536', '80.5', '8e3', '0x50', ' 80', 'http', '80\n00', '9'.repeat(11)],
    'a whole number from 0 to 65535',
  ],
  [
    'BASE_PATH',
    [
      'council',
      '/',
      '/council/',
      '//council',
      '/a//b',
      '/a/../b',
      '/./a',
      '/a b',
      '/a?b',
      '/a;b',
      '/%61',
      '/a\n',
      '/é',
    ],
    'a path such as "/council"',
  ],
  ['BASE_PATH', ['/api', '/api/x', '/console', '/ws', '/v1', '/mcp', '/metrics', '/ledger', '/favicon.ico'], 'none of'],
  ['MODEL_PROVIDER', ['oracle', 'Gemini'], '"gemini", "openai", "anthropic"', { GEMINI_API_KEY: KEY }],
  ['MODEL_PROVIDER', ['gemini'], '"offline", or set GEMINI_API_KEY or GEMINI_BASE_URL too'],
  ['MODEL_PROVIDER', ['gemini'], 'GEMINI_API_KEY', { GEMINI_API_KEY: '' }],
  ['MODEL_PROVIDER', ['openai'], 'OPENAI_API_KEY, or OPENAI_BASE_URL and OPENAI_MODEL', { OPENAI_MODEL: 'm' }],
  ['GEMINI_API_KEY', [`${KEY}\n`, `${KEY} `, `${KEY}ä`], 'visible ASCII', { MODEL_PROVIDER: 'offline' }],
  ['OPENAI_API_KEY', [`${KEY} `], 'visible ASCII'],
  ['TAVILY_API_KEY', [`${KEY}\n`], 'visible ASCII'],
  ['OPENAI_MODEL', ['my model'], 'a name of 1 to 200 visible ASCII characters'],
  [
    'GEMINI_BASE_URL',
    ['example.org', 'localhost:8080', 'ftp://example.org', 'file:///etc/passwd', 'http://', 'https://exa mple.org'],
    'an http or https URL without credentials, query and fragment',
  ],
  [
    'GEMINI_BASE_URL',
    [`https://user:${KEY}@example.org`, `https://example.org/?key=${KEY}`, `https://example.org/#${KEY}`],
    'an http or https URL without credentials, query and fragment',
  ],
  ['OPENAI_BASE_URL', ['localhost:11434/v1'], 'an http or https URL'],
  [
    'OPENAI_BASE_URL',
    ['http://localhost:8080/v1/chat/completions', 'http://localhost:8080/v1/chat/completions/'],
    '"http://localhost:8080/v1", the address without "/chat/completions"',
  ],
  ['ANTHROPIC_BASE_URL', ['http://localhost/v1/messages'], '"http://localhost/v1", the address without "/messages"'],
  ['TAVILY_BASE_URL', [`https://example.org/?key=${KEY}`], 'an http or https URL'],
  ['SEARXNG_URL', ['search.example.org'], 'an http or https URL'],
  ['OFFLINE_LATENCY_MS', ['60001', '-1', '1s'], 'from 0 to 60000', { GEMINI_API_KEY: KEY }],
  ['AUTH', ['none'], '"on", "off"'],
  ['LEDGER_ORIGIN', ['a b', 'a+b'], 'a name without spaces and "+", such as "example.com/council"'],
  ['LEDGER_WITNESSES', ['/no/such/file'], 'a readable file'],
  ['CHECKPOINT_INTERVAL_S', ['0', '86401', 'x'], 'a whole number from 1 to 86400'],
  ['LOG_LEVEL', ['loud'], '"debug", "info", "warn", "error", "silent"'],
  ['MAX_REQUESTS_PER_SECOND', ['-1'], 'from 0 to 1000000'],
  ['MAX_REQUEST_BURST', ['0'], 'from 1 to 1000000'],
  ['MAX_RUNS_PER_MINUTE', ['1.5'], 'from 0 to 1000000'],
  ['MAX_UNFINISHED_RUNS', ['many'], 'from 0 to 1000000'],
  ['MODEL_TIMEOUT_MS', ['0', '2147483648', '99999999999'], 'from 1 to 2147483647'],
  ['MODEL_MAX_ATTEMPTS', ['0', '1.5', '101'], 'from 1 to 100'],
  ['MODEL_OUTAGE_MS', ['-1', '2 min'], 'from 0 to 2147483647'],
  ['PDF_TIMEOUT_MS', ['0', '3600001', '15s'], 'from 1 to 3600000'],
  ['MAX_ACTIVE_RUNS', ['0', 'many'], 'from 1 to 1000000'],
  ['MAX_MODEL_CALLS', ['-1', '0', '1000001'], 'from 1 to 1000000'],
  ['MARK_EXPORTS', ['no'], '"on", "off"'],
  ['MAX_MATERIAL_BYTES', ['-1', '600001', 'x'], 'from 0 to 600000'],
  ['SUSPECT_AFTER_MS', ['14999'], 'from 15000 to 3600000'],
  [
    'ALLOWED_HOSTS',
    ['*', '*.example.org', 'example.org:8000', 'abc.de:80', '[::1]:8000', '[::1'],
    'list of host names',
  ],
  ['ALLOWED_HOSTS', ['1::2::3', '999.1.1.1', 'https://example.org', 'example.org/', 'a b'], 'list of host names'],
  ['ALLOWED_HOSTS', ['user@example.org', 'example.org,,', '.', ','], 'list of host names'],
  ['CORS_ORIGINS', ['*', 'https://a.example/path', 'https://example.org/', 'https://example.org,,'], 'origins such as'],
  ['TRUSTED_PROXIES', ['proxy', '10.0.0.0/33', '::1/x', '10.0.0.1,'], 'addresses and ranges such as'],
  [
    'EVENTSTORE_URL',
    [
      ...['localhost:2113', 'http://localhost:2113', 'esdb://', 'esdb://host:port', 'esdb://host:2113/db'],
      ...['esdb://[::1]:2113', 'esdb://host:0', 'esdb://host:65536', 'esdb://one:1,two:99999'],
      ...[`esdb://admin:${KEY}:1@host`, `esdb://admin:${KEY}/1@host`, `esdb://admin:${KEY}@1@host`],
      ...[`esdb://admin:${KEY}?@host`, `esdb://${KEY}@host`, `admin:${KEY}@host`, 'esdb+discover://one,two'],
    ],
    'esdb://[user:password@]host[:port]',
  ],
  [
    'EVENTSTORE_URL',
    [
      ...['tlsVerifyCert=false', 'throwOnAppendFailure=false', 'tls=no', 'nodePreference=follower'],
      ...['gossipTimeout=0', 'keepAliveInterval=9999', 'x'],
    ].map((option) => `kurrentdb://admin:${KEY}@host?tls=true&${option}`),
    'for the option',
  ],
  ['EVENTSTORE_PREFIX', ['Staging', 'a-b', 'a b', 'ä', 'a'.repeat(65)], 'lower-case letters and digits'],
];

const NAMES = [
  ...['HOST', 'PORT', 'DATA_DIR', 'ALLOWED_HOSTS', 'CORS_ORIGINS', 'AUTH', 'TRUSTED_PROXIES', 'LOG_LEVEL'],
  ...[
    'METRICS_TOKEN',
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    'OTEL_EXPORTER_OTLP_HEADERS',
    'OTEL_BSP_SCHEDULE_DELAY',
    'WEBHOOK_ALLOW_PRIVATE',
    ...['LEDGER_ORIGIN', 'LEDGER_KEY_FILE', 'LEDGER_WITNESSES', 'CHECKPOINT_INTERVAL_S'],
    'BASE_PATH',
  ],
  ...['MODEL_PROVIDER', 'GEMINI_API_KEY', 'GEMINI_BASE_URL', 'GEMINI_MODEL', 'GEMINI_EMBEDDING_MODEL'],
  ...['OPENAI_API_KEY', 'OPENAI_BASE_URL', 'OPENAI_MODEL', 'OPENAI_EMBEDDING_MODEL', 'OFFLINE_LATENCY_MS'],
  ...['MODEL_TIMEOUT_MS', 'MODEL_MAX_ATTEMPTS', 'MODEL_OUTAGE_MS', 'MAX_ACTIVE_RUNS', 'MAX_MODEL_CALLS'],
  ...['EVENTSTORE_URL', 'EVENTSTORE_PREFIX', 'HEARTBEAT_MS', 'SUSPECT_AFTER_MS', 'PDF_TIMEOUT_MS'],
  ...['MAX_REQUESTS_PER_SECOND', 'MAX_REQUEST_BURST', 'MAX_RUNS_PER_MINUTE', 'MAX_UNFINISHED_RUNS'],
  ...['TAVILY_API_KEY', 'TAVILY_BASE_URL', 'SEARXNG_URL'],
];

describe('Settings', () => {
  it('have their defaults if variables are absent or empty', () => {
    const defaults = {
      host: '127.0.0.1',
      port: 8000,
      basePath: '',
      dataDir: './data',
      eventStore: null,
      providers: { configured: [], default: 'offline' },
      offlineLatencyMs: 0,
      proxies: { http: null, https: null, none: '' },
      prices: null,
      embeddings: null,
      webSearch: null,
      pdfTimeoutMs: 15_000,
      modelTimeoutMs: 120_000,
      modelMaxAttempts: 4,
      modelOutageMs: 120_000,
      maxActiveRuns: 1_000,
      maxModelCalls: 64,
      marksExports: true,
      maxMaterialBytes: 600_000,
      retentionDays: null,
      cluster: null,
      allowedHosts: [],
      corsOrigins: [],
      auth: 'on',
      limits: {
        requests: { quota: 30_000, windowSeconds: 30, isSet: false },
        runs: { quota: 6_000, windowSeconds: 60, isSet: false },
        unfinishedRuns: { quota: 10_000, isSet: false },
      },
      trustedProxies: [],
      metricsToken: null,
      traces: null,
      webhookAllowPrivate: false,
      ledger: { origin: null, keyFile: null, intervalMs: 60_000, witnesses: [] },
      logLevel: 'info',
      warnings: [],
    };
    expect(readConfig({})).to.deep.equal(defaults);
    const empty = Object.fromEntries(NAMES.map((name) => [name, '']));
    expect(readConfig(empty)).to.deep.equal(defaults);
  });

  it('count an instance as dead after six heartbeats by default', () => {
    const clusterOf = (environment: Record<string, string>): object | null =>
      readConfig({ EVENTSTORE_URL: 'esdb://localhost:2113?tls=false', ...environment }).cluster;
    expect(clusterOf({})).to.deep.equal({ heartbeatMs: 5_000, suspectAfterMs: 30_000 });
    expect(clusterOf({ HEARTBEAT_MS: '100' })).to.deep.equal({ heartbeatMs: 100, suspectAfterMs: 600 });
    expect(clusterOf({ SUSPECT_AFTER_MS: '15000' })).to.deep.equal({ heartbeatMs: 5_000, suspectAfterMs: 15_000 });
  });

  it('are read from their variables', () => {
    const config = readConfig({
      HOST: '::1',
      BASE_PATH: '/tools/council-2',
      PORT: '0',
      DATA_DIR: '/var/lib/council',
      EVENTSTORE_URL: 'esdb://127.0.0.1:2113?tls=false',
      EVENTSTORE_PREFIX: 'staging2',
      MODEL_PROVIDER: 'offline',
      OFFLINE_LATENCY_MS: '60000',
      SEARXNG_URL: 'http://localhost:8888/',
      PDF_TIMEOUT_MS: '60000',
      MODEL_TIMEOUT_MS: '2147483647',
      MODEL_MAX_ATTEMPTS: '100',
      MODEL_OUTAGE_MS: '0',
      MAX_ACTIVE_RUNS: '1',
      MAX_MODEL_CALLS: '1000000',
      MARK_EXPORTS: 'off',
      MAX_MATERIAL_BYTES: '1000',
      RETENTION_DAYS: '30',
      ALLOWED_HOSTS: 'Council.Example.ORG., 10.0.0.5,::1, [FE80::1]',
      CORS_ORIGINS: 'https://example.org, http://localhost:3000',
      AUTH: 'off',
      MAX_REQUESTS_PER_SECOND: '20',
      MAX_RUNS_PER_MINUTE: '0',
      MAX_UNFINISHED_RUNS: '5',
      TRUSTED_PROXIES: '10.0.0.1, 172.16.0.0/12,fd00::/8',
      METRICS_TOKEN: 'scraper',
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318/',
      OTEL_EXPORTER_OTLP_HEADERS: 'Authorization=Bearer%20x, x-team = seven',
      OTEL_BSP_SCHEDULE_DELAY: '1000',
      WEBHOOK_ALLOW_PRIVATE: 'on',
      LEDGER_ORIGIN: 'example.com/council',
      LEDGER_KEY_FILE: '/etc/council/key.pem',
      CHECKPOINT_INTERVAL_S: '5',
      LOG_LEVEL: 'silent',
    });
    expect(config).to.deep.equal({
      host: '::1',
      port: 0,
      basePath: '/tools/council-2',
      dataDir: '/var/lib/council',
      eventStore: { url: 'esdb://127.0.0.1:2113?tls=false', prefix: 'staging2' },
      providers: { configured: [], default: 'offline' },
      offlineLatencyMs: 60_000,
      proxies: { http: null, https: null, none: '' },
      prices: null,
      embeddings: null,
      webSearch: { name: 'searxng', baseUrl: 'http://localhost:8888' },
      pdfTimeoutMs: 60_000,
      modelTimeoutMs: 2_147_483_647,
      modelMaxAttempts: 100,
      modelOutageMs: 0,
      maxActiveRuns: 1,
      maxModelCalls: 1_000_000,
      marksExports: false,
      maxMaterialBytes: 1000,
      retentionDays: 30,
      cluster: { heartbeatMs: 5_000, suspectAfterMs: 30_000 },
      allowedHosts: ['council.example.org', '10.0.0.5', '[::1]', '[fe80::1]'],
      corsOrigins: ['https://example.org', 'http://localhost:3000'],
      auth: 'off',
      limits: {
        requests: { quota: 600, windowSeconds: 30, isSet: true },
        runs: null,
        unfinishedRuns: { quota: 5, isSet: true },
      },
      trustedProxies: ['10.0.0.1', '172.16.0.0/12', 'fd00::/8'],
      metricsToken: 'scraper',
      traces: {
        endpoint: 'http://collector:4318',
        headers: { Authorization: 'Bearer x', 'x-team': 'seven' },
        delayMs: 1_000,
      },
      webhookAllowPrivate: true,
      ledger: { origin: 'example.com/council', keyFile: '/etc/council/key.pem', intervalMs: 5_000, witnesses: [] },
      logLevel: 'silent',
      warnings: [],
    });
  });

  it('limit requests by a rate and a burst; a rate of 0 means no limit', () => {
    const requestsOf = (environment: Environment): object | null => readConfig(environment).limits.requests;
    expect(requestsOf({ MAX_REQUEST_BURST: '500' })).to.deep.equal({ quota: 500, windowSeconds: 0.5, isSet: true });
    const both = { MAX_REQUESTS_PER_SECOND: '2', MAX_REQUEST_BURST: '1' };
    expect(requestsOf(both)).to.deep.equal({ quota: 1, windowSeconds: 0.5, isSet: true });
    expect(requestsOf({ MAX_REQUESTS_PER_SECOND: '0' })).to.equal(null);
  });

  describe('of providers', () => {
    const providersOf = (environment: Record<string, string>): string[] =>
      readConfig(environment).providers.configured.map(({ name }) => name);
    const defaultOf = (environment: Record<string, string>): string => readConfig(environment).providers.default;
    const first = (environment: Record<string, string>): ProviderSettings | undefined =>
      readConfig(environment).providers.configured[0];
    const EVERY_KEY = {
      XAI_API_KEY: KEY,
      DEEPSEEK_API_KEY: KEY,
      GROQ_API_KEY: KEY,
      MISTRAL_API_KEY: KEY,
      OPENROUTER_API_KEY: KEY,
      ANTHROPIC_API_KEY: KEY,
      OPENAI_API_KEY: KEY,
      GEMINI_API_KEY: KEY,
      OLLAMA_BASE_URL: 'http://localhost:11434',
      OLLAMA_MODEL: 'llama3.2:3b',
    };

    it('configure each that has a key or an address; the first in a fixed order is the default', () => {
      const order = ['gemini', 'openai', 'anthropic', 'openrouter', 'mistral', 'groq', 'deepseek', 'xai', 'ollama'];
      expect(providersOf(EVERY_KEY)).to.deep.equal(order);
      expect(defaultOf(EVERY_KEY)).to.equal('gemini');
      expect([defaultOf({}), providersOf({})]).to.deep.equal(['offline', []]);
      expect(defaultOf({ ...EVERY_KEY, MODEL_PROVIDER: 'offline' })).to.equal('offline');
      expect(providersOf({ ...EVERY_KEY, MODEL_PROVIDER: 'groq' }).slice(0, 2)).to.deep.equal(['groq', 'gemini']);
    });

    it("have the vendor's address and a model of its own", () => {
      expect(first({ GEMINI_API_KEY: KEY })).to.deep.equal({
        name: 'gemini',
        api: 'gemini',
        apiKey: KEY,
        model: 'gemini-3.8-flash',
        maxCalls: null,
        baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
        settings: { key: 'GEMINI_API_KEY', baseUrl: 'GEMINI_BASE_URL', model: 'GEMINI_MODEL' },
      });
      expect(first({ ANTHROPIC_API_KEY: KEY, ANTHROPIC_MODEL: 'claude-y' })).to.include({ model: 'claude-y' });
      for (const { baseUrl, model } of readConfig(EVERY_KEY).providers.configured) {
        expect(baseUrl).to.match(/^https?:/);
        expect(model).to.not.equal('');
      }
    });

    it('add the version to an address without a path', () => {
      const rows = [
        ['OPENAI', 'http://127.0.0.1:9', 'http://127.0.0.1:9/v1'],
        ['OPENAI', 'http://127.0.0.1:9/v1/', 'http://127.0.0.1:9/v1'],
        ['OLLAMA', 'http://localhost:11434', 'http://localhost:11434/v1'],
        ['GEMINI', 'HTTPS://EXAMPLE.ORG/', 'https://example.org/v1beta'],
        ['GEMINI', 'https://example.org/gateway//', 'https://example.org/gateway'],
        ['ANTHROPIC', 'https://example.org', 'https://example.org/v1'],
      ] as const;
      for (const [name, given, baseUrl] of rows) {
        expect(first({ [`${name}_BASE_URL`]: given, [`${name}_MODEL`]: 'm' })).to.include({ baseUrl, apiKey: null });
      }
    });

    it('need a model where no vendor serves a known one', () => {
      for (const name of ['OPENAI', 'OLLAMA']) {
        const wrong = { [`${name}_BASE_URL`]: 'http://localhost:1' };
        expect(() => readConfig(wrong)).to.throw(
          ConfigInvalid,
          new RegExp(`^Cannot use ${name}_MODEL="": use the name`),
        );
      }
      expect(() => readConfig({ MODEL_PROVIDER: 'groq' })).to.throw(
        ConfigInvalid,
        /set GROQ_API_KEY or GROQ_BASE_URL too/,
      );
      expect(() => readConfig({ MODEL_PROVIDER: 'bard' })).to.throw(ConfigInvalid, /^Cannot use MODEL_PROVIDER="bard"/);
    });

    describe('in PROVIDERS_FILE', () => {
      const read = (file: unknown, environment: Record<string, string> = {}): Config =>
        readConfig({ PROVIDERS_FILE: '/etc/providers.json', ...environment }, () =>
          typeof file === 'string' ? file : JSON.stringify(file),
        );
      const local = { api: 'openai', base_url: 'http://10.0.0.1:8080', model: 'qwen' };

      it('come after the built-in ones, in their order, each with its own key', () => {
        const claude = {
          api: 'anthropic',
          base_url: 'https://x.example/v1',
          key_env: 'CLAUDE',
          model: 'c',
          max_calls: 3,
        };
        const { configured, default: name } = read({ local, claude }, { CLAUDE: KEY, XAI_API_KEY: KEY }).providers;
        expect(configured.map((each) => each.name)).to.deep.equal(['xai', 'local', 'claude']);
        expect(name).to.equal('xai');
        expect(configured[1]).to.include({
          apiKey: null,
          baseUrl: 'http://10.0.0.1:8080/v1',
          model: 'qwen',
          maxCalls: null,
        });
        expect(configured[2]).to.include({ apiKey: KEY, maxCalls: 3 });
        expect(read({ local }, { MODEL_PROVIDER: 'local' }).providers.default).to.equal('local');
      });

      const wrong: readonly (readonly [title: string, file: unknown, words: RegExp])[] = [
        ['no JSON', '{', /this file is not JSON/],
        ['a list', [], /holds an object/],
        ['a built-in name', { groq: local }, /no built-in provider.*"groq"/],
        ['a wrong name', { 'A b': local }, /lower-case letters/],
        ['no model', { local: { ...local, model: undefined } }, /a text in "model"/],
        [
          'an unknown API',
          { local: { ...local, api: 'soap' } },
          /^Cannot use PROVIDERS_FILE\.local\.api="soap": use "openai", "anthropic", "gemini"/,
        ],
        ['a wrong model', { local: { ...local, model: 'a b' } }, /^Cannot use PROVIDERS_FILE\.local\.model="a b": use/],
        ['an unknown field', { local: { ...local, apiKey: KEY } }, /not "apiKey"/],
        ['a bound of 0', { local: { ...local, max_calls: 0 } }, /"max_calls"/],
        [
          'an address with credentials',
          { local: { ...local, base_url: 'http://a:b@c' } },
          /^Cannot use PROVIDERS_FILE\.local\.base_url="\(hidden\)": use .* without credentials/,
        ],
      ];
      for (const [title, file, words] of wrong) {
        it(`stop the start with ${title}`, () => {
          expect(() => read(file))
            .to.throw(ConfigInvalid, words)
            .with.property('message')
            .that.does.not.include(KEY);
        });
      }

      for (const typed of ['sk-1234', KEY, 'sk_1234', 'abcdef0123456789', '1234ABCD', 'LOCAL KEY', 'A'.repeat(65)]) {
        it(`stop the start if key_env holds no name of a variable, which may be the key, and do not show it: ${typed.slice(0, 20)}`, () => {
          expect(() => read({ local: { ...local, key_env: typed } }))
            .to.throw(ConfigInvalid, /in "key_env" the name of the variable that holds the key.*\(provider "local"\)/)
            .with.property('message')
            .that.does.not.include(typed);
        });
      }

      it('cause a warning if the variable of their key is not set', () => {
        const keyed = { local: { ...local, key_env: 'LOCAL_KEY' } };
        const warning = 'PROVIDERS_FILE.local.key_env names LOCAL_KEY, which is not set: its calls carry no key';
        expect(read(keyed).warnings).to.deep.equal([warning]);
        expect([read(keyed, { LOCAL_KEY: KEY }).warnings, read({ local }).warnings]).to.deep.equal([[], []]);
      });

      it('may follow a byte order mark', () => {
        expect(read(`\uFEFF${JSON.stringify({ local })}`).providers.default).to.equal('local');
      });

      it('are named by their fields in messages', () => {
        expect(read({ local }).providers.configured[0]?.settings).to.deep.equal({
          key: 'PROVIDERS_FILE.local.key_env',
          baseUrl: 'PROVIDERS_FILE.local.base_url',
          model: 'PROVIDERS_FILE.local.model',
        });
      });
    });
  });

  describe('in PRICES_FILE', () => {
    const read = (file: unknown): Config['prices'] =>
      readConfig({ PRICES_FILE: '/etc/prices.json' }, () => (typeof file === 'string' ? file : JSON.stringify(file)))
        .prices;
    const price = { input_cost_per_token: 1e-6, output_cost_per_token: 0 };

    const wrong: readonly (readonly [title: string, file: unknown, words: RegExp])[] = [
      ['no JSON', '{', /"\/etc\/prices\.json": .*this file is not JSON/],
      ['no object', '[]', /holds an object/],
      [
        'a price that is text',
        { m: { ...price, input_cost_per_token: '1e-6' } },
        /"input_cost_per_token" \(model "m"\)/,
      ],
      [
        'a price below 0',
        { m: { ...price, output_cost_per_token: -1 } },
        /from 0 to 1 in "output_cost_per_token" \(model "m"\)/,
      ],
      ['a missing price', { n: price, m: { input_cost_per_token: 1 } }, /"output_cost_per_token" \(model "m"\)/],
      [
        'a misspelt field',
        { m: { ...price, input_cost_per_token: undefined, input_cost: 1 } },
        /"input_cost_per_token"/,
      ],
      [
        'a cache price that is text',
        { m: { ...price, cache_read_input_token_cost: '0' } },
        /"cache_read_input_token_cost"/,
      ],
      [
        'a price per million tokens in a field of prices per token',
        { m: price, n: { ...price, output_cost_per_token: 10 } },
        /US dollars per token from 0 to 1 in "output_cost_per_token" \(model "n"\)/,
      ],
      [
        'such a price of cached tokens',
        { m: { ...price, cache_read_input_token_cost: 1.01 } },
        /from 0 to 1 in "cache_read_input_token_cost" \(model "m"\)/,
      ],
      ['an entry that is a number', { m: 1 }, /an object for each model \(model "m"\)/],
    ];
    for (const [title, file, words] of wrong) {
      it(`stop the start with ${title}`, () => {
        expect(() => read(file))
          .to.throw(ConfigInvalid, words)
          .with.property('message')
          .that.matches(/^Cannot use PRICES_FILE=/);
      });
    }

    it('stop the start if the file cannot be read', () => {
      for (const path of ['/no/such/file', '/tmp', '/dev/null/x']) {
        expect(() => readConfig({ PRICES_FILE: path })).to.throw(ConfigInvalid, /this file cannot be read/);
        expect(() => readConfig({ PROVIDERS_FILE: path })).to.throw(ConfigInvalid, /this file cannot be read/);
      }
    });

    it("may be LiteLLM's own, in which some models have no price per token", () => {
      const image = { litellm_provider: 'openai', mode: 'image_generation', input_cost_per_pixel: 1e-8 };
      const chat = { ...price, litellm_provider: 'openai', mode: 'chat', cache_creation_input_token_cost: null };
      expect(read({ image, chat })).to.have.keys(['image', 'chat']);
    });
  });

  describe('without effect cause one warning that names', () => {
    const rows: readonly (readonly [environment: Environment, warning: string])[] = [
      ...[
        ...[
          ['OPENAI_APIKEY', 'OPENAI_API_KEY'],
          ['OPEN_AI_KEY', 'OPENAI_API_KEY'],
          ['ANTHROPIC_KEY', 'ANTHROPIC_API_KEY'],
        ],
        ...[
          ['OPEN_AI_API_KEY', 'OPENAI_API_KEY'],
          ['openai_api_key', 'OPENAI_API_KEY'],
          ['OPNEAI_API_KEY', 'OPENAI_API_KEY'],
        ],
        ...[
          ['OPENAI_API_BASE', 'OPENAI_BASE_URL'],
          ['OPENAI_URL', 'OPENAI_BASE_URL'],
          ['OLLAMA_URL', 'OLLAMA_BASE_URL'],
        ],
        ...[
          ['GOOGLE_API_KEY', 'GEMINI_API_KEY'],
          ['CLAUDE_API_KEY', 'ANTHROPIC_API_KEY'],
          ['MISTAL_API_KEY', 'MISTRAL_API_KEY'],
        ],
        ...[
          ['GOOGLE_GENERATIVE_AI_API_KEY', 'GEMINI_API_KEY'],
          ['TAVILY_KEY', 'TAVILY_API_KEY'],
          ['LOGLEVEL', 'LOG_LEVEL'],
        ],
        ...[
          ['MODEL_PROVDER', 'MODEL_PROVIDER'],
          ['PRICE_FILE', 'PRICES_FILE'],
          ['MAX_MODEL_CALL', 'MAX_MODEL_CALLS'],
        ],
        ...[
          ['OLLAMA_HOST', 'OLLAMA_BASE_URL'],
          ['OFFLINE_LATENCY', 'OFFLINE_LATENCY_MS'],
          ['MODEL_TIMEOUT', 'MODEL_TIMEOUT_MS'],
          ['LLM_PROVIDER', 'MODEL_PROVIDER'],
          ['EVENTSTOREDB_URL', 'EVENTSTORE_URL'],
        ],
      ].map(
        ([name = '', setting = '']) =>
          [{ [name]: KEY }, `${name} has no effect: the name of the setting is ${setting}`] as const,
      ),
      [{ OPENAI_MODEL: 'm' }, 'OPENAI_MODEL has no effect: set OPENAI_API_KEY or OPENAI_BASE_URL too'],
      [{ GROQ_MODEL: 'm', GEMINI_API_KEY: KEY }, 'GROQ_MODEL has no effect: set GROQ_API_KEY or GROQ_BASE_URL too'],
      [{ OLLAMA_MODEL: 'm' }, 'OLLAMA_MODEL has no effect: set OLLAMA_BASE_URL too'],
      [{ EVENTSTORE_PREFIX: 'p' }, 'EVENTSTORE_PREFIX has no effect: set EVENTSTORE_URL too'],
      [{ HEARTBEAT_MS: '500' }, 'HEARTBEAT_MS has no effect: set EVENTSTORE_URL too'],
      [
        { OTEL_EXPORTER_OTLP_HEADERS: 'a=b' },
        'OTEL_EXPORTER_OTLP_HEADERS has no effect: set OTEL_EXPORTER_OTLP_ENDPOINT too',
      ],
      [{ OTEL_BSP_SCHEDULE_DELAY: '9' }, 'OTEL_BSP_SCHEDULE_DELAY has no effect: set OTEL_EXPORTER_OTLP_ENDPOINT too'],
      [
        { OFFLINE_LATENCY_MS: '50', GEMINI_API_KEY: KEY },
        'OFFLINE_LATENCY_MS slows only nodes that name the offline model: the default provider is gemini',
      ],
    ];
    for (const [environment, warning] of rows) {
      it(`${Object.keys(environment)[0]} and what is right`, () => {
        expect(readConfig(environment).warnings).to.deep.equal([warning]);
      });
    }

    it('no variable that is set rightly, or is of another program', () => {
      const others = [
        'HOSTNAME',
        'OLLAMA_KEEP_ALIVE',
        'DATABASE_URL',
        'HOME',
        'PATH',
        'SSH_AUTH_SOCK',
        'OPENAI_ORG_ID',
        'LOGNAME',
      ];
      for (const environment of [
        Object.fromEntries(others.map((name) => [name, 'x'])),
        { OPENAI_API_KEY: KEY, OPENAI_KEY: KEY, OPENAI_MODEL: 'm', OPENAI_EMBEDDING_MODEL: 'e' },
        { https_proxy: 'http://a', HTTPS_PROXY: 'http://a', ALL_PROXY: 'http://a', FTP_PROXY: 'http://a' },
        { OLLAMA_HOST: '0.0.0.0', OLLAMA_BASE_URL: 'http://a', OLLAMA_MODEL: 'm' },
        { OFFLINE_LATENCY_MS: '50' },
        { COHERE_API_KEY: KEY, TOGETHER_API_KEY: KEY, COUNCIL_KEY: KEY, COUNCIL_URL: 'http://a' },
      ]) {
        expect(readConfig(environment).warnings).to.deep.equal([]);
      }
    });
  });

  it('choose Tavily for the web search if its key is set, otherwise SearXNG', () => {
    const SEARXNG_URL = 'http://localhost:8888/searxng/';
    expect(readConfig({ SEARXNG_URL }).webSearch).to.deep.equal({
      name: 'searxng',
      baseUrl: 'http://localhost:8888/searxng',
    });
    expect(readConfig({ SEARXNG_URL, TAVILY_API_KEY: KEY }).webSearch).to.deep.equal({
      name: 'tavily',
      apiKey: KEY,
      baseUrl: 'https://api.tavily.com',
    });
  });

  it('accept connection strings of an EventStoreDB: one host, several, a name to discover, any spelling of options', () => {
    for (const url of [
      'esdb://host',
      'esdb://127.0.0.1:2113/?tls=false',
      'kurrentdb://admin:changeit%40%3A%2F@one:2113,two:2113,three?tls=true&tlsCAFile=/etc/ca.pem&nodePreference=leader',
      'kurrentdb+discover://cluster.example.org:2113?KEEP-ALIVE-INTERVAL=-1&keep_alive_timeout=5000',
    ]) {
      expect(readConfig({ EVENTSTORE_URL: url }).eventStore).to.deep.equal({ url, prefix: '' });
    }
  });

  for (const [variable, values, accepted, beside = {}] of UNUSABLE) {
    const needed = Object.keys(beside)
      .map((name) => ` beside ${name}`)
      .join('');
    it(`refuse ${variable}=${JSON.stringify(values[0]).replaceAll(KEY, 'KEY')}${needed} on one line without a key`, () => {
      for (const value of values) {
        const { message } = refusalOf({ ...beside, [variable]: value });
        expect(message).to.include(`Cannot use ${variable}=`).and.include(accepted).and.include(': use ');
        expect(message).not.to.match(/[\r\n]/);
        expect(message).not.to.include(KEY);
      }
    });
  }

  describe('with a carriage return at the end, as in a file from Windows,', () => {
    const openAi = { MODEL_PROVIDER: 'openai', OPENAI_MODEL: 'm', OPENAI_BASE_URL: 'http://127.0.0.1:1/v1' };
    const gemini = { GEMINI_API_KEY: KEY };
    /** A value of each setting that differs from its default, and other settings that it needs. */
    const values: readonly [variable: string, value: string, beside?: Environment][] = [
      ['HOST', 'localhost'],
      ['PORT', '1'],
      ['DATA_DIR', './other'],
      ['EVENTSTORE_URL', 'esdb://host'],
      ['EVENTSTORE_URL', 'esdb://host:2113?tls=true&tlsCAFile=/etc/ca.pem'],
      ['EVENTSTORE_URL', 'esdb+discover://host?connectionName=mine'],
      ['EVENTSTORE_PREFIX', 'other', { EVENTSTORE_URL: 'esdb://host' }],
      ['MODEL_PROVIDER', 'offline', gemini],
      ['GEMINI_API_KEY', KEY],
      ['GEMINI_BASE_URL', 'http://127.0.0.1:1', gemini],
      ['GEMINI_MODEL', 'gemini-y', gemini],
      ['GEMINI_EMBEDDING_MODEL', 'embedding-y', gemini],
      ['OPENAI_API_KEY', KEY, openAi],
      ['OPENAI_BASE_URL', 'http://127.0.0.1:2', openAi],
      ['OPENAI_MODEL', 'n', openAi],
      ['OPENAI_EMBEDDING_MODEL', 'e', openAi],
      ['TAVILY_API_KEY', KEY],
      ['TAVILY_BASE_URL', 'http://127.0.0.1:1', { TAVILY_API_KEY: KEY }],
      ['SEARXNG_URL', 'http://127.0.0.1:1'],
      ['AUTH', 'off'],
      ['LOG_LEVEL', 'warn'],
      ['ALLOWED_HOSTS', 'one,two'],
      ['CORS_ORIGINS', 'https://example.org'],
      ['TRUSTED_PROXIES', '10.0.0.0/8'],
      ['MAX_ACTIVE_RUNS', '7'],
    ];
    for (const [variable, value, beside = {}] of values) {
      it(`refuse ${variable}=${value.replace(KEY, 'KEY')} by name or ignore the carriage return`, () => {
        const plain = readConfig({ ...beside, [variable]: value });
        let read = null;
        try {
          read = readConfig({ ...beside, [variable]: `${value}\r` });
        } catch (error) {
          expect(error).to.be.instanceOf(ConfigInvalid);
          expect(String(error)).to.include(`Cannot use ${variable}=`).and.not.include('\r').and.not.include(KEY);
        }
        if (read !== null) expect(read).to.deep.equal(plain);
      });
    }
  });

  it('show the first 200 characters of a refused value', () => {
    expect(refusalOf({ PORT: 'http' }).message).to.equal('Cannot use PORT="http": use a whole number from 0 to 65535');
    expect(refusalOf({ PORT: '9'.repeat(100_000) }).message.length).to.be.lessThan(400);
  });
});

describe('An unusable setting', () => {
  let dir: TempDir;
  beforeEach(() => (dir = tempDir()));
  afterEach(() => dir.remove());

  for (const [environment, says] of [
    [{ GEMINI_API_KEY: `${KEY}\n` }, /^Cannot use GEMINI_API_KEY="\(hidden\)": /],
    [{ GEMINI_API_KEY: KEY, GEMINI_BASE_URL: `x?key=${KEY}` }, /^Cannot use GEMINI_BASE_URL="\(hidden\)": /],
    [{ MODEL_PROVIDER: KEY }, /^Cannot use MODEL_PROVIDER="\(hidden\)": use "gemini", "openai", /],
    [{ ALLOWED_HOSTS: 'example.org:8000' }, /^Cannot use ALLOWED_HOSTS="example\.org:8000": .*without scheme and port/],
    [{ EVENTSTORE_URL: `esdb://a:${KEY}@b:c` }, /^Cannot use EVENTSTORE_URL="esdb:\/\/\(hidden\)@b:c": .*esdb:\/\//],
  ] as readonly [Environment, RegExp][]) {
    it(`is shown without its secrets: ${JSON.stringify(environment).replaceAll(KEY, 'KEY')}`, () => {
      expect(refusalOf(environment).message).to.match(says).and.not.include(KEY).and.not.include('\n');
    });
  }

  it('that is misspelt is named in the log at the start', async () => {
    const child = startChild(process.execPath, [MAIN], { PORT: '0', DATA_DIR: dir.path, OPENAI_APIKEY: KEY });
    await child.waitFor((lines) => lines.some((line) => line.startsWith('listening')));
    expect(child.lines.join('\n')).to.include('OPENAI_APIKEY has no effect').and.not.include(KEY);
    await child.kill();
  });

  /** Found when the settings are read, or only when the service opens its model, its log or its folder. */
  for (const [environment, says] of [
    [{ PORT: '80\n00' }, /^Cannot use PORT="80\\n00": use .*$/],
    [{ GEMINI_API_KEY: KEY, GEMINI_MODEL: '../files' }, /^Cannot use GEMINI_MODEL="\.\.\/files": /],
    [{ EVENTSTORE_URL: 'esdb://b?tlsCAFile=/no/file' }, /^Cannot use EVENTSTORE_URL="\(hidden\)": .*certificate file/],
    [{ DATA_DIR: '/dev/null/data' }, /^Cannot use DATA_DIR="\/dev\/null\/data": /],
  ] as readonly [Environment, RegExp][]) {
    it(`ends the service with exit code 2 after one line: ${JSON.stringify(environment).replaceAll(KEY, 'KEY')}`, async () => {
      const child = startChild(process.execPath, [MAIN], { PORT: '0', DATA_DIR: dir.path, ...environment });
      expect(await child.ended).to.equal(2);
      expect(child.lines).to.deep.equal([]);
      const [line = '', ...rest] = child.stderrText().split('\n');
      expect(line).to.match(says).and.not.include(KEY);
      expect(rest).to.deep.equal(['']);
    });
  }
});

function refusalOf(environment: Environment): ConfigInvalid {
  try {
    readConfig(environment);
  } catch (error) {
    if (error instanceof ConfigInvalid) return error;
    throw error;
  }
  throw new Error('Not refused');
}

import { expect } from 'chai';
import { fileURLToPath } from 'node:url';
import { readConfig } from '../src/config.js';
import { ConfigInvalid } from '../src/errors.js';
import { startChild } from './support/child.js';
import type { TempDir } from './support/temp-dir.js';
import { tempDir } from './support/temp-dir.js';

const MAIN = fileURLToPath(new URL('../src/main.js', import.meta.url));
const KEY = 'AIza-secret-key-of-this-test';
const IS_SOAK = process.env['SOAK'] !== undefined;

type Environment = Readonly<Record<string, string>>;

/** Environments that stop the start: the variable the refusal names, and what it says is accepted. */
const UNUSABLE: readonly [environment: Environment, variable: string, accepted: string][] = [
  ...['-1', '65536', '80.5', '8e3', '0x50', ' 80', 'http', '99999999999'].map((PORT): [Environment, string, string] => [
    { PORT },
    'PORT',
    'a whole number from 0 to 65535',
  ]),
  [{ PORT: '80\n00' }, 'PORT', 'a whole number'],
  [{ MODEL_PROVIDER: 'anthropic' }, 'MODEL_PROVIDER', '"gemini", "openai", "offline"'],
  [{ MODEL_PROVIDER: 'oracle' }, 'MODEL_PROVIDER', '"gemini", "openai", "offline"'],
  [{ MODEL_PROVIDER: 'openai' }, 'MODEL_PROVIDER', 'OPENAI_MODEL and OPENAI_API_KEY'],
  [{ MODEL_PROVIDER: 'openai', OPENAI_MODEL: 'm' }, 'MODEL_PROVIDER', 'OPENAI_MODEL and OPENAI_API_KEY'],
  [{ MODEL_PROVIDER: 'openai', OPENAI_API_KEY: KEY }, 'MODEL_PROVIDER', 'OPENAI_MODEL and OPENAI_API_KEY'],
  [{ OPENAI_API_KEY: `${KEY} ` }, 'OPENAI_API_KEY', 'visible ASCII'],
  [{ OPENAI_MODEL: 'my model' }, 'OPENAI_MODEL', 'a name of 1 to 200 visible ASCII characters'],
  [{ OPENAI_BASE_URL: 'localhost:11434/v1' }, 'OPENAI_BASE_URL', 'an http or https URL'],
  [{ TAVILY_API_KEY: `${KEY}\n` }, 'TAVILY_API_KEY', 'visible ASCII'],
  [{ TAVILY_BASE_URL: `https://example.org/?key=${KEY}` }, 'TAVILY_BASE_URL', 'an http or https URL'],
  [{ SEARXNG_URL: 'search.example.org' }, 'SEARXNG_URL', 'an http or https URL'],
  [{ MODEL_PROVIDER: 'Gemini', GEMINI_API_KEY: KEY }, 'MODEL_PROVIDER', '"gemini", "openai", "offline"'],
  [{ MODEL_PROVIDER: 'gemini' }, 'MODEL_PROVIDER', 'GEMINI_API_KEY'],
  [{ MODEL_PROVIDER: 'gemini', GEMINI_API_KEY: '' }, 'MODEL_PROVIDER', 'GEMINI_API_KEY'],
  [{ GEMINI_API_KEY: `${KEY}\n` }, 'GEMINI_API_KEY', 'visible ASCII'],
  [{ GEMINI_API_KEY: `${KEY} ` }, 'GEMINI_API_KEY', 'visible ASCII'],
  [{ GEMINI_API_KEY: `${KEY}ä` }, 'GEMINI_API_KEY', 'visible ASCII'],
  [{ MODEL_PROVIDER: 'offline', GEMINI_API_KEY: `${KEY}\n` }, 'GEMINI_API_KEY', 'visible ASCII'],
  ...[
    'generativelanguage.googleapis.com',
    'localhost:8080',
    'ftp://example.org',
    'file:///etc/passwd',
    'http://',
    'https://exa mple.org',
    `https://user:${KEY}@example.org`,
    `https://example.org/?key=${KEY}`,
    `https://example.org/#${KEY}`,
  ].map((url): [Environment, string, string] => [
    { GEMINI_BASE_URL: url, GEMINI_API_KEY: KEY },
    'GEMINI_BASE_URL',
    'an http or https URL without credentials, query and fragment',
  ]),
  [{ GEMINI_BASE_URL: 'nowhere' }, 'GEMINI_BASE_URL', 'an http or https URL'],
  [{ OFFLINE_LATENCY_MS: '60001' }, 'OFFLINE_LATENCY_MS', 'from 0 to 60000'],
  [{ OFFLINE_LATENCY_MS: '-1', GEMINI_API_KEY: KEY }, 'OFFLINE_LATENCY_MS', 'from 0 to 60000'],
  [{ AUTH: 'none' }, 'AUTH', '"on", "off"'],
  [{ MAX_REQUESTS_PER_SECOND: '-1' }, 'MAX_REQUESTS_PER_SECOND', 'from 0 to 1000000'],
  [{ MAX_REQUEST_BURST: '0' }, 'MAX_REQUEST_BURST', 'from 1 to 1000000'],
  [{ MAX_RUNS_PER_MINUTE: '1.5' }, 'MAX_RUNS_PER_MINUTE', 'from 0 to 1000000'],
  [{ MAX_UNFINISHED_RUNS: 'many' }, 'MAX_UNFINISHED_RUNS', 'from 0 to 1000000'],
  [{ OFFLINE_LATENCY_MS: '1s' }, 'OFFLINE_LATENCY_MS', 'from 0 to 60000'],
  [{ MODEL_TIMEOUT_MS: '99999999999' }, 'MODEL_TIMEOUT_MS', 'from 1 to 2147483647'],
  [{ MODEL_TIMEOUT_MS: '0' }, 'MODEL_TIMEOUT_MS', 'from 1 to 2147483647'],
  [{ MODEL_TIMEOUT_MS: '2147483648' }, 'MODEL_TIMEOUT_MS', 'from 1 to 2147483647'],
  [{ MODEL_MAX_ATTEMPTS: '1.5' }, 'MODEL_MAX_ATTEMPTS', 'from 1 to 100'],
  [{ MODEL_MAX_ATTEMPTS: '0' }, 'MODEL_MAX_ATTEMPTS', 'from 1 to 100'],
  [{ MODEL_MAX_ATTEMPTS: '101' }, 'MODEL_MAX_ATTEMPTS', 'from 1 to 100'],
  [{ MAX_ACTIVE_RUNS: '0' }, 'MAX_ACTIVE_RUNS', 'from 1 to 1000000'],
  [{ MAX_ACTIVE_RUNS: 'many' }, 'MAX_ACTIVE_RUNS', 'from 1 to 1000000'],
  [{ MODEL_OUTAGE_MS: '-1' }, 'MODEL_OUTAGE_MS', 'from 0 to 2147483647'],
  [{ PDF_TIMEOUT_MS: '0' }, 'PDF_TIMEOUT_MS', 'from 1 to 3600000'],
  [{ PDF_TIMEOUT_MS: '3600001' }, 'PDF_TIMEOUT_MS', 'from 1 to 3600000'],
  [{ PDF_TIMEOUT_MS: '15s' }, 'PDF_TIMEOUT_MS', 'from 1 to 3600000'],
  [{ MODEL_OUTAGE_MS: '2 min' }, 'MODEL_OUTAGE_MS', 'from 0 to 2147483647'],
  [{ MAX_MODEL_CALLS: '-1' }, 'MAX_MODEL_CALLS', 'from 1 to 1000000'],
  [{ MAX_MODEL_CALLS: '0' }, 'MAX_MODEL_CALLS', 'from 1 to 1000000'],
  [{ MAX_MODEL_CALLS: '1000001' }, 'MAX_MODEL_CALLS', 'from 1 to 1000000'],
  ...[
    '*',
    '*.example.org',
    'example.org:8000',
    'abc.de:80',
    '[::1]:8000',
    '[::1',
    '1::2::3',
    '999.1.1.1',
    'https://example.org',
    'example.org/',
    'a b',
    'user@example.org',
    'example.org,,',
    '.',
    ',',
  ].map((hosts): [Environment, string, string] => [{ ALLOWED_HOSTS: hosts }, 'ALLOWED_HOSTS', 'list of host names']),
  [{ CORS_ORIGINS: '*' }, 'CORS_ORIGINS', 'origins such as'],
  [{ CORS_ORIGINS: 'https://a.example/path' }, 'CORS_ORIGINS', 'origins such as'],
  [{ CORS_ORIGINS: 'https://example.org/' }, 'CORS_ORIGINS', 'origins such as'],
  [{ CORS_ORIGINS: 'https://example.org,,' }, 'CORS_ORIGINS', 'origins such as'],
  [{ TRUSTED_PROXIES: 'proxy' }, 'TRUSTED_PROXIES', 'addresses and ranges such as'],
  [{ TRUSTED_PROXIES: '10.0.0.0/33' }, 'TRUSTED_PROXIES', 'addresses and ranges such as'],
  [{ TRUSTED_PROXIES: '::1/x' }, 'TRUSTED_PROXIES', 'addresses and ranges such as'],
  [{ TRUSTED_PROXIES: '10.0.0.1,' }, 'TRUSTED_PROXIES', 'addresses and ranges such as'],
  [{ LOG_LEVEL: 'loud' }, 'LOG_LEVEL', '"debug", "info", "warn", "error", "silent"'],
  ...[
    'localhost:2113',
    'http://localhost:2113',
    'esdb://',
    'esdb://host:port',
    'esdb://host:2113/db',
    'esdb://[::1]:2113',
    'esdb://host:0',
    'esdb://host:65536',
    'esdb://one:1,two:99999',
    `esdb://admin:${KEY}:1@host`,
    `esdb://admin:${KEY}/1@host`,
    `esdb://admin:${KEY}@1@host`,
    `esdb://admin:${KEY}?@host`,
    `esdb://${KEY}@host`,
    `admin:${KEY}@host`,
    'esdb+discover://one,two',
  ].map((url): [Environment, string, string] => [
    { EVENTSTORE_URL: url },
    'EVENTSTORE_URL',
    'esdb://[user:password@]host[:port]',
  ]),
  ...[
    'tlsVerifyCert=false',
    'throwOnAppendFailure=false',
    'tls=no',
    'nodePreference=follower',
    'gossipTimeout=0',
    'keepAliveInterval=9999',
    'x',
  ].map((option): [Environment, string, string] => [
    { EVENTSTORE_URL: `kurrentdb://admin:${KEY}@host?tls=true&${option}` },
    'EVENTSTORE_URL',
    'for the option',
  ]),
  ...['Staging', 'a-b', 'a b', 'ä', 'a'.repeat(65)].map((EVENTSTORE_PREFIX): [Environment, string, string] => [
    { EVENTSTORE_PREFIX },
    'EVENTSTORE_PREFIX',
    'lower-case letters and digits',
  ]),
];

describe('Settings', () => {
  it('have their defaults where nothing is set', () => {
    const defaults = {
      host: '127.0.0.1',
      port: 8000,
      dataDir: './data',
      eventStore: null,
      modelProvider: { name: 'offline', latencyMs: 0 },
      embeddings: { name: 'offline' },
      webSearch: null,
      pdfTimeoutMs: 15_000,
      modelTimeoutMs: 120_000,
      modelMaxAttempts: 4,
      modelOutageMs: 120_000,
      maxActiveRuns: 1_000,
      maxModelCalls: 64,
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
      logLevel: 'info',
    };
    expect(readConfig({})).to.deep.equal(defaults);
    const names = ['HOST', 'PORT', 'DATA_DIR', 'MODEL_PROVIDER', 'GEMINI_API_KEY', 'GEMINI_BASE_URL', 'GEMINI_MODEL'];
    const more = [
      'OFFLINE_LATENCY_MS',
      'MODEL_TIMEOUT_MS',
      'MODEL_MAX_ATTEMPTS',
      'MODEL_OUTAGE_MS',
      'MAX_ACTIVE_RUNS',
      'MAX_MODEL_CALLS',
    ];
    const many = [
      'EVENTSTORE_URL',
      'EVENTSTORE_PREFIX',
      'HEARTBEAT_MS',
      'SUSPECT_AFTER_MS',
      'ALLOWED_HOSTS',
      'CORS_ORIGINS',
      'AUTH',
      'MAX_REQUESTS_PER_SECOND',
      'MAX_REQUEST_BURST',
      'MAX_RUNS_PER_MINUTE',
      'MAX_UNFINISHED_RUNS',
      'TRUSTED_PROXIES',
      'LOG_LEVEL',
    ];
    const others = [
      'OPENAI_API_KEY',
      'OPENAI_BASE_URL',
      'OPENAI_MODEL',
      'OPENAI_EMBEDDING_MODEL',
      'GEMINI_EMBEDDING_MODEL',
    ];
    const search = ['TAVILY_API_KEY', 'TAVILY_BASE_URL', 'SEARXNG_URL', 'PDF_TIMEOUT_MS'];
    const empty = Object.fromEntries([...names, ...more, ...others, ...search, ...many].map((name) => [name, '']));
    expect(readConfig(empty)).to.deep.equal(defaults);
  });

  it('give an instance among others thirty seconds of silence, or six beats', () => {
    const clusterOf = (environment: Record<string, string>): object | null =>
      readConfig({ EVENTSTORE_URL: 'esdb://localhost:2113?tls=false', ...environment }).cluster;
    expect(clusterOf({})).to.deep.equal({ heartbeatMs: 5_000, suspectAfterMs: 30_000 });
    expect(clusterOf({ HEARTBEAT_MS: '100' })).to.deep.equal({ heartbeatMs: 100, suspectAfterMs: 600 });
    expect(clusterOf({ SUSPECT_AFTER_MS: '15000' })).to.deep.equal({ heartbeatMs: 5_000, suspectAfterMs: 15_000 });
    expect(() => clusterOf({ SUSPECT_AFTER_MS: '14999' })).to.throw('SUSPECT_AFTER_MS');
  });

  it('are read from their variables', () => {
    const config = readConfig({
      HOST: '::1',
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
      ALLOWED_HOSTS: 'Council.Example.ORG., 10.0.0.5,::1, [FE80::1]',
      CORS_ORIGINS: 'https://example.org, http://localhost:3000',
      AUTH: 'off',
      MAX_REQUESTS_PER_SECOND: '20',
      MAX_RUNS_PER_MINUTE: '0',
      MAX_UNFINISHED_RUNS: '5',
      TRUSTED_PROXIES: '10.0.0.1, 172.16.0.0/12,fd00::/8',
      LOG_LEVEL: 'silent',
    });
    expect(config).to.deep.equal({
      host: '::1',
      port: 0,
      dataDir: '/var/lib/council',
      eventStore: { url: 'esdb://127.0.0.1:2113?tls=false', prefix: 'staging2' },
      modelProvider: { name: 'offline', latencyMs: 60_000 },
      embeddings: { name: 'offline' },
      webSearch: { name: 'searxng', baseUrl: 'http://localhost:8888' },
      pdfTimeoutMs: 60_000,
      modelTimeoutMs: 2_147_483_647,
      modelMaxAttempts: 100,
      modelOutageMs: 0,
      maxActiveRuns: 1,
      maxModelCalls: 1_000_000,
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
      logLevel: 'silent',
    });
  });

  it('limit requests by a rate and a burst, of which either may be set, and 0 is no limit', () => {
    const requestsOf = (environment: Environment): object | null => readConfig(environment).limits.requests;
    expect(requestsOf({ MAX_REQUEST_BURST: '500' })).to.deep.equal({ quota: 500, windowSeconds: 0.5, isSet: true });
    const both = { MAX_REQUESTS_PER_SECOND: '2', MAX_REQUEST_BURST: '1' };
    expect(requestsOf(both)).to.deep.equal({ quota: 1, windowSeconds: 0.5, isSet: true });
    expect(requestsOf({ MAX_REQUESTS_PER_SECOND: '0' })).to.equal(null);
  });

  it('choose Gemini when there is a key, unless the offline model is asked for', () => {
    const gemini = {
      name: 'gemini',
      apiKey: KEY,
      baseUrl: 'https://generativelanguage.googleapis.com',
      model: 'gemini-3.8-flash',
    };
    expect(readConfig({ GEMINI_API_KEY: KEY }).modelProvider).to.deep.equal(gemini);
    expect(readConfig({ GEMINI_API_KEY: KEY, MODEL_PROVIDER: 'gemini' }).modelProvider).to.deep.equal(gemini);
    expect(readConfig({ GEMINI_API_KEY: KEY, MODEL_PROVIDER: 'offline' }).modelProvider.name).to.equal('offline');
    expect(readConfig({ GEMINI_API_KEY: KEY, GEMINI_MODEL: 'gemini-y' }).modelProvider).to.include({
      model: 'gemini-y',
    });
  });

  it('choose an OpenAI-compatible server when asked to, without a key at a custom address', () => {
    const [MODEL_PROVIDER, OPENAI_MODEL] = ['openai', 'llama3.2:3b'];
    expect(readConfig({ MODEL_PROVIDER, OPENAI_MODEL, OPENAI_API_KEY: KEY }).modelProvider).to.deep.equal({
      name: 'openai',
      apiKey: KEY,
      baseUrl: 'https://api.openai.com/v1',
      model: OPENAI_MODEL,
    });
    const local = { MODEL_PROVIDER, OPENAI_MODEL, OPENAI_BASE_URL: 'http://localhost:11434/v1/' };
    expect(readConfig(local).modelProvider).to.deep.equal({
      name: 'openai',
      apiKey: null,
      baseUrl: 'http://localhost:11434/v1',
      model: OPENAI_MODEL,
    });
    expect(readConfig({ OPENAI_MODEL, OPENAI_API_KEY: KEY }).modelProvider.name).to.equal('offline');
  });

  it('choose Tavily for the web search where there is a key, else SearXNG', () => {
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

  for (const [url, baseUrl] of [
    ['http://127.0.0.1:9', 'http://127.0.0.1:9'],
    ['https://example.org/', 'https://example.org'],
    ['https://example.org/gateway//', 'https://example.org/gateway'],
    ['HTTPS://EXAMPLE.ORG', 'https://example.org'],
  ] as const) {
    it(`take ${url} for the address of Gemini`, () => {
      const config = readConfig({ GEMINI_API_KEY: KEY, GEMINI_BASE_URL: url });
      expect(config.modelProvider).to.include({ baseUrl });
    });
  }

  for (const url of [
    'esdb://host',
    'esdb://127.0.0.1:2113/?tls=false',
    'kurrentdb://admin:changeit%40%3A%2F@one:2113,two:2113,three?tls=true&tlsCAFile=/etc/ca.pem&nodePreference=leader',
    'kurrentdb+discover://cluster.example.org:2113?KEEP-ALIVE-INTERVAL=-1&keep_alive_timeout=5000',
  ]) {
    it(`take ${url} for an EventStoreDB`, () => {
      expect(readConfig({ EVENTSTORE_URL: url }).eventStore).to.deep.equal({ url, prefix: '' });
    });
  }

  for (const [environment, variable, accepted] of UNUSABLE) {
    it(`are refused on one line that names ${variable}: ${JSON.stringify(environment).replaceAll(KEY, 'KEY')}`, () => {
      const { message } = refusalOf(environment);
      expect(message).to.include(variable).and.include(accepted).and.include(': use ');
      expect(message).not.to.match(/[\r\n]/);
      expect(message).not.to.include(KEY);
    });
  }

  describe('with a carriage return at the end, as from a file that was written on Windows,', () => {
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
      it(`such as ${variable}=${value.replace(KEY, 'KEY')}, are read without it or refused by name`, () => {
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

  it('that are refused are quoted, and long ones not whole', () => {
    expect(refusalOf({ PORT: 'http' }).message).to.equal('Cannot use PORT="http": use a whole number from 0 to 65535');
    expect(refusalOf({ PORT: '9'.repeat(100_000) }).message.length).to.be.lessThan(400);
  });
});

describe('An unusable setting', () => {
  let dir: TempDir;
  beforeEach(() => (dir = tempDir()));
  afterEach(() => dir.remove());

  type Refused = readonly [environment: Environment, says: RegExp];
  /** Each other kind of setting once: the start says what reading them says. */
  const whenRead: readonly Refused[] = [
    [{ MODEL_PROVIDER: 'gemini' }, /^Cannot use MODEL_PROVIDER="gemini": .*GEMINI_API_KEY/],
    [{ GEMINI_API_KEY: `${KEY}\n` }, /^Cannot use GEMINI_API_KEY="\(hidden\)": /],
    [{ GEMINI_API_KEY: KEY, GEMINI_BASE_URL: `x?key=${KEY}` }, /^Cannot use GEMINI_BASE_URL="\(hidden\)": /],
    [{ MODEL_PROVIDER: 'openai' }, /^Cannot use MODEL_PROVIDER="openai": .*OPENAI_MODEL/],
    [{ MODEL_PROVIDER: KEY }, /^Cannot use MODEL_PROVIDER="\(hidden\)": use "gemini", "openai", "offline"$/],
    [{ ALLOWED_HOSTS: 'example.org:8000' }, /^Cannot use ALLOWED_HOSTS="example\.org:8000": .*without scheme and port/],
    [{ CORS_ORIGINS: '*' }, /^Cannot use CORS_ORIGINS="\*": /],
    [{ LOG_LEVEL: 'loud' }, /^Cannot use LOG_LEVEL="loud": /],
    [{ EVENTSTORE_URL: `esdb://a:${KEY}@b:c` }, /^Cannot use EVENTSTORE_URL="esdb:\/\/\(hidden\)@b:c": .*esdb:\/\//],
    [{ EVENTSTORE_PREFIX: 'A' }, /^Cannot use EVENTSTORE_PREFIX="A": /],
  ];
  for (const [environment, says] of whenRead) {
    it(`is told in one line without a key: ${JSON.stringify(environment).replaceAll(KEY, 'KEY')}`, () => {
      expect(refusalOf(environment).message).to.match(says).and.not.include(KEY).and.not.include('\n');
    });
  }

  /** What is found after they are read, and of the others one that is shown and one that is hidden; all in a soak. */
  const atStart: readonly Refused[] = [
    [{ PORT: '80\n00' }, /^Cannot use PORT="80\\n00": use .*$/],
    [{ GEMINI_API_KEY: KEY, GEMINI_MODEL: '../files' }, /^Cannot use GEMINI_MODEL="\.\.\/files": /],
    [{ TAVILY_API_KEY: `${KEY}\n` }, /^Cannot use TAVILY_API_KEY="\(hidden\)": /],
    [{ EVENTSTORE_URL: 'esdb://b?tlsCAFile=/no/file' }, /^Cannot use EVENTSTORE_URL="\(hidden\)": .*certificate file/],
    [{ DATA_DIR: '/dev/null/data' }, /^Cannot use DATA_DIR="\/dev\/null\/data": /],
    ...(IS_SOAK ? whenRead : []),
  ];
  for (const [environment, says] of atStart) {
    it(`exits with 2 after one line: ${JSON.stringify(environment).replaceAll(KEY, 'KEY')}`, async () => {
      const child = startChild(process.execPath, [MAIN], { PORT: '0', DATA_DIR: dir.path, ...environment });
      expect(await child.ended).to.equal(2);
      expect(child.lines).to.deep.equal([]);
      const [line = '', ...rest] = child.complaint().split('\n');
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

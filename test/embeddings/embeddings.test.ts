import { expect } from 'chai';
import { createHash } from 'node:crypto';
import type { ProviderSettings } from '../../src/config-providers.js';
import { nodeSystem } from '../../src/system/system.js';
import { NO_PROXIES } from '../support/no-proxies.js';
import { readConfig } from '../../src/config.js';
import { ModelFailed } from '../../src/errors.js';
import { normalised, type Embeddings } from '../../src/embeddings/port.js';
import { offlineEmbeddings, offlineVector } from '../../src/embeddings/offline.js';
import { embeddingsOf } from '../../src/embeddings/provider.js';
import { vectorFromBase64, vectorToBase64 } from '../../src/embeddings/port.js';
import { wordsOf } from '../../src/embeddings/words.js';
import { embeds, fakeEmbeddings, numbersOf, type EmbeddingRequest } from '../support/fake-embeddings.js';
import {
  endsMidBody,
  hangs,
  hangsMidBody,
  resets,
  resetsMidBody,
  sends,
  type FakeServer,
  type Reply,
} from '../support/fake-server.js';
import { refuses } from '../support/fake-gemini.js';
import { rejectionOf } from '../support/rejection.js';

const KEY = 'key-of-a-test';
const TEXT = 'The council meets on Thursdays.';
const { signal } = new AbortController();
const PASSAGE = { kind: 'chunk', signal } as const;

describe('Vectors of texts', () => {
  describe('in events', () => {
    it('are read as they were written, in the same form on every machine', () => {
      const vector = Float32Array.from([1, -0.5, 1e-30]);
      expect(vectorToBase64(vector)).to.equal('AACAPwAAAL9gQqIN');
      expect(vectorFromBase64('AACAPwAAAL9gQqIN', 3)).to.deep.equal(vector);
    });

    it('are refused if the text is no vector', () => {
      const nan = vectorToBase64(Float32Array.from([NaN]));
      for (const text of ['', 'AACAPw', 'AACAPwAAAL9gQqIN', '????', 'AAC\nAPw==', nan]) {
        expect(vectorFromBase64(text, 1), text).to.equal(null);
      }
    });
  });

  describe('offline', () => {
    const nearness = (one: string, other: string): number => {
      const vector = offlineVector(other);
      return offlineVector(one).reduce((sum, each, at) => sum + each * (vector[at] ?? 0), 0);
    };

    it('have length 1 and are always the same', async () => {
      const [vector] = await offlineEmbeddings().embed([TEXT], PASSAGE);
      expect(vector).to.deep.equal(offlineVector(TEXT));
      expect(nearness(TEXT, TEXT)).to.be.closeTo(1, 1e-6);
      const digest = createHash('sha256')
        .update(vectorToBase64(offlineVector(TEXT)))
        .digest('hex');
      expect(digest.slice(0, 16), 'raise the number in the name of the model').to.equal('eac723ced4865495');
      expect(offlineVector(' … ').every((each) => each === 0)).to.equal(true);
    });

    it('are nearer the more words and parts of words two texts share', () => {
      const query = 'opening hours of the town library';
      expect(nearness(query, 'The library of our town: when it opens')).to.be.above(0.2);
      expect(nearness(query, 'Libraries in many towns')).to.be.within(0.1, 0.5);
      expect(nearness(query, 'Bicycles lack parking space')).to.be.below(0.1);
      expect(nearness('図書館の時間', '市立図書館は日曜日も開いています')).to.be.above(0.2);
      expect(nearness('библиотеки города', 'Городская библиотека')).to.be.above(0.1);
    });

    it('ignore niqqud, tashkil and hidden characters, and read ß as ss', () => {
      const text = 'Straße GROẞ שָׁלוֹם مُحَمَّد so\u00adft ze\u200bro İI ΟΔΟΣ A\u030a ﬁ ガ';
      const words = ['strasse', 'gross', 'שלום', 'محمد', 'soft', 'zero', 'ii', 'οδοσ', 'a', 'fi', 'ガ'];
      expect(wordsOf(text)).to.deep.equal(words);
      expect(wordsOf(words.join(' '))).to.deep.equal(words);
    });

    it('ignore case, accents and signs, and cut scripts without spaces into pairs', () => {
      expect(wordsOf('Été, "ＦＵＬＬ" a\0b ½ и й')).to.deep.equal(['ete', 'full', 'a', 'b', '1', '2', 'и', 'и']);
      expect(wordsOf('東京都、𠮷野家 ไทย 한국어')).to.deep.equal([
        '東京',
        '京都',
        '𠮷野',
        '野家',
        'ไท',
        'ทย',
        '한국',
        '국어',
      ]);
    });
  });

  const adapters = {
    Gemini: (baseUrl: string, limits: Limits): Promise<Embeddings> =>
      embeddingsOf(settingsOf('gemini', `${baseUrl}/v1beta`, 'gemini-embedding-001'), { ...DEPS, limits }),
    'an OpenAI-compatible server': (baseUrl: string, limits: Limits): Promise<Embeddings> =>
      embeddingsOf(settingsOf('openai', baseUrl, 'nomic-embed-text'), { ...DEPS, limits }),
  };
  for (const [name, adapter] of Object.entries(adapters)) {
    describe(`of ${name}`, () => {
      let server: FakeServer<EmbeddingRequest>;

      beforeEach(async () => {
        server = await fakeEmbeddings(embeds);
      });

      afterEach(() => server.stop());

      const open = (limits: Limits = { timeoutMs: 5_000, maxAttempts: 1 }): Promise<Embeddings> =>
        adapter(server.url, limits);
      const faultOf = async (reply: Reply, limits?: Limits) => {
        server.answerBy([reply]);
        const error = await rejectionOf((await open(limits)).embed([TEXT], PASSAGE));
        if (!(error instanceof ModelFailed)) throw error;
        expect(error.message).to.not.include(KEY).and.not.include(TEXT);
        return error;
      };

      it('come in the order of the texts, of length 1, at most 100 a request', async () => {
        const texts = Array.from({ length: 130 }, (_, at) => 'x'.repeat(at + 1));
        const vectors = await (await open()).embed(texts, PASSAGE);
        expect(vectors).to.have.lengthOf(130);
        vectors.forEach((vector, at) => {
          const numbers = numbersOf(texts[at] ?? '');
          const length = Math.hypot(...numbers);
          expect(vector[0]).to.be.closeTo((numbers[0] ?? 0) / length, 1e-6);
        });
        const sizes = server.calls.map(({ body }) => (body.input ?? body.requests ?? [body]).length);
        expect(Math.max(...sizes)).to.be.at.most(100);
        expect(await (await open()).embed([], PASSAGE)).to.deep.equal([]);
        expect(server.calls).to.have.lengthOf(sizes.length);
      });

      const answers: readonly (readonly [string, Reply, string])[] = [
        ['no JSON', sends('<html>'), 'unreadable_answer'],
        ['nothing', sends(''), 'unreadable_answer'],
        ['null', sends('null'), 'unreadable_answer'],
        ['no vectors', sends({ embeddings: [], data: [] }), 'unreadable_answer'],
        ['another number of vectors', vectorsOf(numbersOf('a'), numbersOf('b')), 'unreadable_answer'],
        ['other dimensions', vectorsOf([1, 2, 3]), 'bad_vector'],
        ['no vector at all', vectorsOf(null), 'bad_vector'],
        ['zeros', vectorsOf(numbersOf('a').map(() => 0)), 'bad_vector'],
        ['texts for numbers', vectorsOf(numbersOf('a').map(String)), 'bad_vector'],
        [
          'numbers past all bounds',
          sends(
            `{"embedding":{"values":[${'1e999,'.repeat(767)}1]},"data":[{"index":0,"embedding":[${'1e999,'.repeat(767)}1]}]}`,
          ),
          'bad_vector',
        ],
        ['more than it may', sends(`"${'x'.repeat(17 * 1024 * 1024)}"`), 'answer_too_large'],
        ['a redirect', (response) => response.writeHead(307, { Location: '/elsewhere' }).end(), 'redirected'],
        ['a refusal of the key', refuses(401, { message: `Wrong ${KEY} for ${TEXT}` }), 'unauthorized'],
        ['an unknown model', refuses(404), 'model_unknown'],
        ['a reset', resets, 'connection_lost'],
      ];
      for (const [what, reply, kind] of answers) {
        it(`fail as ${kind} on ${what}`, async () => {
          expect((await faultOf(reply)).data.kind).to.equal(kind);
        });
      }

      it('fail as retryable on bodies that break off, and as timeout on bodies that never end', async () => {
        for (const reply of [endsMidBody, resetsMidBody]) expect((await faultOf(reply)).data.retryable).to.equal(true);
        const brief = { timeoutMs: 50, maxAttempts: 1 };
        for (const reply of [hangs, hangsMidBody]) expect((await faultOf(reply, brief)).data.kind).to.equal('timeout');
      });

      it('are retried after temporary failures, no sooner than the server asks, up to a limit', async () => {
        const asks = refuses(429, { headers: { 'Retry-After': '1' } });
        const answer = vectorsOf(numbersOf(TEXT));
        server.answerBy([refuses(503), asks, answer]);
        const [vector] = await (await open({ timeoutMs: 5_000, maxAttempts: 3 })).embed([TEXT], PASSAGE);
        expect(vector).to.have.lengthOf(768);
        const [, second, third] = server.calls.map(({ atMs }) => atMs);
        expect((third ?? 0) - (second ?? 0)).to.be.at.least(990);
        server.answerBy([refuses(503)]);
        const before = server.calls.length;
        await rejectionOf((await open({ timeoutMs: 5_000, maxAttempts: 2 })).embed([TEXT], PASSAGE));
        expect(server.calls.length - before).to.equal(2);
      });

      it('are aborted by their signal, during a request and between two', async () => {
        for (const reply of [hangs, refuses(429, { headers: { 'Retry-After': '30' } })]) {
          server.answerBy([reply]);
          const stop = new AbortController();
          const before = server.calls.length;
          const failed = rejectionOf(
            (await open({ timeoutMs: 9_000, maxAttempts: 3 })).embed([TEXT], { kind: 'query', signal: stop.signal }),
          );
          await server.until(() => server.calls.length > before);
          stop.abort();
          expect(await failed).to.have.nested.property('data.kind', 'aborted');
        }
      });
    });
  }

  const isLong = (text: string): boolean => text.length > 300;
  it('of a text that is too large are the mean of its parts, weighted by length, scaled to length 1', async () => {
    const server = await fakeEmbeddings((call, index) =>
      call.body.input?.some(isLong) === true
        ? refuses(400, { message: "This model's maximum context length is 100 tokens" })
        : embeds(call, index),
    );
    const embeddings = await adapters['an OpenAI-compatible server'](server.url, { timeoutMs: 5_000, maxAttempts: 1 });
    const unitOf = (of: string): Float32Array => normalised(numbersOf(of)) ?? new Float32Array();
    const text = `${'a'.repeat(299)} ${'🌳'.repeat(100)}`;
    const [vector = new Float32Array(), short] = await embeddings.embed([text, TEXT], PASSAGE);
    await server.stop();
    const taken = server.calls.flatMap(({ body: { input = [] } }) => (input.some(isLong) ? [] : input));
    expect(taken.join('')).to.equal(text + TEXT);
    expect(taken.every((each) => each.isWellFormed())).to.equal(true);
    const pieces = taken.slice(0, -1).map((each) => ({ weight: each.length, unit: unitOf(each) }));
    const mean = vector.map((_, at) => pieces.reduce((sum, { weight, unit }) => sum + weight * (unit[at] ?? 0), 0));
    const length = Math.hypot(...mean);
    vector.forEach((value, at) => expect(value).to.be.closeTo((mean[at] ?? 0) / length, 1e-5));
    expect(short).to.deep.equal(unitOf(TEXT));
  });

  it('are requested from Gemini for chunks or queries, with 768 dimensions', async () => {
    const server = await fakeEmbeddings(embeds);
    const gemini = await adapters.Gemini(server.url, { timeoutMs: 5_000, maxAttempts: 1 });
    await gemini.embed([TEXT, TEXT], PASSAGE);
    await gemini.embed([TEXT], { kind: 'query', signal });
    await server.stop();
    expect(server.calls.map(({ path }) => path)).to.deep.equal([
      '/v1beta/models/gemini-embedding-001:batchEmbedContents',
      '/v1beta/models/gemini-embedding-001:embedContent',
    ]);
    expect(server.calls.map(({ headers }) => headers['x-goog-api-key'])).to.deep.equal([KEY, KEY]);
    const request = { content: { parts: [{ text: TEXT }] }, outputDimensionality: 768 };
    const chunk = { ...request, taskType: 'RETRIEVAL_DOCUMENT' };
    expect(server.calls[0]?.body).to.containSubset({ requests: [chunk, chunk] });
    expect(server.calls[1]?.body).to.containSubset({ ...request, taskType: 'RETRIEVAL_QUERY' });
  });

  it('come from the provider of the settings, or offline if it names no embedding model', async () => {
    const modelOf = async (environment: Record<string, string>) =>
      (await embeddingsOf(readConfig(environment).embeddings, DEPS)).model;
    const openai = { MODEL_PROVIDER: 'openai', OPENAI_MODEL: 'm', OPENAI_API_KEY: KEY };
    expect(await modelOf({})).to.equal('offline-hash-2');
    expect(await modelOf({ GEMINI_API_KEY: KEY })).to.equal('gemini-embedding-001');
    expect(await modelOf({ GEMINI_API_KEY: KEY, GEMINI_EMBEDDING_MODEL: 'gemini-e2' })).to.equal('gemini-e2');
    expect(await modelOf({ GEMINI_API_KEY: KEY, MODEL_PROVIDER: 'offline' })).to.equal('offline-hash-2');
    expect(await modelOf(openai)).to.equal('offline-hash-2');
    expect(await modelOf({ ...openai, OPENAI_EMBEDDING_MODEL: 'e' })).to.equal('e');
    const wrong = rejectionOf(modelOf({ GEMINI_API_KEY: KEY, GEMINI_EMBEDDING_MODEL: '../files' }));
    expect(String(await wrong)).to.match(/Cannot use GEMINI_EMBEDDING_MODEL="\.\.\/files": use a name of letters/);
    expect(() => readConfig({ OPENAI_EMBEDDING_MODEL: 'a b' })).to.throw(/^Cannot use OPENAI_EMBEDDING_MODEL="a b": /);
  });
});

interface Limits {
  readonly timeoutMs: number;
  readonly maxAttempts: number;
}

function settingsOf(api: 'openai' | 'gemini', baseUrl: string, model: string): ProviderSettings {
  const settings = { key: 'KEY', baseUrl: 'BASE_URL', model: 'EMBEDDING_MODEL' };
  return { name: api, api, apiKey: KEY, baseUrl, model, maxCalls: null, settings };
}

/** Backs off by nothing: what is waited is what a server asks for. */
const DEPS = {
  system: { ...nodeSystem(), random: () => 0 },
  proxies: NO_PROXIES,
};

/** One answer in the words of both. */
function vectorsOf(...vectors: readonly unknown[]): Reply {
  const embeddings = vectors.map((values) => ({ values }));
  const [embedding] = embeddings.length === 1 ? embeddings : [];
  return sends({ embedding, embeddings, data: vectors.map((each, index) => ({ index, embedding: each })) });
}

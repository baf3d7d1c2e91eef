import { expect } from 'chai';
import { MAX_MATERIAL_BYTES } from '../../src/graph/limits.js';
import type { RestClient } from '../support/rest-client.js';
import { isOver, NO_RUN, restClient } from '../support/rest-client.js';
import { openSocket, rawExchange, readReply } from '../support/raw-exchange.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { scriptedModel } from '../support/scripted-model.js';

const MIB = 1024 * 1024;
/** The largest body of a start: with a material of which every byte is escaped. */
const LIMIT = MIB + 6 * MAX_MATERIAL_BYTES;
const START = '/api/councils/run';
const JSON_TYPE = { 'Content-Type': 'application/json' };

describe('A JSON body', () => {
  let service: RunningService;
  let rest: RestClient;

  before(async () => {
    service = await startService({ model: scriptedModel() });
    rest = restClient(service.url);
  });
  after(() => service.stop());
  afterEach('the service is well', async () => {
    expect(service.faults).to.deep.equal([]);
    expect((await rest.get('/api/health')).status).to.equal(200);
  });

  const send = (
    body: string | Uint8Array,
    headers: Record<string, string> = JSON_TYPE,
  ): ReturnType<RestClient['send']> => rest.send('POST', START, { body, headers });

  describe('with a media type', () => {
    const body = Buffer.from('{"input_topic":"x"}');

    for (const type of ['application/json', 'application/json;charset=utf-8', 'application/json; Charset="UTF-8"']) {
      it(`is accepted as ${type}`, async () => {
        rest.read(await send(body, { 'Content-Type': type }), 202, 'run-start.json');
      });
    }

    for (const type of ['text/plain', 'application/problem+json', 'application/json; charset=latin1']) {
      it(`gets 415 as ${type}`, async () => {
        rest.problem(await send(body, { 'Content-Type': type }), 415);
      });
    }

    it('gets 415 without one, even if it is empty', async () => {
      rest.problem(await send(body, {}), 415);
      rest.problem(await rest.send('POST', START), 415);
    });

    for (const coding of ['gzip', 'gzip, identity']) {
      it(`gets 415 with the Content-Encoding ${coding}`, async () => {
        rest.problem(await send(body, { ...JSON_TYPE, 'Content-Encoding': coding }), 415);
      });
    }

    it('is accepted with the Content-Encoding identity', async () => {
      rest.read(await send(body, { ...JSON_TYPE, 'Content-Encoding': 'Identity' }), 202, 'run-start.json');
    });
  });

  describe('of a size', () => {
    const padded = (bytes: number): string => '{"input_topic":"x"}'.padEnd(bytes, ' ');

    it('of the limit is accepted', async () => {
      rest.read(await send(padded(LIMIT)), 202, 'run-start.json');
    });

    it('of a byte more than the limit gets 413', async () => {
      rest.problem(await send(padded(LIMIT + 1)), 413);
    });

    it('over the limit is refused before it is parsed', async () => {
      rest.problem(await send('{'.repeat(LIMIT + 1)), 413);
    });

    it('of 20 MiB gets a 413 that a client can read after it has sent everything', async () => {
      const reply = await rawExchange(service.url, [
        `POST ${START} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${20 * MIB}\r\n\r\n`,
        ...Array.from({ length: 20 }, () => Buffer.alloc(MIB, ' ')),
      ]);
      expect(reply.status).to.equal(413);
      expect(reply.head).to.match(/^connection: close$/im);
      expect(JSON.parse(reply.body)).to.have.property('detail').that.is.a('string');
    });

    it('over the limit gets 413 without a Content-Length', async () => {
      const chunk = Buffer.concat([Buffer.from('10000\r\n'), Buffer.alloc(0x10000, ' '), Buffer.from('\r\n')]);
      const reply = await rawExchange(service.url, [
        `POST ${START} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`,
        ...Array.from({ length: 100 }, () => chunk),
        '0\r\n\r\n',
      ]);
      expect(reply.status).to.equal(413);
      expect(JSON.parse(reply.body)).to.have.property('detail').that.is.a('string');
    });

    it('over the limit gets 413 before its first byte arrives', async () => {
      const socket = await openSocket(service.url);
      socket.write(
        `POST ${START} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9999999999\r\n\r\n`,
      );
      const first = await new Promise<Buffer>((resolve) => socket.once('data', resolve));
      expect(first.toString('latin1')).to.match(/^HTTP\/1.1 413 /);
      socket.destroy();
    });

    it('of 20 MiB for an unknown route gets a 404 that a client can read after it has sent everything', async () => {
      const reply = await rawExchange(service.url, [
        `POST /api/nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${20 * MIB}\r\n\r\n`,
        ...Array.from({ length: 20 }, () => Buffer.alloc(MIB, ' ')),
      ]);
      expect(reply.status).to.equal(404);
    });
  });

  describe('with a text', () => {
    const deep = (open: string, close: string, count: number): string =>
      `{"input_topic":"x","y":${open.repeat(count)}1${close.repeat(count)}}`;

    for (const [what, body, loc] of [
      ['an empty text', '', ['body']],
      ['an incomplete object', '{"input_topic":"x"', ['body']],
      ['400 KB of opening brackets', '['.repeat(400_000), ['body']],
      ['a field nested 200000 deep', deep('[', ']', 200_000), ['body', 'y']],
      ['a number too large for a double', '{"input_topic":"x","y":1e999}', ['body', 'y']],
      ['an unpaired surrogate in the topic', '{"input_topic":"\\ud83c"}', ['body', 'input_topic']],
      ['an unpaired surrogate in an unknown field', '{"input_topic":"x","y":[{"z":"\\ud83c"}]}', ['body', 'y']],
      ['an unpaired surrogate in a key', '{"input_topic":"x","\\ud83c":1}', ['body']],
    ] as const) {
      it(`gets 422 for ${what}`, async () => {
        const { errors } = rest.problem(await send(body), 422);
        expect(errors).to.have.length(1);
        expect(errors?.[0]?.loc).to.deep.equal(loc);
      });
    }

    it('is accepted with an unknown field named __proto__, which is ignored', async () => {
      const body = '{"input_topic":"x","__proto__":{"god_mode":"no"},"y":{"__proto__":1}}';
      const { run_id: runId } = rest.read(await send(body), 202, 'run-start.json');
      expect(await rest.until(runId, isOver)).to.include({ status: 'completed', paused: null });
      expect(Object.keys(Object.prototype)).to.deep.equal([]);
    });

    it('gets 422 if only its field __proto__ contains a required field', async () => {
      const { errors } = rest.problem(await send('{"__proto__":{"input_topic":"x"}}'), 422);
      expect(errors?.[0]?.loc).to.deep.equal(['body', 'input_topic']);
    });

    it('gets 422 for bytes that are not UTF-8', async () => {
      const body = Buffer.concat([Buffer.from('{"input_topic":"'), Buffer.from([0xff, 0xc3]), Buffer.from('"}')]);
      expect(rest.problem(await send(body), 422).errors?.[0]?.loc).to.deep.equal(['body']);
    });

    for (const body of ['[{"input_topic":"x"}]', '"text"', 'null']) {
      it(`gets 422 for ${body}, which is not an object`, async () => {
        const { errors } = rest.problem(await send(body), 422);
        expect(errors).to.deep.equal([{ loc: ['body'], msg: 'Input should be a valid object', type: 'dict_type' }]);
      });
    }

    it('is accepted with nesting within the limit, a byte order mark, and paired surrogates', async () => {
      rest.read(await send(deep('[', ']', 500)), 202, 'run-start.json');
      rest.read(await send('\ufeff{"input_topic":"\\ud83c\\udf33"}'), 202, 'run-start.json');
    });
  });

  describe('with nulls', () => {
    it('means the same as without its null fields', async () => {
      const { message } = rest.read(await send('{"input_topic":"x","god_mode":null,"y":null}'), 202, 'run-start.json');
      expect(message).to.include('is under way');
      const { errors } = rest.problem(await send('{"input_topic":null}'), 422);
      expect(errors).to.deep.equal([{ loc: ['body', 'input_topic'], msg: 'Field required', type: 'missing' }]);
    });
  });

  describe('in the order of the checks', () => {
    it('is checked after the route', async () => {
      rest.problem(
        await rest.send('POST', '/api/nothing', { body: '{', headers: { 'Content-Type': 'text/plain' } }),
        404,
      );
      rest.problem(await rest.send('PUT', START, { body: '{', headers: { 'Content-Type': 'text/plain' } }), 405);
    });

    it('is refused for its media type before its size', async () => {
      rest.problem(await send(Buffer.alloc(2 * LIMIT), { 'Content-Type': 'text/plain' }), 415);
    });

    it('is refused for its size before its JSON', async () => {
      rest.problem(await send(Buffer.alloc(2 * LIMIT)), 413);
    });

    it('is refused for its JSON before the service looks up the run', async () => {
      const cancel = `/api/councils/run/${NO_RUN}/cancel`;
      rest.problem(await rest.send('POST', cancel, { body: '{', headers: JSON_TYPE }), 422);
    });
  });

  describe('that ends early', () => {
    it('because the client disconnects logs no fault', async () => {
      const socket = await openSocket(service.url);
      socket.write(
        `POST ${START} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"input`,
      );
      await rest.get('/api/health');
      socket.destroy();
      await new Promise<void>((resolve) => socket.once('close', () => resolve()));
    });

    it('because the client stops sending gets 400', async () => {
      const socket = await openSocket(service.url);
      socket.end(
        `POST ${START} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"input`,
      );
      const reply = await readReply(socket);
      expect(reply.status).to.equal(400);
    });
  });
});

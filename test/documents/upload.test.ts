import { expect } from 'chai';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { nodeSystem } from '../../src/system/system.js';
import { documentStream } from '../../src/documents/events.js';
import { encryptedPdf } from '../support/encrypted-pdf.js';
import { linesAt, pdfOf } from '../support/pdf-writer.js';
import type { RawReply } from '../support/raw-exchange.js';
import { openSocket, rawExchange, readReply } from '../support/raw-exchange.js';
import type { Reply, RestClient } from '../support/rest-client.js';
import { restClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { untilTrue } from '../support/until-true.js';
import {
  BOUNDARY,
  copyOf,
  fileHead,
  formOf,
  idOf,
  partOf,
  pdfWith,
  sendForm,
  UPLOAD,
  upload,
  uploaded,
} from '../support/upload-client.js';
import { sample, soakIt } from '../support/soak.js';

const MIB = 1024 * 1024;
const MAX_FILE = 50 * MIB;
const TOO_LARGE = `The file is too large: the limit is ${MAX_FILE} bytes`;
const FORM_TYPE = `multipart/form-data; boundary=${BOUNDARY}`;
const TREES = pdfWith(['Oaks grow slowly in the shade.'], ['Elms are tall.']);
const PDF_TYPE = 'Content-Type: application/pdf';

describe('POST /api/councils/upload-pdf', () => {
  let service: RunningService;
  let rest: RestClient;

  before(async () => {
    service = await startService();
    rest = restClient(service.url);
  });
  after(() => service.stop());
  afterEach('the service is well, and nothing is left on the disk', async () => {
    await untilTrue(() => readdirSync(join(service.dataDir, 'tmp')).length === 0);
    expect(service.faults).to.deep.equal([]);
    expect((await rest.get('/api/health')).status).to.equal(200);
  });

  const sendRaw = (body: Uint8Array, type = FORM_TYPE, path = UPLOAD): Promise<Reply> =>
    rest.send('POST', path, { body, headers: { 'Content-Type': type } });
  const sendFile = (filename: string | null, content: Uint8Array = TREES, heads = [PDF_TYPE]): Promise<Reply> =>
    sendRaw(formOf(partOf([fileHead(filename), ...heads], content)));

  it('answers 200 with the name, the number of chunks and a message with both', async () => {
    const bytes = copyOf(TREES, 'the first of all');
    const reply = await upload(service.url, bytes, 'first.pdf');
    const body = rest.read(reply, 200, 'upload-result.json');
    expect(body).to.deep.equal({
      filename: 'first.pdf',
      chunks_ingested: 2,
      message: '2 chunks of first.pdf ingested',
    });
    expect(reply.headers.get('Content-Location')).to.equal(`/api/documents/${idOf(bytes)}`);
  });

  soakIt('accepts a trailing slash', async () => {
    const form = formOf(partOf([fileHead('x.pdf'), PDF_TYPE], TREES));
    rest.read(await sendRaw(form, FORM_TYPE, `${UPLOAD}/`), 200, 'upload-result.json');
  });

  it('adds nothing when the same bytes arrive again, and answers the stored number of chunks', async () => {
    const bytes = copyOf(TREES, 'sent twice');
    const first = await uploaded(service.url, bytes, 'a.pdf');
    const again = await uploaded(service.url, bytes, 'b.pdf');
    expect(again).to.include({ filename: 'b.pdf', chunks_ingested: first.chunks_ingested });
    expect(again.message).to.match(/^Nothing was added: .*b\.pdf had been ingested before, 2 chunks$/);
    const shown = rest.read(await rest.get(`/api/documents/${idOf(bytes)}`), 200, 'document.json');
    expect(shown).to.include({ filename: 'a.pdf', chunks: 2, pages: 2 });
  });

  it('answers 200 with 0 chunks and an explanation for a PDF without text', async () => {
    const bytes = pdfWith([], []);
    const body = await uploaded(service.url, bytes, 'scan.pdf');
    expect(body).to.include({ filename: 'scan.pdf', chunks_ingested: 0 });
    expect(body.message).to.match(/^No text was found in scan\.pdf/);
    expect((await uploaded(service.url, bytes)).chunks_ingested).to.equal(0);
  });

  soakIt('accepts a PDF that opens without a password, even if its owner forbids copying', async () => {
    const bytes = encryptedPdf({ cipher: 'aes-128', password: '', lines: ['Oaks grow slowly.'] });
    expect((await uploaded(service.url, bytes)).chunks_ingested).to.equal(1);
  });

  for (const name of sample(['Bäume 木.pdf', 'x;y=z.pdf', 'x.PDF', '.pdf', ' x .pdf'], 2)) {
    it(`keeps the name ${JSON.stringify(name)} unchanged`, async () => {
      expect(await uploaded(service.url, TREES, name)).to.include({ filename: name });
    });
  }

  for (const path of sample(
    ['../../x.pdf', 'a/b\\c/x.pdf', '..\\..\\x.pdf', 'C:\\My files/x.pdf', '/home/me\\x.pdf'],
    2,
  )) {
    it(`shortens the path ${JSON.stringify(path)} to its last part`, async () => {
      const bytes = copyOf(TREES, `sent as ${path}`);
      const { filename, message } = rest.read(await sendFile(path, bytes), 200, 'upload-result.json');
      expect(filename).to.equal('x.pdf');
      expect(message).to.include(' x.pdf ').and.not.to.match(/[/\\]/);
      const listed = rest.read(await rest.get('/api/documents'), 200, 'document-list.json');
      expect(listed.find(({ id }) => id === idOf(bytes))?.filename).to.equal('x.pdf');
      const stored = service.context.log.readStream(documentStream(idOf(bytes)), { max: 1 });
      for await (const { data } of stored) expect(JSON.parse(data)).to.include({ filename: 'x.pdf' });
    });
  }

  it('accepts a file without a media type, and with other parts and files', async () => {
    const other = partOf(['Content-Disposition: form-data; name="other"; filename="o.bin"', PDF_TYPE], 'x');
    const note = partOf(['Content-Disposition: form-data; name="note"'], 'a note');
    const reply = await sendRaw(formOf(note, other, partOf([fileHead('x.pdf')], TREES), note));
    expect(rest.read(reply, 200, 'upload-result.json').chunks_ingested).to.equal(2);
  });

  for (const boundary of ['----json', 'x-urlencoded', 'octet-stream', 'a b:c?']) {
    it(`accepts the boundary ${boundary}`, async () => {
      const form = formOf(partOf([fileHead('x.pdf'), PDF_TYPE], TREES))
        .toString('latin1')
        .replaceAll(BOUNDARY, boundary);
      const reply = await sendRaw(Buffer.from(form, 'latin1'), `multipart/form-data; boundary="${boundary}"`);
      expect(rest.read(reply, 200, 'upload-result.json').chunks_ingested).to.equal(2);
    });
  }

  it('accepts a body that arrives byte by byte', async () => {
    const form = formOf(partOf([fileHead('Bäume.pdf'), PDF_TYPE], TREES));
    const head = `POST ${UPLOAD} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: ${FORM_TYPE}\r\nContent-Length: ${form.length}\r\n\r\n`;
    const reply = await rawExchange(service.url, [head, ...[...form].map((byte) => Buffer.from([byte]))]);
    expect(reply.status).to.equal(200);
    expect(JSON.parse(reply.body)).to.include({ filename: 'Bäume.pdf', chunks_ingested: 2 });
  });

  describe('refuses', () => {
    for (const [what, name] of [
      ['a name with another extension', 'x.txt'],
      ['a name with .pdf in the middle', 'x.pdf.exe'],
      ['a part without a name', null],
      ['a part with an empty name', ''],
      ['the path of a folder', 'trees.pdf/'],
    ] as const) {
      it(`${what} with 400`, async () => {
        const { detail } = rest.problem(await sendFile(name), 400);
        expect(detail).to.match(/^Only PDF files are accepted/);
      });
    }

    it('a text field `file` with 400', async () => {
      const form = new FormData();
      form.append('file', 'text');
      rest.problem(await sendForm(service.url, form), 400);
    });

    it('a form without the field `file` with 422', async () => {
      const form = new FormData();
      form.append('File', new Blob([new Uint8Array(TREES)]), 'x.pdf');
      const { errors } = rest.problem(await sendForm(service.url, form), 422);
      expect(errors).to.deep.equal([{ loc: ['body', 'file'], msg: 'Field required', type: 'missing' }]);
      rest.problem(await sendRaw(Buffer.alloc(0)), 422);
      rest.problem(await sendRaw(formOf()), 422);
    });

    it('a form with the field twice with 422', async () => {
      const part = partOf([fileHead('x.pdf'), PDF_TYPE], TREES);
      rest.problem(await sendRaw(formOf(part, part)), 422);
    });

    it('a name of more than 255 characters with 422', async () => {
      rest.problem(await sendFile(`${'x'.repeat(252)}.pdf`), 422);
      rest.read(await sendFile(`${'木'.repeat(251)}.pdf`), 200, 'upload-result.json');
    });

    const unreadable = [
      ['a file of another type', Buffer.from('GIF89a'), /does not begin as a PDF/],
      ['a damaged PDF', TREES.subarray(0, 60), /damaged/],
      ['a PDF that needs a password', encryptedPdf({ cipher: 'aes-128', password: 'x', lines: ['x'] }), /password/],
      ['an empty file', Buffer.alloc(0), /does not begin as a PDF/],
      ['an XFA form', placeholder('/AcroForm << /Fields [] /XFA 7 0 R >>'), /XFA form/],
      ['a portfolio', placeholder('/Collection << /Type /Collection >>'), /portfolio/],
    ] as const;
    for (const [what, bytes, words] of sample(unreadable, 2)) {
      it(`${what} with 422`, async () => {
        expect(rest.problem(await sendFile('x.pdf', bytes), 422).detail).to.match(words);
        expect((await rest.get(`/api/documents/${idOf(bytes)}`)).status).to.equal(404);
      });
    }

    for (const type of [
      'application/pdf',
      'application/json',
      'multipart/mixed; boundary=x',
      'multipart',
      'text/plain',
    ]) {
      it(`a body of ${type} with 415`, async () => {
        rest.problem(await sendRaw(TREES, type), 415);
      });
    }

    it('a body without a media type, or with a content encoding, with 415', async () => {
      rest.problem(await rest.send('POST', UPLOAD, { body: new Uint8Array(TREES) }), 415);
      const headers = { 'Content-Type': FORM_TYPE, 'Content-Encoding': 'gzip' };
      rest.problem(await rest.send('POST', UPLOAD, { body: new Uint8Array(TREES), headers }), 415);
    });

    const whole = formOf(partOf([fileHead('x.pdf'), PDF_TYPE], TREES));
    for (const [what, body, type] of [
      ['a media type without a boundary', whole, 'multipart/form-data'],
      ['a media type with another boundary', whole, 'multipart/form-data; boundary=other'],
      ['a body that is no form', Buffer.alloc(10_000, 'noise'), FORM_TYPE],
      ['a form without its end', whole.subarray(0, -20), FORM_TYPE],
      ['a form cut in the head of a part', whole.subarray(0, 40), FORM_TYPE],
      [
        'a part with an unknown transfer encoding',
        formOf(partOf([fileHead('x.pdf'), PDF_TYPE, 'Content-Transfer-Encoding: x'], TREES)),
        FORM_TYPE,
      ],
      ['a part header without a name', formOf(partOf([': x'], TREES)), FORM_TYPE],
    ] as const) {
      it(`${what} with 422`, async () => {
        rest.problem(await sendRaw(body, type), 422);
      });
    }

    it('other methods with 405', async () => {
      const reply = await rest.get(UPLOAD);
      expect(rest.problem(reply, 405).detail).to.be.a('string');
      expect(reply.headers.get('Allow')).to.equal('OPTIONS, POST');
    });
  });

  describe('by the size limit', () => {
    // The parser skips blanks quickly, because no boundary contains one. Every piece is the same MiB of blanks.
    const BLANKS = Buffer.alloc(MIB, ' ');
    const END = Buffer.from(`\r\n--${BOUNDARY}--\r\n`);

    /** Sends a form with a file of the given size completely before it reads the answer. */
    const sendLarge = (size: number, head: readonly string[], name = 'x.pdf'): Promise<RawReply> => {
      const begin = formOf(partOf([fileHead(name), PDF_TYPE], '')).subarray(0, -END.length);
      const blanks = size - TREES.length;
      const file = Array.from({ length: Math.ceil(blanks / MIB) }, (_, at) => BLANKS.subarray(0, blanks - at * MIB));
      const form = [begin, TREES, ...file, END];
      const isChunked = head.includes('Transfer-Encoding: chunked');
      const length = isChunked ? [] : [`Content-Length: ${form.reduce((sum, piece) => sum + piece.length, 0)}`];
      const lines = [`POST ${UPLOAD} HTTP/1.1`, 'Host: localhost', `Content-Type: ${FORM_TYPE}`, ...length, ...head];
      return rawExchange(service.url, [`${lines.join('\r\n')}\r\n\r\n`, ...(isChunked ? inChunks(form) : form)]);
    };

    soakIt('accepts 50 MiB', async () => {
      const { status, body } = await sendLarge(MAX_FILE, ['Connection: close']);
      expect(status, body).to.equal(200);
    });

    it('answers 413 to one byte more, whatever the name', async () => {
      const { status, body } = await sendLarge(MAX_FILE + 1, ['Connection: close'], 'x.txt');
      expect([status, JSON.parse(body)]).to.deep.equal([413, { detail: TOO_LARGE }]);
    });

    for (const way of ['chunked', 'with a Content-Length']) {
      it(`answers 413 to a client that sends 60 MiB before it reads (${way})`, async () => {
        const reply = await sendLarge(60 * MIB, way === 'chunked' ? ['Transfer-Encoding: chunked'] : []);
        expect(reply.status).to.equal(413);
        expect(JSON.parse(reply.body))
          .to.have.property('detail')
          .that.matches(/too large/);
      });
    }

    const ENDLESS = [
      ['heads of parts', () => partOf([`Content-Disposition: form-data; ${'filename="'.repeat(7_000_000)}`], 'x')],
      ['other parts', () => partOf(['Content-Disposition: form-data; name="other"'], Buffer.alloc(70 * MIB))],
      [
        'parts',
        () => Buffer.concat(Array.from({ length: 20_000 }, () => Buffer.from(`a: b\r\n\r\n\r\n--${BOUNDARY}\r\n`))),
      ],
    ] as const;
    for (const [what, part] of sample(ENDLESS, 1)) {
      it(`answers 413 to endless ${what}, and serves other requests meanwhile`, async () => {
        const head = `POST ${UPLOAD} HTTP/1.1\r\nHost: localhost\r\nContent-Type: ${FORM_TYPE}\r\nTransfer-Encoding: chunked\r\n\r\n`;
        const answered = rawExchange(service.url, [head, ...inChunks(pieces(formOf(part())))]);
        const from = performance.now();
        // Uses a new connection: the server may have closed an idle one while the test made the form.
        const health = 'GET /api/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';
        expect((await rawExchange(service.url, [health])).status).to.equal(200);
        expect(performance.now() - from).to.be.below(20_000);
        expect((await answered).status).to.equal(413);
      });
    }
  });

  it('deletes the temporary file of an interrupted upload', async () => {
    const form = formOf(partOf([fileHead('x.pdf'), PDF_TYPE], TREES));
    const head = `POST ${UPLOAD} HTTP/1.1\r\nHost: localhost\r\nContent-Type: ${FORM_TYPE}\r\nContent-Length: ${10 * MIB}\r\n\r\n`;
    const socket = await openSocket(service.url);
    socket.write(head);
    socket.write(form.subarray(0, -30));
    await untilTrue(() => readdirSync(join(service.dataDir, 'tmp')).length === 1);
    socket.destroy();
  });

  describe('while slow uploads occupy places', () => {
    const head = `POST ${UPLOAD} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: ${FORM_TYPE}\r\nContent-Length: 1000\r\n\r\n`;
    let sockets: readonly Socket[];

    const open = async (count: number, url = service.url): Promise<void> => {
      sockets = await Promise.all(Array.from({ length: count }, () => openSocket(url)));
      for (const socket of sockets) socket.write(head);
    };
    afterEach(() => sockets.forEach((socket) => socket.destroy()));

    it('answers an upload while a place is free', async () => {
      await open(7);
      expect((await uploaded(service.url, TREES)).chunks_ingested).to.equal(2);
    });

    it('makes an upload wait for a free place', async () => {
      await open(8);
      const [first] = sockets;
      const answered = uploaded(service.url, TREES);
      first?.write('x'.repeat(1000));
      expect((await readReply(first ?? expect.fail())).status).to.equal(422);
      expect((await answered).chunks_ingested).to.equal(2);
    });

    it('ends a form that takes too long with 408, deletes its file, and gives its place to a waiting upload', async () => {
      const system = nodeSystem();
      // The time limit of a form ends after a thousandth of its time.
      const after = (ms: number, call: () => void) => system.after(ms === 240_000 ? ms / 1_000 : ms, call);
      const hasty = await startService({ system: { ...system, after } });
      await open(8, hasty.url);
      const [first] = sockets;
      const stalled = first === undefined ? expect.fail() : readReply(first);
      for (const socket of sockets) socket.write(formOf(partOf([fileHead('x.pdf'), PDF_TYPE], TREES)).subarray(0, 200));
      expect((await uploaded(hasty.url, TREES)).chunks_ingested).to.equal(2);
      await untilTrue(() => readdirSync(join(hasty.dataDir, 'tmp')).length === 0);
      sockets.forEach((socket) => socket.end('\r\n'));
      const { status, body } = await stalled;
      expect(status).to.equal(408);
      // Node's own answer to an incomplete request follows.
      expect(body).to.match(/^\{"detail":"The form did not arrive within 240 s"\}/);
      expect(hasty.faults).to.deep.equal([]);
      await hasty.stop();
    });

    it('ends a form of which nothing arrives for 30 s with 408, and closes its connection', async () => {
      const system = nodeSystem();
      const after = (ms: number, call: () => void) => system.after(ms === 30_000 ? ms / 100 : ms, call);
      const hasty = await startService({ system: { ...system, after } });
      await open(1, hasty.url);
      const [stalled = expect.fail()] = sockets;
      stalled.write(formOf(partOf([fileHead('x.pdf'), PDF_TYPE], TREES)).subarray(0, 200));
      const { status, body } = await readReply(stalled);
      expect(status).to.equal(408);
      expect(body).to.equal('{"detail":"No part of the form arrived for 30 s"}');
      await untilTrue(() => readdirSync(join(hasty.dataDir, 'tmp')).length === 0);
      expect(hasty.faults).to.deep.equal([]);
      await hasty.stop();
    });

    it('answers 503 with Retry-After after 10 s without a free place, but 415 and 413 at once', async () => {
      const { after: slowly, ...rests } = nodeSystem();
      const waits: number[] = [];
      const system = {
        ...rests,
        after(ms: number, callback: () => void) {
          waits.push(ms);
          // Slow uploads keep their places.
          return slowly(ms === 10_000 ? ms / 100 : ms, callback);
        },
      };
      const hasty = await startService({ system });
      await open(8, hasty.url);
      const client = restClient(hasty.url);
      waits.length = 0;
      const reply = await upload(hasty.url, TREES);
      client.problem(reply, 503);
      expect(reply.headers.get('Retry-After')).to.equal('2');
      expect(waits).to.include(10_000);
      client.problem(await client.send('POST', UPLOAD, { body: 'x', headers: { 'Content-Type': 'text/plain' } }), 415);
      const large = await openSocket(hasty.url);
      large.write(head.replace('1000', String(MAX_FILE + MIB)));
      const start: readonly unknown[] = await once(large, 'data');
      expect(String(start[0])).to.match(/^HTTP\/1\.1 413 /);
      large.destroy();
      await hasty.stop();
    });
  });
});

/** A PDF whose only page asks the user to open it with another program. */
function placeholder(catalog: string): Buffer {
  return pdfOf([linesAt(['Please wait...'], { x: 50, y: 100 })], { catalog });
}

function* inChunks(pieces: Iterable<Buffer>): Generator<Buffer> {
  for (const piece of pieces) {
    yield Buffer.from(`${piece.length.toString(16)}\r\n`);
    yield piece;
    yield Buffer.from('\r\n');
  }
  yield Buffer.from('0\r\n\r\n');
}

function* pieces(bytes: Buffer): Generator<Buffer> {
  for (let from = 0; from < bytes.length; from += MIB) yield bytes.subarray(from, from + MIB);
}

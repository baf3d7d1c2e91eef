import { expect } from 'chai';
import { restClient, type Reply, type RestClient } from '../support/rest-client.js';
import type { RunningService } from '../support/running-service.js';
import { startService } from '../support/running-service.js';
import { BOUNDARY, formOf, partOf, pdfWith, UPLOAD } from '../support/upload-client.js';

const TREES = pdfWith(['Oaks grow slowly in the shade.']);

/** Parameters of a file part, captured from real clients, and the expected name. */
const CAPTURED: readonly (readonly [client: string, parameters: string, filename: string])[] = [
  ['.NET 10 and PowerShell 7.6', "name=file; filename=x.pdf; filename*=utf-8''x.pdf", 'x.pdf'],
  [
    '.NET 10 and PowerShell 7.6, not ASCII',
    'name=file; filename="=?utf-8?B?QsOkdW1lIOacqC5wZGY=?="; filename*=utf-8\'\'B%C3%A4ume%20%E6%9C%A8.pdf',
    'Bäume 木.pdf',
  ],
  ['.NET 10 with FileName alone', 'name=file; filename="=?utf-8?B?QsOkdW1lIOacqC5wZGY=?="', 'Bäume 木.pdf'],
  ['.NET 10 with FileNameStar alone', "name=file; filename*=utf-8''say%20%22hi%22.pdf", 'say "hi".pdf'],
  [
    '.NET 10, a semicolon',
    'name=file; filename="semi;colon.pdf"; filename*=utf-8\'\'semi%3Bcolon.pdf',
    'semi;colon.pdf',
  ],
  ['urllib3 1.24 and older', 'name="file"; filename*=utf-8\'\'B%C3%A4ume%20%E6%9C%A8.pdf', 'Bäume 木.pdf'],
  ['urllib3 1.24 and older, a quote', 'name="file"; filename*=utf-8\'\'say%20%22hi%22.pdf', 'say "hi".pdf'],
  ['urllib3 2.7', 'name="file"; filename="Bäume 木.pdf"', 'Bäume 木.pdf'],
  ['browsers, Node 20, curl 7.88 and urllib3 2.7, a quote', 'name="file"; filename="say %22hi%22.pdf"', 'say "hi".pdf'],
  ['browsers, a line break', 'name="file"; filename="a%0D%0Ab.pdf"', 'a b.pdf'],
  ['curl before 7.81 and with --form-escape, a quote', 'name="file"; filename="say \\"hi\\".pdf"', 'say "hi".pdf'],
  ['curl --form-escape, a backslash', 'name="file"; filename="back\\\\slash.pdf"', 'slash.pdf'],
];

/** Parameters that none of these clients sends, and the name by RFC 8187, RFC 6266 and the rule for paths. */
const OTHERS: readonly (readonly [what: string, parameters: string, filename: string])[] = [
  ['filename* before filename', 'name="file"; filename*=UTF-8\'de\'%C3%84.pdf; filename="A.pdf"', 'Ä.pdf'],
  ['no blank between parameters', 'name="file";filename="a.pdf";filename*=UTF-8\'\'%C3%84.pdf', 'Ä.pdf'],
  ['parameters in capitals', 'NAME="file"; FILENAME*=utf-8\'\'%C3%84.pdf', 'Ä.pdf'],
  ['filename* in quotes', 'name="file"; filename*="utf-8\'\'%C3%84.pdf"', 'Ä.pdf'],
  ['filename* in Latin-1', 'name="file"; filename*=iso-8859-1\'\'%C4.pdf', 'Ä.pdf'],
  ['filename* in an unknown charset', 'name="file"; filename="a.pdf"; filename*=klingon\'\'%C4.pdf', 'a.pdf'],
  ['filename* that is no UTF-8', 'name="file"; filename="a.pdf"; filename*=utf-8\'\'%C4.pdf', 'a.pdf'],
  ['filename* with a wrong escape', 'name="file"; filename="b.pdf"; filename*=UTF-8\'\'%ZZ.pdf', 'b.pdf'],
  ['filename* with a cut escape', 'name="file"; filename="b.pdf"; filename*=UTF-8\'\'a.pdf%4', 'b.pdf'],
  ['filename* with a path', 'name="file"; filename*=utf-8\'\'..%2F..%5Cx.pdf', 'x.pdf'],
  ['filename* with control characters', 'name="file"; filename*=utf-8\'\'a%00%0A%E2%80%A8b.pdf', 'a b.pdf'],
  [
    'the name of the part inside the name of its file',
    'filename="x; name=other; y.pdf"; name="file"',
    'x; name=other; y.pdf',
  ],
];

describe('The name of an uploaded file', () => {
  let service: RunningService;
  let rest: RestClient;

  before(async () => {
    service = await startService();
    rest = restClient(service.url);
  });
  after(() => service.stop());

  const send = (parameters: string, heads: readonly string[] = ['Content-Type: application/pdf']): Promise<Reply> => {
    const body = formOf(partOf([`Content-Disposition: form-data; ${parameters}`, ...heads], TREES));
    return rest.send('POST', UPLOAD, {
      body,
      headers: { 'Content-Type': `multipart/form-data; boundary=${BOUNDARY}` },
    });
  };

  for (const [client, parameters, filename] of CAPTURED) {
    it(`is read as ${client} sends it`, async () => {
      expect(rest.read(await send(parameters), 200, 'upload-result.json').filename).to.equal(filename);
    });
  }

  for (const [what, parameters, filename] of OTHERS) {
    it(`is read from ${what}`, async () => {
      expect(rest.read(await send(parameters), 200, 'upload-result.json').filename).to.equal(filename);
    });
  }

  it('may be in filename* alone, even in a part without a media type', async () => {
    const reply = await send('name="file"; filename*=utf-8\'\'x.pdf', []);
    expect(rest.read(reply, 200, 'upload-result.json')).to.include({ filename: 'x.pdf', chunks_ingested: 1 });
  });

  for (const parameters of [
    'name="file"; filename*=utf-8',
    'name="file"; filename*=utf-8\'\'',
    'name="file"; filename=',
  ]) {
    it(`is missing in ${parameters}, and the service answers 400`, async () => {
      expect(rest.problem(await send(parameters), 400).detail).to.match(/the file has no name/);
    });
  }
});

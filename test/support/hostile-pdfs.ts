/** PDFs that make a parser hang, fill memory or fail. The same seed gives the same files. */
import { deflateSync } from 'node:zlib';
import { CIPHERS, encryptedPdf } from './encrypted-pdf.js';
import { fileOf, linesAt, pdfOf, streamOf } from './pdf-writer.js';
import { seededRandom } from './seeded-random.js';

export interface HostilePdf {
  readonly name: string;
  readonly bytes: Buffer;
  /** The only allowed result; absent if several are allowed. */
  readonly reason?: string;
}

const LINES = ['A council reads what it is given, line by line,', 'and says what it thinks of each one of them.'];

/** A thousand million letters in 5 KB: takes either parser minutes, or all its memory. */
export function endlessPdf(): Buffer {
  const forms = Array.from({ length: 30 }, (_, index) => {
    const next = `/X ${7 + index} 0 R`;
    const twice = '/X Do /X Do';
    return `<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << ${next} >> >> /Length ${twice.length} >>\nstream\n${twice}\nendstream`;
  });
  const text = 'BT /F1 9 Tf (a) Tj ET';
  const last = `<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /Font << /F1 5 0 R >> >> /Length ${text.length} >>\nstream\n${text}\nendstream`;
  return page(streamOf(Buffer.from('/X Do')), [...forms, last], '/XObject << /X 6 0 R >>');
}

/** One of each kind. */
export function hostilePdfs(): readonly HostilePdf[] {
  return [...bombs(), ...loops(), ...depths(), ...counts(), ...lies(), ...encrypted()];
}

/** Valid files that were cut, or whose bytes, numbers or objects were changed. */
export function mutatedPdfs(seed: number, count: number): readonly HostilePdf[] {
  const random = seededRandom(seed);
  const sound = [
    pdfOf([linesAt(LINES, { x: 50, y: 100 }), linesAt(LINES, { x: 50, y: 200, font: 'helvetica' })], {
      isCompressed: false,
    }),
    pdfOf(Array.from({ length: 20 }, () => linesAt([...LINES, ...LINES], { x: 50, y: 100 }))),
  ];
  const ways = [cut, flipped, renumbered, repeated] as const;
  return Array.from({ length: count }, (_, index) => {
    const way = ways[index % ways.length] ?? cut;
    const base = sound[Math.floor(random() * sound.length)] ?? Buffer.alloc(0);
    return { name: `${way.name} ${index}`, bytes: way(base, random) };
  });
}

function page(content: Buffer, more: readonly (string | Buffer)[] = [], resources = ''): Buffer {
  return fileOf([
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Count 1 /Kids [3 0 R] >>',
    `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> ${resources} >> >>`,
    content,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
    ...more,
  ]);
}

function repeat(text: string, times: number): Buffer {
  return Buffer.from(text.repeat(times), 'latin1');
}

function bombs(): readonly HostilePdf[] {
  const twice = (): Buffer => {
    const packed = deflateSync(deflateSync(Buffer.alloc(200_000_000, ' ')));
    const head = `<< /Filter [/FlateDecode /FlateDecode] /Length ${packed.length} >>\nstream\n`;
    return Buffer.concat([Buffer.from(head), packed, Buffer.from('\nendstream')]);
  };
  const map =
    '1 begincodespacerange <0000> <FFFF> endcodespacerange\n1 beginbfrange <00000000> <FFFFFFFF> <0041> endbfrange';
  const type0 = [
    '<< /Type /Font /Subtype /Type0 /BaseFont /Any /Encoding /Identity-H /DescendantFonts [7 0 R] /ToUnicode 8 0 R >>',
    '<< /Type /Font /Subtype /CIDFontType2 /BaseFont /Any /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> /W [0 2000000000 500] >>',
    streamOf(Buffer.from(map)),
  ];
  const image =
    '<< /Type /XObject /Subtype /Image /Width 100000 /Height 100000 /BitsPerComponent 8 /ColorSpace /DeviceRGB /Filter /FlateDecode /Length 20 >>\nstream\n01234567890123456789\nendstream';
  return [
    made('bomb of spaces', () => page(streamOf(Buffer.alloc(200_000_000, ' ')))),
    made('bomb in a bomb', () => page(twice())),
    made('bomb of operators', () => page(streamOf(repeat('q 1 0 0 1 0 0 cm Q\n', 5_000_000)))),
    made('bomb of text', () => page(streamOf(repeat('BT /F1 9 Tf 9 9 Td (aaaaaaaaaa) Tj ET\n', 3_000_000)))),
    made('bomb of a string', () => page(streamOf(Buffer.from(`BT /F1 9 Tf (${'a'.repeat(60_000_000)}) Tj ET`)))),
    {
      name: 'map of all characters',
      bytes: page(streamOf(Buffer.from('BT /F2 9 Tf <00410042> Tj ET')), type0, '/Font << /F2 6 0 R >>'),
    },
    { name: 'image without end', bytes: page(streamOf(Buffer.from('/I Do')), [image], '/XObject << /I 6 0 R >>') },
    {
      name: 'inline image without end',
      bytes: page(streamOf(Buffer.from('BI /W 99999999 /H 99999999 /BPC 8 /CS /RGB ID x'))),
    },
  ];
}

/** A file whose bytes are computed only when they are needed, because that takes long. */
function made(name: string, make: () => Buffer): HostilePdf {
  let bytes: Buffer | null = null;
  return {
    name,
    get bytes() {
      return (bytes ??= make());
    },
  };
}

function loops(): readonly HostilePdf[] {
  const sound = pdfOf([linesAt(LINES, { x: 50, y: 100 })]).toString('latin1');
  const start = /startxref\n(\d+)/.exec(sound)?.[1] ?? '0';
  const form =
    '<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X 6 0 R >> >> /Length 10 >>\nstream\n/X Do /X Do\nendstream';
  const tree = (kids: string): Buffer =>
    fileOf([
      '<< /Type /Catalog /Pages 2 0 R >>',
      `<< /Type /Pages /Count 5 /Kids [${kids}] >>`,
      '<< /Type /Pages /Count 5 /Parent 2 0 R /Kids [2 0 R 3 0 R] >>',
    ]);
  return [
    { name: 'page tree that is its own child', bytes: tree('2 0 R') },
    { name: 'page tree in a ring', bytes: tree('3 0 R 3 0 R') },
    { name: 'page tree without pages', bytes: tree('') },
    {
      name: 'cross-reference before itself',
      bytes: Buffer.from(sound.replace('/Root', `/Prev ${start} /Root`), 'latin1'),
    },
    {
      name: 'cross-reference stream before itself',
      bytes: Buffer.from(sound.replace('/Root', `/XRefStm ${start} /Root`), 'latin1'),
    },
    { name: 'forms that draw others twice, thirty deep', bytes: endlessPdf() },
    { name: 'form that draws itself', bytes: page(streamOf(Buffer.from('/X Do')), [form], '/XObject << /X 6 0 R >>') },
    {
      name: 'length that is the stream itself',
      bytes: page(Buffer.from('<< /Length 4 0 R >>\nstream\nBT ET\nendstream')),
    },
    { name: 'contents that are themselves', bytes: page(Buffer.from('[4 0 R 4 0 R]')) },
    { name: 'object that refers to itself', bytes: page(Buffer.from('4 0 R')) },
  ];
}

function depths(): readonly HostilePdf[] {
  const nodes = 20_000;
  const deep = Array.from(
    { length: nodes },
    (_, index) => `<< /Type /Pages /Count 1 /Parent ${index + 1} 0 R /Kids [${index + 3} 0 R] >>`,
  );
  return [
    { name: 'arrays in arrays', bytes: page(Buffer.from(`${'['.repeat(1_000_000)}${']'.repeat(1_000_000)}`)) },
    {
      name: 'dictionaries in dictionaries',
      bytes: page(Buffer.from(`${'<</A'.repeat(500_000)} 1${'>>'.repeat(500_000)}`)),
    },
    { name: 'arrays in contents', bytes: page(streamOf(repeat('[', 3_000_000))) },
    { name: 'states that are saved and never restored', bytes: page(streamOf(repeat('q ', 3_000_000))) },
    {
      name: 'deep page tree',
      bytes: fileOf(['<< /Type /Catalog /Pages 2 0 R >>', ...deep, `<< /Type /Page /Parent ${nodes + 1} 0 R >>`]),
    },
  ];
}

function counts(): readonly HostilePdf[] {
  const tree = (count: number, kids: number): Buffer =>
    fileOf([
      '<< /Type /Catalog /Pages 2 0 R >>',
      `<< /Type /Pages /Count ${count} /Kids [${'3 0 R '.repeat(kids)}] >>`,
      '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] >>',
    ]);
  return [
    { name: 'a million pages', bytes: tree(1_000_000, 1_000_000), reason: 'too-many-pages' },
    { name: 'a billion pages that are one', bytes: tree(1_000_000_000, 1) },
    { name: 'fewer pages than none', bytes: tree(-5, 1) },
    { name: 'more pages than it says', bytes: tree(1, 200_000) },
  ];
}

function lies(): readonly HostilePdf[] {
  const sound = pdfOf([linesAt(LINES, { x: 50, y: 100 })]);
  const text = sound.toString('latin1');
  return [
    { name: 'no PDF', bytes: Buffer.from('GIF89a, and nothing else'), reason: 'not-a-pdf' },
    { name: 'nothing', bytes: Buffer.alloc(0), reason: 'not-a-pdf' },
    { name: 'a header alone', bytes: Buffer.from('%PDF-1.7\n'), reason: 'unreadable' },
    {
      name: 'a header and noise',
      bytes: Buffer.concat([Buffer.from('%PDF-1.7\n'), noise(100_000)]),
      reason: 'unreadable',
    },
    { name: 'a header too late', bytes: Buffer.concat([Buffer.alloc(1_100, ' '), sound]), reason: 'not-a-pdf' },
    { name: 'lengths too small', bytes: Buffer.from(text.replace(/\/Length \d+/g, '/Length 1'), 'latin1') },
    { name: 'lengths too large', bytes: Buffer.from(text.replace(/\/Length \d+/g, '/Length 999999999'), 'latin1') },
    { name: 'lengths below nothing', bytes: Buffer.from(text.replace(/\/Length \d+/g, '/Length -1'), 'latin1') },
    { name: 'a page as large as the sea', bytes: Buffer.from(text.replace('595 842', '1e300 1e300'), 'latin1') },
    { name: 'another filter', bytes: Buffer.from(text.replaceAll('/FlateDecode', '/JBIG2Decode'), 'latin1') },
    { name: 'objects without end', bytes: Buffer.from(text.replaceAll('endobj', '      '), 'latin1') },
  ];
}

function encrypted(): readonly HostilePdf[] {
  return CIPHERS.flatMap((cipher) => [
    { name: `${cipher}, no password to open it`, bytes: encryptedPdf({ cipher, password: '', lines: LINES }) },
    {
      name: `${cipher}, a password`,
      bytes: encryptedPdf({ cipher, password: 'secret', lines: LINES }),
      reason: 'encrypted',
    },
  ]);
}

type Random = () => number;

function noise(length: number): Buffer {
  const random = seededRandom(length);
  return Buffer.from(Array.from({ length }, () => Math.floor(random() * 256)));
}

function cut(base: Buffer, random: Random): Buffer {
  return base.subarray(0, 9 + Math.floor(random() * (base.length - 9)));
}

function flipped(base: Buffer, random: Random): Buffer {
  const bytes = Buffer.from(base);
  const flips = 1 + Math.floor(random() * 60);
  for (let flip = 0; flip < flips; flip += 1) {
    bytes[9 + Math.floor(random() * (bytes.length - 9))] = Math.floor(random() * 256);
  }
  return bytes;
}

/** Changes some of its numbers: references, lengths, offsets, counts. */
function renumbered(base: Buffer, random: Random): Buffer {
  const share = random() * 0.1;
  const text = base.toString('latin1').slice(9);
  const other = (): string => String(Math.floor(random() ** 4 * 10 ** Math.floor(random() * 11)));
  return Buffer.from(
    `%PDF-1.7\n${text.replaceAll(/\d+/g, (number) => (random() < share ? other() : number))}`,
    'latin1',
  );
}

/** Copies a piece of it to another place. */
function repeated(base: Buffer, random: Random): Buffer {
  const [from, length, to] = [random() * base.length, random() * 2_000, 9 + random() * (base.length - 9)].map(
    Math.floor,
  );
  const piece = base.subarray(from, (from ?? 0) + (length ?? 0));
  return Buffer.concat([base.subarray(0, to), piece, base.subarray(to)]);
}

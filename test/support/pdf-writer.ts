/** Writes PDFs with known text, byte by byte. Lengths are in points; y counts from the top of the page. */
import { deflateSync } from 'node:zlib';

/** Text on a page, in one drawing operation. */
export interface PlacedText {
  readonly text: string;
  readonly x: number;
  /** Distance of the baseline from the top. */
  readonly y: number;
  /** Default 10. */
  readonly size?: number;
  /** Counter-clockwise, in degrees. Default 0. */
  readonly angle?: number;
  /** Helvetica for Latin text, or a font for any characters, half an em wide, CJK one em. Default: any. */
  readonly font?: 'helvetica' | 'any';
}

export interface PdfOptions {
  /** Whether page contents are deflated. Default true. */
  readonly isCompressed?: boolean;
  /** Points per unit of the contents, as in files of programs that draw in pixels. Default 1. */
  readonly unit?: number;
  /** Whether fonts have size 1 and the text matrix scales them. Default false. */
  readonly isScaledByMatrix?: boolean;
  /** Annotations of each page: the entries of their dictionaries. */
  readonly annotations?: readonly (readonly string[])[];
  /** Entries of the catalog; `FIELDS` is replaced by the references of all widgets. */
  readonly catalog?: string;
  /** More objects. `OBJECT_0` in dictionaries is replaced by the reference of the first. */
  readonly objects?: readonly (string | Buffer)[];
  /** Entries of the trailer besides Root and Size. */
  readonly trailer?: string;
}

export const PAGE = { width: 595, height: 842 };

/** A file with a page for each list of texts. */
export function pdfOf(pages: readonly (readonly PlacedText[])[], options: PdfOptions = {}): Buffer {
  const font = anyFont(pages.flat().map(({ text }) => text));
  const first = 8;
  const kids = pages.map((_, index) => `${first + 2 * index} 0 R`).join(' ');
  const { annotations = [], catalog = '/AcroForm << /Fields [FIELDS] >>', objects: more = [] } = options;
  const references = referencesOf(annotations, first + 2 * pages.length);
  const widgets = annotations.flat().flatMap((each, index) => (each.includes('/Widget') ? [index] : []));
  const fields = widgets.map((index) => references.flat()[index]).join(' ');
  const objects: (string | Buffer)[] = [
    `<< /Type /Catalog /Pages 2 0 R ${catalog.replace('FIELDS', fields)} >>`,
    `<< /Type /Pages /Count ${pages.length} /Kids [${kids}] >>`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding << /BaseEncoding /WinAnsiEncoding /Differences [1 /fi /fl] >> >>',
    '<< /Type /Font /Subtype /Type0 /BaseFont /Any /Encoding /Identity-H /DescendantFonts [5 0 R] /ToUnicode 7 0 R >>',
    `<< /Type /Font /Subtype /CIDFontType2 /BaseFont /Any /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> /FontDescriptor 6 0 R /DW 500 /W [${font.widths}] >>`,
    '<< /Type /FontDescriptor /FontName /Any /Flags 4 /FontBBox [0 -200 1000 800] /ItalicAngle 0 /Ascent 800 /Descent -200 /CapHeight 700 /StemV 80 >>',
    streamOf(Buffer.from(font.toUnicode), options),
  ];
  for (const [index, texts] of pages.entries()) {
    const content = texts.map((text) => drawn(text, font.codes, options)).join('\n');
    const scale = options.unit === undefined ? '' : `${options.unit} 0 0 ${options.unit} 0 0 cm\n`;
    objects.push(
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 ${PAGE.width} ${PAGE.height}] /Contents ${first + 2 * index + 1} 0 R ` +
        `/Resources << /Font << /F1 3 0 R /F2 4 0 R >> >> /Annots [${(references[index] ?? []).join(' ')}] >>`,
      streamOf(Buffer.from(scale + content, 'latin1'), options),
    );
  }
  objects.push(...annotations.flat().map((each) => `<< /Type /Annot ${each} >>`), ...more);
  return fileOf(referring(objects, first + 2 * pages.length + annotations.flat().length), options.trailer);
}

/** Objects with references in place of `OBJECT_0` and so on, numbered from `first`. */
function referring(objects: readonly (string | Buffer)[], first: number): readonly (string | Buffer)[] {
  const reference = (_: string, index: string): string => `${first + Number(index)} 0 R`;
  return objects.map((object) => (typeof object === 'string' ? object.replaceAll(/OBJECT_(\d+)/g, reference) : object));
}

/** References of lists of objects that are numbered one after the other. */
function referencesOf(lists: readonly (readonly string[])[], first: number): readonly (readonly string[])[] {
  let number = first;
  return lists.map((list) => list.map(() => `${number++} 0 R`));
}

/** A file of these objects, numbered from 1, with its cross-reference table. Object 1 is its root. */
export function fileOf(objects: readonly (string | Buffer)[], trailer = ''): Buffer {
  const parts: Buffer[] = [Buffer.from('%PDF-1.7\n%\u00E2\u00E3\u00CF\u00D3\n', 'latin1')];
  let length = parts[0]?.length ?? 0;
  const offsets = objects.map((object, index) => {
    const offset = length;
    for (const part of [`${index + 1} 0 obj\n`, object, '\nendobj\n']) {
      const bytes = typeof part === 'string' ? Buffer.from(part, 'latin1') : part;
      parts.push(bytes);
      length += bytes.length;
    }
    return offset;
  });
  const rows = offsets.map((offset) => `${String(offset).padStart(10, '0')} 00000 n \n`).join('');
  parts.push(
    Buffer.from(
      `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${rows}` +
        `trailer\n<< /Size ${objects.length + 1} /Root 1 0 R ${trailer} >>\nstartxref\n${length}\n%%EOF\n`,
    ),
  );
  return Buffer.concat(parts);
}

/** A stream object's body. */
export function streamOf(data: Buffer, { isCompressed = true }: PdfOptions = {}, entries = ''): Buffer {
  const body = isCompressed ? deflateSync(data) : data;
  const filter = isCompressed ? '/Filter /FlateDecode ' : '';
  return Buffer.concat([
    Buffer.from(`<< ${filter}/Length ${body.length} ${entries} >>\nstream\n`),
    body,
    Buffer.from('\nendstream'),
  ]);
}

/** Lines of text one below the other. */
export function linesAt(lines: readonly string[], at: Omit<PlacedText, 'text'>, step = 12): readonly PlacedText[] {
  return lines.map((text, index) => ({ ...at, text, y: at.y + index * step }));
}

/** Width of a text in the font of any characters. */
export function widthOf(text: string, size = 10): number {
  return [...text].reduce((sum, character) => sum + (isWide(character) ? size : size / 2), 0);
}

function isWide(character: string): boolean {
  return /[\u3000-\u9FFF\uFF00-\uFF65]/u.test(character);
}

function drawn(
  { text, x, y, size = 10, angle = 0, font = 'any' }: PlacedText,
  codes: Codes,
  options: PdfOptions,
): string {
  const { unit = 1, isScaledByMatrix = false } = options;
  const [scale, em] = isScaledByMatrix ? [size / unit, 1] : [1, size / unit];
  const [cos, sin] = [Math.cos((angle * Math.PI) / 180) * scale, Math.sin((angle * Math.PI) / 180) * scale];
  const matrix = [cos, sin, -sin, cos, x / unit, (PAGE.height - y) / unit].map((each) => each.toFixed(4)).join(' ');
  const shown = font === 'any' ? hexOf(text, codes) : `(${escaped(text)})`;
  return `BT /${font === 'any' ? 'F2' : 'F1'} ${em} Tf ${matrix} Tm ${shown} Tj ET`;
}

type Codes = ReadonlyMap<string, number>;

function hexOf(text: string, codes: Codes): string {
  return `<${[...text].map((each) => hex(codes.get(each) ?? 0)).join('')}>`;
}

function hex(code: number): string {
  return code.toString(16).padStart(4, '0');
}

/** WinAnsi, with the ligatures at 1 and 2. */
function escaped(text: string): string {
  return text
    .replace(/[\\()]/g, '\\$&')
    .replaceAll('\uFB01', '\\001')
    .replaceAll('\uFB02', '\\002');
}

interface AnyFont {
  readonly codes: Codes;
  readonly widths: string;
  readonly toUnicode: string;
}

/** Codes from 1 in the order of the characters, with their ToUnicode map. */
function anyFont(texts: readonly string[]): AnyFont {
  const codes = new Map([...new Set(texts.flatMap((text) => [...text]))].map((each, index) => [each, index + 1]));
  const widths = [...codes].map(([each, code]) => `${code} [${isWide(each) ? 1000 : 500}]`).join(' ');
  const rows = [...codes].map(
    ([each, code]) => `<${hex(code)}> <${Buffer.from(each, 'utf16le').swap16().toString('hex')}>`,
  );
  const blocks: string[] = [];
  for (let from = 0; from < rows.length; from += 100) {
    const some = rows.slice(from, from + 100);
    blocks.push(`${some.length} beginbfchar\n${some.join('\n')}\nendbfchar`);
  }
  const toUnicode =
    '/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /Any def /CMapType 2 def\n' +
    `1 begincodespacerange <0000> <FFFF> endcodespacerange\n${blocks.join('\n')}\nendcmap end end`;
  return { codes, widths, toUnicode };
}

/**
 * The first parser, pdfjs-dist, on the calling thread and for text only: without canvas, evaluated code, system fonts and
 * network. It reads the maps of CJK encodings from its own package.
 */
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type * as pdfjsModule from 'pdfjs-dist/legacy/build/pdf.mjs';
import { fieldOf, listOf } from '../system/untrusted.js';
import type { PageContents } from './annotations.js';
import { fieldsWithoutPlace, textOfAnnotations } from './annotations.js';
import type { TextRun } from './layout/text-run.js';

type Pdfjs = typeof pdfjsModule;
type PdfDocument = Awaited<ReturnType<Pdfjs['getDocument']>['promise']>;
type PdfPage = Awaited<ReturnType<PdfDocument['getPage']>>;
type Items = Awaited<ReturnType<PdfPage['getTextContent']>>['items'];

export type PdfjsPages =
  | {
      readonly kind: 'pages';
      readonly pages: readonly PageContents[];
      /** The form or portfolio whose pages may be a placeholder, or null if the document has none. */
      readonly wrapper: Wrapper | null;
    }
  /** The file needs a password. The owner's restrictions are ignored. */
  | { readonly kind: 'encrypted' }
  | { readonly kind: 'too-many-pages'; readonly found: number };

/** A form or a collection of files that some viewers show instead of the pages. */
export type Wrapper = 'xfa-form' | 'portfolio';

/** @throws {Error} the file cannot be read */
export async function pdfjsRuns(bytes: Uint8Array, { maxPages }: { maxPages: number }): Promise<PdfjsPages> {
  const pdfjs = await loadPdfjs();
  let document: PdfDocument;
  try {
    document = await pdfjs.getDocument({ data: new Uint8Array(bytes), ...textOnly() }).promise;
  } catch (error) {
    if (error instanceof Error && error.name === 'PasswordException') return { kind: 'encrypted' };
    throw error;
  }
  if (document.numPages > maxPages) return { kind: 'too-many-pages', found: document.numPages };
  return { kind: 'pages', pages: await contentsOfPages(document), wrapper: await wrapperOf(document) };
}

/** Unreadable pages are empty, unless all are unreadable. The last page gets the form fields that are on no page. */
async function contentsOfPages(document: PdfDocument): Promise<readonly PageContents[]> {
  const pages: PageContents[] = [];
  const placed = new Set<unknown>();
  let [hasReadOne, failure]: [boolean, unknown] = [false, new Error('It has no pages')];
  for (let number = 1; number <= document.numPages; number += 1) {
    try {
      pages.push(await contentsOfPage(document, number, placed));
      hasReadOne = true;
    } catch (error) {
      pages.push({ runs: [], notes: [] });
      failure = error;
    }
  }
  if (!hasReadOne) throw failure;
  const fields = fieldsWithoutPlace(await fieldsOf(document), placed);
  return pages.map((page, index) => (index === pages.length - 1 ? { ...page, fields } : page));
}

/** The form fields, or null if they are corrupt: the rest of the document is readable. */
async function fieldsOf(document: PdfDocument): Promise<unknown> {
  try {
    return await document.getFieldObjects();
  } catch {
    return null;
  }
}

/** Detects an XFA form without form fields of its own, and a portfolio, whose files are attachments. */
async function wrapperOf(document: PdfDocument): Promise<Wrapper | null> {
  try {
    const { info } = await document.getMetadata();
    if (fieldOf(info, 'IsCollectionPresent') === true) return 'portfolio';
    return fieldOf(info, 'IsXFAPresent') === true && fieldOf(info, 'IsAcroFormPresent') !== true ? 'xfa-form' : null;
  } catch {
    return null;
  }
}

/** Adds the ids of the page's annotations to `placed`. */
async function contentsOfPage(document: PdfDocument, number: number, placed: Set<unknown>): Promise<PageContents> {
  const page = await document.getPage(number);
  const { items } = await page.getTextContent({ disableNormalization: true });
  const annotations = await annotationsOf(page);
  for (const annotation of annotations) placed.add(fieldOf(annotation, 'id'));
  const { runs, notes } = textOfAnnotations(annotations);
  page.cleanup();
  return { runs: [...runsOf(items), ...runs], notes };
}

/** The annotations of a page; none if they are corrupt. */
async function annotationsOf(page: PdfPage): Promise<readonly unknown[]> {
  try {
    return listOf(await page.getAnnotations());
  } catch {
    return [];
  }
}

function runsOf(items: Items): readonly TextRun[] {
  return items.flatMap((item) => {
    if (!('str' in item) || item.str === '') return [];
    const [a = 0, b = 0, c = 0, d = 0, x = 0, y = 0] = item.transform.map(Number);
    const angle = (Math.round((Math.atan2(b, a) * 180) / Math.PI) + 360) % 360;
    // In PDF, y grows upwards.
    return [{ text: item.str, x, baseline: -y, width: item.width, size: Math.hypot(c, d), angle }];
  });
}

function textOnly() {
  return {
    isEvalSupported: false,
    disableFontFace: true,
    useSystemFonts: false,
    useWorkerFetch: false,
    useWasm: false,
    enableXfa: false,
    isImageDecoderSupported: false,
    isOffscreenCanvasSupported: false,
    maxImageSize: 1,
    stopAtErrors: false,
    verbosity: 0,
    BinaryDataFactory: OwnMaps,
  };
}

/** Gives pdfjs the character maps of its own package and nothing else. */
class OwnMaps {
  async fetch({ kind, filename }: { kind: string; filename: string }): Promise<Uint8Array> {
    if (kind !== 'cMapUrl' || !/^[\w-]+\.bcmap$/.test(filename)) throw new Error(`Refused: ${kind} ${filename}`);
    return new Uint8Array(await readFile(join(packageFolder(), 'cmaps', filename)));
  }
}

function packageFolder(): string {
  return dirname(createRequire(import.meta.url).resolve('pdfjs-dist/package.json'));
}

/** Loads pdfjs for text. On load it requires a native canvas, which is hidden, and drawing classes, which are replaced. */
async function loadPdfjs(): Promise<Pdfjs> {
  const builtin = process.getBuiltinModule;
  Object.assign(globalThis, { DOMMatrix: Nothing, ImageData: Nothing, Path2D: Nothing });
  process.getBuiltinModule = () => {
    throw new Error('No canvas');
  };
  try {
    const pdfjs = await import('pdfjs-dist/legacy/build/pdf.mjs');
    // With this global, the worker code of pdfjs runs on this thread.
    Object.assign(globalThis, { pdfjsWorker: await import('pdfjs-dist/legacy/build/pdf.worker.mjs') });
    return pdfjs;
  } finally {
    process.getBuiltinModule = builtin;
  }
}

/** Replaces the drawing classes. */
class Nothing {
  readonly isNothing = true;
}

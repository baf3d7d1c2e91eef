/**
 * The first parser: pdfjs-dist, on the calling thread, for text alone: no canvas, no evaluated code, no fonts of the
 * system, nothing fetched. The maps of predefined CJK encodings are read from its own package.
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
      /** The form or portfolio in the document, whose pages may then be a placeholder; null for most documents. */
      readonly wrapper: Wrapper | null;
    }
  /** It does not open without a password. Restrictions of its owner are ignored. */
  | { readonly kind: 'encrypted' }
  | { readonly kind: 'too-many-pages'; readonly found: number };

/** A form, or a collection of files, that only some viewers show in place of the pages. */
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

/** A page that cannot be read counts as empty, unless all fail. Form fields that are on no page stand on the last. */
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

/** Broken form fields do not keep a document from being read. */
async function fieldsOf(document: PdfDocument): Promise<unknown> {
  try {
    return await document.getFieldObjects();
  } catch {
    return null;
  }
}

/** An XFA form without form fields of its own, or a portfolio, whose files are attachments; null for other documents. */
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

/** Broken annotations do not keep a page from being read. */
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
    // Its y grows upwards.
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

/** Serves pdfjs with the character maps of its own package, and nothing else. */
class OwnMaps {
  async fetch({ kind, filename }: { kind: string; filename: string }): Promise<Uint8Array> {
    if (kind !== 'cMapUrl' || !/^[\w-]+\.bcmap$/.test(filename)) throw new Error(`Not given: ${kind} ${filename}`);
    return new Uint8Array(await readFile(join(packageFolder(), 'cmaps', filename)));
  }
}

function packageFolder(): string {
  return dirname(createRequire(import.meta.url).resolve('pdfjs-dist/package.json'));
}

/**
 * Loads pdfjs without drawing. Its modules look for a native canvas on load, which is hidden from them, and construct
 * drawing classes, for which there are stand-ins.
 */
async function loadPdfjs(): Promise<Pdfjs> {
  const builtin = process.getBuiltinModule;
  Object.assign(globalThis, { DOMMatrix: Nothing, ImageData: Nothing, Path2D: Nothing });
  process.getBuiltinModule = () => {
    throw new Error('There is no canvas here');
  };
  try {
    const pdfjs = await import('pdfjs-dist/legacy/build/pdf.mjs');
    // Set as a global, its worker code runs on this thread instead of one of its own.
    Object.assign(globalThis, { pdfjsWorker: await import('pdfjs-dist/legacy/build/pdf.worker.mjs') });
    return pdfjs;
  } finally {
    process.getBuiltinModule = builtin;
  }
}

/** Stands in for drawing classes. */
class Nothing {
  readonly isNothing = true;
}

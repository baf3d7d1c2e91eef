/** Errors of text extraction. */
import { CouncilError } from '../errors.js';

/** Why a PDF is refused. `limit` is the largest accepted number of bytes, pages, code units or megabytes. */
export type PdfRefusal =
  | { readonly reason: 'not-a-pdf' | 'unreadable' | 'encrypted' | 'xfa-form' | 'portfolio' }
  | { readonly reason: 'too-many-pages'; readonly found: number; readonly limit: number }
  | { readonly reason: 'too-large' | 'too-much-text' | 'out-of-memory'; readonly limit: number };

/** The file is not a PDF, is unreadable or exceeds a limit. A retry with the same file fails again. */
export class PdfRefused extends CouncilError<PdfRefusal> {
  readonly code = 'pdf.refused';
  constructor(data: PdfRefusal, options?: ErrorOptions) {
    super(`Cannot read the PDF: ${sentence(data)}`, data, options);
  }
}

/** Too many files wait for extraction. */
export class ExtractionBusy extends CouncilError<{ limit: number }> {
  readonly code = 'pdf.busy';
  constructor(data: { limit: number }) {
    super(`Cannot accept another PDF: ${data.limit} are waiting`, data);
  }
}

/** The extraction exceeds the limit of processor time, or the longer limit of elapsed time. */
export class ExtractionTimedOut extends CouncilError<{ processorMs: number; clockMs: number }> {
  readonly code = 'pdf.timed-out';
  constructor(data: { processorMs: number; clockMs: number }) {
    const limits = `${data.processorMs / 1_000} s of processor time, or ${data.clockMs / 1_000} s on the clock`;
    super(`Cannot read the PDF: its text was not extracted within ${limits} (PDF_TIMEOUT_MS)`, data);
  }
}

function sentence(data: PdfRefusal): string {
  switch (data.reason) {
    case 'not-a-pdf':
      return 'the file does not begin as a PDF does (%PDF-)';
    case 'unreadable':
      return 'it is damaged or not a PDF';
    case 'encrypted':
      return 'it is encrypted and does not open without a password';
    case 'xfa-form':
      return 'it is an XFA form, and its one short page seems only to ask to wait; print the form to a PDF and send that';
    case 'portfolio':
      return 'it is a portfolio, and its one short page seems only to be the cover of other files; send those files';
    case 'too-many-pages':
      return `it has ${data.found} pages; the limit is ${data.limit}`;
    case 'too-large':
      return `it is larger than ${data.limit} bytes`;
    case 'too-much-text':
      return `it has more than ${data.limit} characters of text`;
    case 'out-of-memory':
      return `its text was not extracted within ${data.limit} MB of memory`;
    default:
      return data satisfies never;
  }
}

import { CouncilError } from '../errors.js';

/** The file was not made in time. */
export class DocxTimedOut extends CouncilError<{ maxMs: number }> {
  readonly code = 'docx.timed-out';
  constructor(data: { maxMs: number }) {
    super(
      `Cannot make the document for Word: it was not made within ${data.maxMs / 1_000} s; the draft is also there as Markdown`,
      data,
    );
  }
}

import { expect } from 'chai';
import { nodeSystem } from '../../src/system/system.js';
import type { PdfExtractor } from '../../src/pdf/extract.js';
import { EXTRACT_LIMITS, pdfExtractor } from '../../src/pdf/extract.js';
import { PdfRefused } from '../../src/pdf/errors.js';
import { CIPHERS, encryptedPdf } from '../support/encrypted-pdf.js';
import { rejectionOf } from '../support/rejection.js';
import { sample } from '../support/soak.js';

const LINES = ['Oaks grow slowly.'];
/** Enough time for a busy machine. */
const PATIENT = { ...EXTRACT_LIMITS, timeoutMs: 300_000 };

describe('Extraction of an encrypted PDF whose owner forbids copying', () => {
  let extractor: PdfExtractor;
  before(() => (extractor = pdfExtractor({ system: nodeSystem(), pid: process.pid, limits: PATIENT })));
  after(() => extractor.stop());

  for (const cipher of sample(CIPHERS, 2)) {
    it(`succeeds if the PDF opens without a password (${cipher})`, async () => {
      const file = encryptedPdf({ cipher, password: '', lines: LINES });
      const { pages } = await extractor.extract(() => Promise.resolve(file));
      expect(pages).to.deep.equal([{ page: 1, text: LINES.join('\n') }]);
    });

    it(`fails if the PDF needs a password (${cipher})`, async () => {
      const file = encryptedPdf({ cipher, password: 'secret', lines: LINES });
      const error = await rejectionOf(extractor.extract(() => Promise.resolve(file)));
      expect(error)
        .to.be.instanceOf(PdfRefused)
        .with.property('message')
        .that.matches(/does not open without a password/);
    });
  }
});

/** How fast documents are taken in over REST, and what that costs others who ask meanwhile. */
import { Agent } from 'node:http';
import { linesAt, pdfOf, type PlacedText } from '../support/pdf-writer.js';
import { tempDir } from '../support/temp-dir.js';
import { figure, type Figure, type Part } from './figure.js';
import { exchange } from './rest-clients.js';
import { startServiceProcess, type ServiceProcess } from './service-process.js';
import { percentile } from './statistics.js';

const LINES = 100;
/** Issue 6: other requests keep their latency while files are taken in. */
const TARGET_OTHERS = { atMost: 50 };

export const ingestionPart: Part = {
  name: 'ingestion',
  method: ({ rounds, pdfPages }) =>
    `A process of dist/src/main.js with default settings (vectors computed by it) is sent ${rounds} PDFs of ${pdfPages} pages of ` +
    `${LINES} lines, one after the other; from the request to the answer, which comes when the document can be found. ` +
    'Meanwhile one client asks for the list of runs again and again.',
  async measure({ rounds, pdfPages }) {
    const dir = tempDir();
    const service = await startServiceProcess(dir.path);
    try {
      const chunks: number[] = [];
      const pages: number[] = [];
      const others = askingMeanwhile(service);
      for (let round = 0; round < rounds; round += 1) {
        const file = pdfOf(Array.from({ length: pdfPages }, (_, index) => pageOf(round, index)));
        const from = performance.now();
        const ingested = await upload(service.url, file, `${round}.pdf`);
        const seconds = (performance.now() - from) / 1_000;
        chunks.push(ingested / seconds);
        pages.push(pdfPages / seconds);
      }
      return [
        figure('ingestion: chunks', '/s', chunks),
        figure('ingestion: pages', '/s', pages),
        ...(await others.end()),
      ];
    } finally {
      await service.stop();
      dir.remove();
    }
  },
};

async function upload(url: string, file: Buffer, name: string): Promise<number> {
  const form = new FormData();
  form.set('file', new Blob([new Uint8Array(file)], { type: 'application/pdf' }), name);
  const response = await fetch(`${url}/api/councils/upload-pdf`, { method: 'POST', body: form });
  const answer = (await response.json()) as { readonly chunks_ingested?: number };
  if (response.status !== 200 || answer.chunks_ingested === undefined)
    throw new Error(`An upload was answered ${response.status}: ${JSON.stringify(answer)}`);
  return answer.chunks_ingested;
}

function askingMeanwhile({ url }: ServiceProcess): { readonly end: () => Promise<readonly Figure[]> } {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const times: number[] = [];
  const over = new AbortController();
  const asking = (async () => {
    while (!over.signal.aborted) {
      const from = performance.now();
      await exchange(agent, `${url}/api/runs/`, null);
      times.push(performance.now() - from);
    }
  })();
  return {
    async end() {
      over.abort();
      await asking;
      agent.destroy();
      return [figure('ingestion: another request meanwhile, p99', 'ms', [percentile(times, 0.99)], TARGET_OTHERS)];
    },
  };
}

/** Words enough that no two pages are alike. */
function pageOf(document: number, number: number): readonly PlacedText[] {
  const lines = Array.from({ length: LINES }, (_, index) => {
    const words = Array.from(
      { length: 10 },
      (_, word) => `w${(document * 7 + number * 31 + index * 13 + word * 17) % 997}`,
    );
    return `${number}.${index} ${words.join(' ')}`;
  });
  return linesAt(lines, { x: 40, y: 20 }, 8);
}

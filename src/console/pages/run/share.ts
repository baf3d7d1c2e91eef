/** Writes a run into one HTML file that needs no service and no network, and verifies its own hash chain. */
import type { RunEvent } from '../../../client/run-events.js';
import type { Marking, ReadEvents } from '../../../draft/marking.js';
import { markProperties, markingOf } from '../../../draft/marking.js';
import type { SharedProof, SharedRun } from '../../share/shared-run.js';
import { SHARED_RUN, inScript } from '../../share/shared-run.js';
import { council } from '../../shell/council.js';
import type { RunStore } from './store.js';

/** The module of a shared file, which the build puts beside this one. */
const MODULE = new URL('./share.js', import.meta.url).href;

/** The text of the file, with its module and the styles of this page. */
export async function sharedFile({ source: { id }, record, documentNames, cited }: RunStore): Promise<string> {
  const proof = await proofOf(id);
  const run: SharedRun = {
    ...(proof !== null && { proof }),
    id,
    sharedAt: new Date().toISOString(),
    events: record.events,
    documents: Object.fromEntries(documentNames.value),
    cited: cited.value.sources,
  };
  const [code, styles, marking] = await Promise.all([textAt(MODULE), allStyles(), markingOf(id, readEvents(run))]);
  return page({
    run,
    meta: marking === null ? '' : metaOf(marking),
    code,
    styles,
    nonce: window.crypto.getRandomValues(new Uint32Array(4)).join('-'),
  });
}

/** Reads the events of the run, which the page has, and of its parents from the service. */
function readEvents({ id, events: own }: SharedRun): ReadEvents {
  async function* first(runId: string, max: number): AsyncGenerator<RunEvent> {
    // The events of a run that has not ended would go on.
    const last = runId === id ? max : Math.min(max, (await council.run(runId).state()).seq + 1);
    for await (const event of runId === id ? own : council.run(runId).events()) {
      yield event;
      if (event.seq + 1 >= last) return;
    }
  }
  return (runId, read, max = Number.POSITIVE_INFINITY) => read(first(runId, max));
}

/** The proof of an ended run, or null if no checkpoint of the ledger covers it yet. */
async function proofOf(id: string): Promise<SharedProof | null> {
  const { ledger: leaf } = await council.run(id).verify();
  if (leaf?.covered !== true) return null;
  const text = await council.run(id).proof();
  const { checkpoint } = await council.ledger();
  return text === null || checkpoint === null ? null : { text, index: leaf.index, checkpointAt: checkpoint.at };
}

interface Parts {
  readonly run: SharedRun;
  /** The elements that say what made the draft. */
  readonly meta: string;
  readonly code: string;
  readonly styles: string;
  /** Allows only the file's own script and styles. */
  readonly nonce: string;
}

function page({ run, meta, code, styles, nonce }: Parts): string {
  const policy = [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    `style-src 'nonce-${nonce}'`,
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
  ].join('; ');
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
${meta}
<title>Council run</title>
<style nonce="${nonce}">${styles}</style>
</head>
<body>
<div id="app"></div>
<noscript>This file needs JavaScript.</noscript>
<script type="application/json" id="${SHARED_RUN}">${inScript(run)}</script>
<script type="module" nonce="${nonce}" src="data:text/javascript;charset=utf-8,${encodeURIComponent(code)}"></script>
</body>
</html>
`;
}

function metaOf(marking: Marking): string {
  const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '"': '&quot;' };
  const text = (value: string): string => value.replace(/[&<"]/g, (sign) => entities[sign] ?? sign);
  return ['<meta name="generator" content="Council Run Service">']
    .concat(markProperties(marking).map(([name, value]) => `<meta name="${name}" content="${text(value)}">`))
    .join('\n');
}

/** The style sheets of this page, without `<`, so that they cannot end their element. */
async function allStyles(): Promise<string> {
  const sheets = [...document.querySelectorAll<HTMLLinkElement>('link[rel=stylesheet]')];
  const texts = await Promise.all(sheets.map(({ href }) => textAt(href)));
  return texts.join('\n').replaceAll('<', '\\3c ');
}

async function textAt(url: string): Promise<string> {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url} is missing. Reload the page.`);
  return await answer.text();
}

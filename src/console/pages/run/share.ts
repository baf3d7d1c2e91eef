/** A run as one HTML file that shows the same without a service or a network, and checks its own chain. */
import type { SharedRun } from '../../share/shared-run.js';
import { SHARED_RUN, inScript } from '../../share/shared-run.js';

/** The first module of a shared file; the build puts it beside the one that this becomes part of. */
const ENTRY = new URL('./share.js', import.meta.url).href;
/** The specifiers that the build writes: relative, in double quotes. */
const SPECIFIER = /((?:\bfrom|\bimport)\s*\(?\s*)"(\.[^"\n]+)"/g;

/** The file, as text. It takes the modules and styles with it that this page runs on. */
export async function sharedFile(run: SharedRun): Promise<string> {
  const [modules, styles] = await Promise.all([allModules(), allStyles()]);
  const names = new Map([...modules.keys()].map((url, index) => [url, `m${index}`]));
  const nameOf = (url: string): string => names.get(url) ?? url;
  const imports = Object.fromEntries(
    [...modules].map(([url, text]) => {
      const named = text.replace(SPECIFIER, (_, before: string, specifier: string) => {
        return `${before}"${nameOf(new URL(specifier, url).href)}"`;
      });
      return [nameOf(url), `data:text/javascript;charset=utf-8,${encodeURIComponent(named)}`];
    }),
  );
  return page({
    run,
    imports,
    styles,
    entry: nameOf(ENTRY),
    nonce: window.crypto.getRandomValues(new Uint32Array(4)).join('-'),
  });
}

interface Parts {
  readonly run: SharedRun;
  readonly imports: Readonly<Record<string, string>>;
  readonly styles: string;
  readonly entry: string;
  /** Names what the file itself brought: nothing else runs in it. */
  readonly nonce: string;
}

function page({ run, imports, styles, entry, nonce }: Parts): string {
  const policy = [
    "default-src 'none'",
    `script-src 'nonce-${nonce}' data:`,
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
<title>Council run</title>
<style nonce="${nonce}">${styles}</style>
<script type="importmap" nonce="${nonce}">${inScript({ imports })}</script>
</head>
<body>
<div id="app"></div>
<noscript><p>This file shows a run with JavaScript.</p></noscript>
<script type="application/json" id="${SHARED_RUN}">${inScript(run)}</script>
<script type="module" nonce="${nonce}">import "${entry}";</script>
</body>
</html>
`;
}

/** The texts of all modules that the entry loads, by their addresses. */
async function allModules(): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  let waiting: readonly string[] = [ENTRY];
  while (waiting.length > 0) {
    const texts = await Promise.all(waiting.map(async (url) => [url, await textAt(url)] as const));
    for (const [url, text] of texts) found.set(url, text);
    const loaded = texts.flatMap(([url, text]) =>
      [...text.matchAll(SPECIFIER)].map(([, , specifier = '']) => new URL(specifier, url).href),
    );
    waiting = [...new Set(loaded)].filter((url) => !found.has(url));
  }
  return found;
}

/** The sheets of this page. A text of theirs cannot end its element: they hold no `<`. */
async function allStyles(): Promise<string> {
  const sheets = [...document.querySelectorAll<HTMLLinkElement>('link[rel=stylesheet]')];
  const texts = await Promise.all(sheets.map(({ href }) => textAt(href)));
  return texts.join('\n').replaceAll('<', '\\3c ');
}

async function textAt(url: string): Promise<string> {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`The page's own file ${url} is gone: load the page anew`);
  return await answer.text();
}

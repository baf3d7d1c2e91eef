/** Writes a run into one HTML file that needs no service and no network, and verifies its own hash chain. */
import type { SharedRun } from '../../share/shared-run.js';
import { SHARED_RUN, inScript } from '../../share/shared-run.js';

/** The module of a shared file, which the build puts beside this one. */
const MODULE = new URL('./share.js', import.meta.url).href;

/** The text of the file, with its module and the styles of this page. */
export async function sharedFile(run: SharedRun): Promise<string> {
  const [code, styles] = await Promise.all([textAt(MODULE), allStyles()]);
  return page({ run, code, styles, nonce: window.crypto.getRandomValues(new Uint32Array(4)).join('-') });
}

interface Parts {
  readonly run: SharedRun;
  readonly code: string;
  readonly styles: string;
  /** Allows only the file's own script and styles. */
  readonly nonce: string;
}

function page({ run, code, styles, nonce }: Parts): string {
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

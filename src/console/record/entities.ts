/**
 * Named character references for markdown-it in the browser: those of HTML 4. `src/build.mjs` bundles this module in
 * place of the package `entities`, whose table of all 2,231 names weighs 14 KB more as gzip. Other names stay as typed.
 */
import { characterEntitiesHtml4 } from 'character-entities-html4';

/** @param reference such as `&mdash;` @returns its character, or the reference if the name is unknown */
export function decodeHTMLStrict(reference: string): string {
  return characterEntitiesHtml4[reference.slice(1, -1)] ?? reference;
}

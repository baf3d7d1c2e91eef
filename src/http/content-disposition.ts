/**
 * The Content-Disposition header: of answers (RFC 6266), and parsed of a form's part (RFC 7578, section 4.2) in the forms that
 * clients send. Browsers send UTF-8 and percent-encode quotes and line breaks (WHATWG HTML, section 4.10.21.8). .NET, PowerShell and urllib3
 * before 1.25 send `filename*` (RFC 8187).
 */

/** A missing name is the empty text. */
export interface Disposition {
  /** The name of the form's field. */
  readonly name: string;
  /** The file's name as the client sent it: it may be a path and may contain control characters. */
  readonly filename: string;
}

/** Name, `=`, and a quoted string or everything up to the next parameter. */
const PARAMETER = /;\s*([^\s;=]+)\s*=\s*("(?:[^"\\]|\\.)*"|[^;]*)/g;

/**
 * Reads the header's value. A valid `filename*` takes precedence over `filename` (RFC 6266, section 4.3).
 *
 * @param header the bytes of the value as characters (Latin-1)
 */
export function dispositionOf(header: string): Disposition {
  const parameters = new Map<string, string>();
  for (const [, name = '', value = ''] of header.matchAll(PARAMETER)) {
    const key = name.toLowerCase();
    if (!parameters.has(key)) parameters.set(key, unquoted(value.trim()));
  }
  const extended = extendedValue(parameters.get('filename*') ?? '');
  return {
    name: utf8(parameters.get('name') ?? ''),
    filename: extended ?? plainFilename(parameters.get('filename') ?? ''),
  };
}

/** Unescapes only quotes and backslashes, because old browsers send paths with plain backslashes. */
function unquoted(value: string): string {
  return /^".*"$/s.test(value) ? value.slice(1, -1).replace(/\\(["\\])/g, '$1') : value;
}

/**
 * The value of `charset'language'percent-encoded`, or null if it is not valid (RFC 8187, section 3.2): a `%` without two
 * hexadecimal digits makes it invalid.
 */
function extendedValue(value: string): string | null {
  const [, charset = '', encoded = ''] = /^(utf-8|iso-8859-1)'[^']*'((?:[^%]|%[\da-f]{2})+)$/i.exec(value) ?? [];
  if (encoded === '') return null;
  try {
    return new TextDecoder(charset, { fatal: true }).decode(Buffer.from(percentDecoded(encoded), 'latin1'));
  } catch {
    return null;
  }
}

function plainFilename(value: string): string {
  // .NET encodes a FileName that is not ASCII as RFC 2047 does for mail.
  const [, base64] = /^=\?utf-8\?B\?([\w+/]*=*)\?=$/i.exec(value) ?? [];
  if (base64 !== undefined) return Buffer.from(base64, 'base64').toString('utf8');
  return utf8(value.replace(/%(?:22|0A|0D)/gi, percentDecoded));
}

function percentDecoded(text: string): string {
  return text.replace(/%([\da-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

function utf8(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString('utf8');
}

/** Characters of file names that some file system refuses, or that end a line or change the direction of a text. */
const UNSAFE_IN_NAMES = /[\p{C}\p{Zl}\p{Zp}/\\:*?"<>|]+/gu;
const MAX_NAME_CHARS = 80;
/** Most bytes of a name without its ending: file systems accept 255 with it. */
const MAX_NAME_BYTES = 240;
/** Names of devices on Windows, with any ending. */
const DEVICES = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i;

/** The name of a file, without ending, for a text: its first line without unsafe characters, or `draft`. */
export function fileNameOf(text: string): string {
  const [line = ''] = text.trim().split(/[\r\n]/);
  const safe = line.replace(UNSAFE_IN_NAMES, ' ').replace(/\s+/gu, ' ');
  const short = [...safe].slice(0, MAX_NAME_CHARS).join('');
  const bytes = Buffer.from(short).subarray(0, MAX_NAME_BYTES);
  // The cut may leave a part of a character at the end.
  const name = new TextDecoder()
    .decode(bytes)
    .replace(/\ufffd+$/, '')
    .replace(/^[.\s]+|[.\s]+$/gu, '');
  return name === '' || DEVICES.test(name) ? `draft ${name}`.trim() : name;
}

/** The header of an answer that browsers save under a name, with an ASCII name for old clients. */
export function attachment(name: string): { readonly 'Content-Disposition': string } {
  const plain = name.replace(/[^\x20-\x7e]|["\\%]/g, '_');
  const encoded = encodeURIComponent(name).replace(/['()*]/g, (each) => `%${each.charCodeAt(0).toString(16)}`);
  return { 'Content-Disposition': `attachment; filename="${plain}"; filename*=UTF-8''${encoded}` };
}

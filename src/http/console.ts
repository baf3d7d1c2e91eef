/**
 * The console's static files from the build: one page for all its addresses, and its assets. They hold no data and need
 * no key; the page requests its data from the API.
 */
import { existsSync } from 'node:fs';
import { readFile, readdir } from 'node:fs/promises';
import { extname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Context } from 'koa';
import { RequestRefused } from '../api/problems.js';
import type { System } from '../system/system.js';
import type { Answer } from './answer.js';
import { isKnown } from './answer.js';

const FOLDER = fileURLToPath(new URL('../../console/', import.meta.url));

/** Everything comes from the service, no script writes markup, and no other page frames the console. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ');

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml; charset=utf-8',
  '.webmanifest': 'application/manifest+json; charset=utf-8',
};

const INDEX = 'index.html';

/** Paths below /console that serve the page, which validates the ids in them. */
const PAGE = /^(\/((runs|blueprints|documents)(\/[^/]+)?|inbox|compare|overview|models|settings)?)?\/?$/;

interface StaticFile {
  /** Bytes that all answers share. */
  readonly body: Buffer;
  readonly zipped: Buffer;
  readonly type: string;
  readonly tag: string;
}

/** Whether a request is for the console: a path below /console, its icon, or a browser's navigation to the root. */
export function isForConsole(ctx: Context): boolean {
  return ctx.path === '/console' || ctx.path.startsWith('/console/') || isForIcon(ctx) || isForRoot(ctx);
}

/** Whether a request is for the root: of a browser that requests a page, or HEAD of any program. */
function isForRoot(ctx: Context): boolean {
  return ctx.path === '/' && (ctx.method === 'HEAD' || isPageRequest(ctx));
}

/** Browsers request this path for pages without an icon of their own, such as a JSON answer. */
function isForIcon({ path, method }: Context): boolean {
  return path === '/favicon.ico' && (method === 'GET' || method === 'HEAD');
}

/** Whether a browser, rather than a program, requests a page. */
function isPageRequest({ method, headers }: Context): boolean {
  return method === 'GET' && headers.accept?.includes('text/html') === true;
}

interface ConsoleDeps {
  readonly system: Pick<System, 'sha256'>;
  readonly basePath: string;
}

/** Serves the console. */
export class ConsoleFiles {
  readonly #sha256: (text: string) => string;
  readonly #basePath: string;
  readonly #folder: string;
  #files: Promise<ReadonlyMap<string, StaticFile>> | null = null;

  constructor({ system, basePath }: ConsoleDeps, folder = FOLDER) {
    this.#sha256 = system.sha256;
    this.#basePath = basePath;
    this.#folder = folder;
  }

  /** @throws {RequestRefused} 404, 405 */
  async answer(ctx: Context): Promise<Answer> {
    if (isForRoot(ctx)) return { status: 302, body: null, headers: { Location: '/console/' } };
    const files = await this.#all();
    const name = isForIcon(ctx) ? [...files.keys()].find((each) => each.endsWith('/icon.svg')) : fileAt(ctx.path);
    const file = files.get(name ?? '');
    if (file === undefined) {
      const page = files.get(INDEX);
      // In a browser the page itself says that the address is unknown, with a way back.
      if (page === undefined || !isPageRequest(ctx)) {
        throw new RequestRefused(`No such page or file: ${ctx.path}`, { status: 404 });
      }
      return fileAnswer(ctx, page, 404);
    }
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD') {
      const headers = { Allow: 'GET, HEAD' };
      throw new RequestRefused(`Method ${ctx.method} is not allowed here; use GET`, { status: 405, headers });
    }
    return fileAnswer(ctx, file);
  }

  /** Reads and compresses the files once. */
  async #all(): Promise<ReadonlyMap<string, StaticFile>> {
    this.#files ??= this.#read();
    try {
      return await this.#files;
    } catch (error) {
      this.#files = null;
      throw error;
    }
  }

  /** A page with the base path before the addresses of its assets. */
  #withBasePath(page: string): string {
    return page.replaceAll(/(?<=(?:href|src)=")(?=\/console\/assets\/)/g, this.#basePath);
  }

  async #read(): Promise<ReadonlyMap<string, StaticFile>> {
    if (!existsSync(join(this.#folder, INDEX))) return new Map();
    const entries = await readdir(this.#folder, { recursive: true, withFileTypes: true });
    const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
    return new Map(
      await Promise.all(
        paths.map(async (path) => {
          const read = await readFile(path);
          const body = extname(path) === '.html' ? Buffer.from(this.#withBasePath(read.toString())) : read;
          const zipped = await promisify(gzip)(body, { level: 9 });
          const type = MEDIA_TYPES[extname(path)] ?? 'application/octet-stream';
          const name = relative(this.#folder, path).split(sep).join('/');
          return [name, { body, zipped, type, tag: this.#sha256(body.toString()) }] as const;
        }),
      ),
    );
  }
}

/** The name of the file at a path, relative to the folder. */
function fileAt(path: string): string {
  const below = path.slice('/console'.length);
  return PAGE.test(below) ? INDEX : below.slice(1);
}

function fileAnswer(ctx: Context, { body, zipped, type, tag }: StaticFile, status = 200): Answer {
  const headers = {
    ETag: `"${tag}"`,
    'Cache-Control': cachingOf(ctx, type),
    'Content-Security-Policy': POLICY,
    'X-Frame-Options': 'DENY',
    'Referrer-Policy': 'no-referrer',
    Vary: 'Accept-Encoding',
  };
  if (status === 200 && isKnown(ctx, headers)) return { status: 304, body: null, headers };
  const isZipped = ctx.acceptsEncodings('gzip', 'identity') === 'gzip';
  if (!isZipped) return { status, type, body, headers };
  return { status, type, body: zipped, headers: { ...headers, 'Content-Encoding': 'gzip' } };
}

/** The path of an asset contains its version; those of the page and of the icon do not. */
function cachingOf(ctx: Context, type: string): string {
  if (isForIcon(ctx)) return 'public, max-age=86400';
  return type.startsWith('text/html') ? 'no-cache' : 'public, max-age=31536000, immutable';
}

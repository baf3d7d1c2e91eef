/** Reads and writes files of the commands; a file is written completely or not at all. */
import { createReadStream } from 'node:fs';
import { open, realpath, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { CouncilError } from '../../errors.js';

/** The file cannot be written; an older one of that name is unchanged. */
export class FileLost extends CouncilError<{ readonly file: string }> {
  readonly code = 'cli.file-lost';
  constructor({ file, cause }: { readonly file: string; readonly cause: Error }) {
    super(`Cannot write "${file}": ${cause.message}`, { file }, { cause });
  }
}

/** A file cannot be read. */
export class FileUnreadable extends CouncilError<{ readonly file: string }> {
  readonly code = 'cli.file-unreadable';
  constructor({ file, cause }: { readonly file: string; readonly cause: Error }) {
    super(`Cannot read "${file}": ${cause.message}`, { file }, { cause });
  }
}

/** The bytes of a file, piece by piece; of `input` for `-`. @throws {FileUnreadable} */
export async function* bytesIn(file: string, input: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    const bytes: AsyncIterable<Uint8Array> = file === '-' ? input : createReadStream(file);
    yield* bytes;
  } catch (cause) {
    throw new FileUnreadable({ file, cause: errorOf(cause) });
  }
}

/** Writes a file. @throws {FileLost} or what the pieces throw, or the signal's reason; then nothing is left */
export async function writeWhole(
  file: string,
  chunks: AsyncIterable<Uint8Array>,
  { uuid, signal }: { readonly uuid: () => string; readonly signal: AbortSignal },
): Promise<void> {
  const orFileLost = <T>(act: Promise<T>): Promise<T> =>
    act.catch((cause: unknown) => {
      throw new FileLost({ file, cause: errorOf(cause) });
    });
  const target = await orFileLost(targetOf(file));
  const temporary = join(dirname(target), `.${basename(target)}.${uuid()}`);
  const handle = await orFileLost(open(temporary, 'wx'));
  try {
    for await (const chunk of chunks) {
      signal.throwIfAborted();
      await orFileLost(handle.writeFile(chunk));
    }
    await orFileLost(handle.sync());
    await handle.close();
    await orFileLost(rename(temporary, target));
  } catch (error) {
    await handle.close().catch(() => undefined);
    await rm(temporary, { force: true });
    throw error;
  }
}

/** The path to replace: the file behind a link, and no device, pipe or folder. */
async function targetOf(file: string): Promise<string> {
  const target = await realpath(file).catch(() => file);
  const found = await stat(target).catch(() => null);
  if (found !== null && !found.isFile()) throw new Error('it is there, and is no regular file');
  return target;
}

function errorOf(cause: unknown): Error {
  return cause instanceof Error ? cause : new Error(String(cause));
}

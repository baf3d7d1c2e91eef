/** Reads and writes the files that the user names. A file is written completely or not at all. */
import { createReadStream } from 'node:fs';
import { open, realpath, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { CouncilError } from '../../errors.js';

/** A file cannot be written. An older file of that name is unchanged. */
export class FileUnwritable extends CouncilError<{ readonly file: string }> {
  readonly code = 'cli.file-unwritable';
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

/** The bytes of a file in chunks, or of `input` if the file is `-`. @throws {FileUnreadable} */
export async function* bytesIn(file: string, input: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    const bytes: AsyncIterable<Uint8Array> = file === '-' ? input : createReadStream(file);
    yield* bytes;
  } catch (cause) {
    throw new FileUnreadable({ file, cause: errorOf(cause) });
  }
}

/** Writes a file. After an error nothing is left. @throws {FileUnwritable} or the error of a chunk, or of the signal */
export async function writeAtomically(
  file: string,
  chunks: AsyncIterable<Uint8Array>,
  { uuid, signal }: { readonly uuid: () => string; readonly signal: AbortSignal },
): Promise<void> {
  const orUnwritable = <T>(act: Promise<T>): Promise<T> =>
    act.catch((cause: unknown) => {
      throw new FileUnwritable({ file, cause: errorOf(cause) });
    });
  const target = await orUnwritable(targetOf(file));
  const temporary = join(dirname(target), `.${basename(target)}.${uuid()}`);
  const handle = await orUnwritable(open(temporary, 'wx'));
  try {
    for await (const chunk of chunks) {
      signal.throwIfAborted();
      await orUnwritable(handle.writeFile(chunk));
    }
    await orUnwritable(handle.sync());
    await handle.close();
    await orUnwritable(rename(temporary, target));
  } catch (error) {
    await handle.close().catch(() => undefined);
    await rm(temporary, { force: true });
    throw error;
  }
}

/** The path of the file to replace; follows links. @throws it is a device, a pipe or a folder */
async function targetOf(file: string): Promise<string> {
  const target = await realpath(file).catch(() => file);
  const found = await stat(target).catch(() => null);
  if (found !== null && !found.isFile()) throw new Error('it exists and is not a regular file');
  return target;
}

function errorOf(cause: unknown): Error {
  return cause instanceof Error ? cause : new Error(String(cause));
}

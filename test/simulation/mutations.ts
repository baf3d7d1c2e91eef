/**
 * Shows that the simulation bites: `node dist/test/simulation/mutations.js [NAME]` spoils a copy of the built service in
 * one place after the other, plays seeds until an invariant breaks, and prints a table. A text that is not found, or found
 * twice, is an error: the mutation has to follow the code.
 */
import { fork } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { MUTATIONS } from './mutation-list.js';
import type { Mutation } from './mutation-list.js';
import type { Tally } from './play.js';

/** Histories after which a mutation counts as not found. */
const MAX_HISTORIES = 2_000;
/** A history that takes longer never ends, in milliseconds. */
const STUCK_MS = 90_000;

const dist = fileURLToPath(new URL('../..', import.meta.url));

/** The built files that a mutation changes, by their paths. @throws {Error} when a text is not there, or twice */
function textsOf({ name, edits }: Mutation): ReadonlyMap<string, string> {
  const texts = new Map<string, string>();
  for (const { file, from, to } of edits) {
    const text = texts.get(file) ?? readFileSync(join(dist, 'src', file), 'utf8');
    const [before, after, ...more] = text.split(from);
    if (before === undefined || after === undefined || more.length > 0) {
      throw new Error(`"${name}": the text is not found once in ${file}: ${from}`);
    }
    texts.set(file, before + to + after);
  }
  return texts;
}

/** A folder with the built files and a mutation. */
function mutated(mutation: Mutation): string {
  const folder = mkdtempSync(join(tmpdir(), 'mutation-'));
  const copy = join(folder, 'dist');
  for (const part of ['src', 'test/simulation', 'test/support']) {
    cpSync(join(dist, part), join(copy, part), { recursive: true });
  }
  symlinkSync(join(dist, '..', 'node_modules'), join(folder, 'node_modules'));
  symlinkSync(join(dist, '..', 'schemas'), join(folder, 'schemas'));
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  for (const [file, text] of textsOf(mutation)) writeFileSync(join(copy, 'src', file), text);
  return folder;
}

/** How many histories it takes, and what breaks; null: nothing. */
function found(folder: string): Promise<{ readonly histories: number; readonly invariant: string | null }> {
  return new Promise((resolve, reject) => {
    const child = fork(join(folder, 'dist/test/simulation/play.js'), ['1', String(MAX_HISTORIES)], { silent: true });
    let histories = 0;
    let timer = setTimeout(() => undefined, 0);
    const settle = (invariant: string | null): void => {
      clearTimeout(timer);
      child.kill('SIGKILL');
      resolve({ histories, invariant });
    };
    const watch = (): void => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        histories += 1;
        settle('every run ends once faults stop (it never rests)');
      }, STUCK_MS);
    };
    watch();
    child.on('message', (message: { readonly tally?: Tally }) => {
      watch();
      if (message.tally === undefined) histories += 1;
      else settle(message.tally.failure?.invariant ?? null);
    });
    child.on('error', reject);
    // What it has to say comes before, even where its end is known sooner.
    child.on('disconnect', () => reject(new Error('The simulation ends and says nothing')));
  });
}

const wanted = process.argv[2] ?? '';
const left = MUTATIONS.filter(({ name }) => name.includes(wanted));
const rows: string[] = [];

async function work(): Promise<void> {
  for (let mutation = left.shift(); mutation !== undefined; mutation = left.shift()) {
    const folder = mutated(mutation);
    const { histories, invariant } = await found(folder);
    rmSync(folder, { recursive: true });
    rows.push(
      `| ${mutation.name} | ${invariant === null ? `none in ${histories}` : histories} | ${invariant ?? '-'} |`,
    );
    process.stdout.write(`${rows.at(-1)}\n`);
  }
}

for (const mutation of left) textsOf(mutation);
await Promise.all(Array.from({ length: availableParallelism() }, work));

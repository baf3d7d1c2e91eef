/** The progress of a run on standard error: one moving line on a terminal, a line for each node in a pipe. */
import type { WriteStream } from 'node:tty';
import type { System } from '../../system/system.js';
import type { RunProgress } from '../commands/driver.js';
import { printable } from './printer.js';

/** How often the moving line's time moves on, in milliseconds. */
const TICK_MS = 200;
/** Columns of a terminal that does not report its width. */
const COLUMNS = 80;
/** Back to the first column, and everything from there erased. */
const ERASE_LINE = '\r\x1b[K';

export interface Progress {
  show(progress: RunProgress): void;
  /** Writes whole lines; the moving line stays away until the next `show`. */
  say(text: string): void;
  /** Seconds since it was opened, as text. */
  elapsed(): string;
  /** Leaves a clean line. May be called twice. */
  close(): void;
}

/** Where it is shown: standard error, or what stands for it. */
export type ProgressStream = Pick<WriteStream, 'write' | 'isTTY' | 'columns'>;

export function openProgress(stream: ProgressStream, system: System): Progress {
  const startMs = system.monotonicMs();
  const elapsed = (): string => `${((system.monotonicMs() - startMs) / 1_000).toFixed(1)} s`;
  /** Nodes whose line is written, in a pipe. */
  let written: readonly string[] = [];
  /** The moving line as it stands on the terminal. */
  let drawn = '';
  let cancelTick = (): void => undefined;

  const draw = (progress: RunProgress): void => {
    cancelTick();
    const line = lineOf(progress, progress.nodes.join(', '), elapsed()).slice(0, (stream.columns || COLUMNS) - 1);
    if (line !== drawn) stream.write(`${ERASE_LINE}${line}`);
    drawn = line;
    cancelTick = system.after(TICK_MS, () => draw(progress));
  };
  const erase = (): void => {
    cancelTick();
    if (drawn !== '') stream.write(ERASE_LINE);
    drawn = '';
  };
  const writeLines = (progress: RunProgress): void => {
    const fresh = progress.nodes.filter((node) => !written.includes(node));
    for (const node of fresh) stream.write(`${lineOf(progress, node, elapsed())}\n`);
    written = progress.nodes;
  };
  return {
    elapsed,
    show(progress) {
      if (!stream.isTTY) writeLines(progress);
      else if (progress.nodes.length > 0) draw(progress);
    },
    say(text) {
      erase();
      stream.write(`${printable(text)}\n`);
    },
    close: erase,
  };
}

function lineOf({ iteration, score }: RunProgress, nodes: string, elapsed: string): string {
  const name = printable(nodes).replaceAll(/\s/g, ' ');
  const parts = [elapsed.padStart(8), name, iteration === null ? '' : `iteration ${iteration}`];
  return [...parts, score === null ? '' : `score ${score}`].filter((part) => part !== '').join('  ');
}

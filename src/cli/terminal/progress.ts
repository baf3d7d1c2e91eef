/** The progress of a run on standard error: on a terminal one line that is redrawn, in a pipe a line for each node. */
import type { WriteStream } from 'node:tty';
import type { System } from '../../system/system.js';
import type { RunProgress } from '../commands/driver.js';
import { printable } from './printer.js';

/** How often the elapsed time is redrawn, in milliseconds. */
const TICK_MS = 200;
/** Columns of a terminal that does not report its width. */
const COLUMNS = 80;
/** Returns to the first column and erases the line. */
const ERASE_LINE = '\r\x1b[K';

/** What the progress line shows. */
export type Shown = Pick<RunProgress, 'nodes' | 'iteration' | 'score'> & Partial<Pick<RunProgress, 'runs'>>;

export interface Progress {
  show(progress: Shown): void;
  /** Writes a message on lines of its own; the next `show` redraws the progress line below it. */
  say(text: string): void;
  /** Time since the start, such as `1.5 s`. */
  elapsed(): string;
  /** Erases the progress line. May be called twice. */
  close(): void;
}

/** Standard error, or another stream in tests. */
export type ProgressStream = Pick<WriteStream, 'write' | 'isTTY' | 'columns'>;

export function openProgress(stream: ProgressStream, system: System): Progress {
  const startMs = system.monotonicMs();
  const elapsed = (): string => `${((system.monotonicMs() - startMs) / 1_000).toFixed(1)} s`;
  /** In a pipe: the nodes of the last progress. */
  let written: readonly string[] = [];
  /** The progress line on the terminal, or '' if it is erased. */
  let drawn = '';
  let cancelTick = (): void => undefined;

  const draw = (progress: Shown): void => {
    cancelTick();
    const nodes = progress.nodes.map((node) => {
      const runs = progress.runs?.get(node);
      return runs === undefined ? node : `${node} (${runs})`;
    });
    const line = lineOf(progress, nodes.join(', '), elapsed()).slice(0, (stream.columns || COLUMNS) - 1);
    if (line !== drawn) stream.write(`${ERASE_LINE}${line}`);
    drawn = line;
    cancelTick = system.after(TICK_MS, () => draw(progress));
  };
  const erase = (): void => {
    cancelTick();
    if (drawn !== '') stream.write(ERASE_LINE);
    drawn = '';
  };
  const writeLines = (progress: Shown): void => {
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

function lineOf({ iteration, score }: Shown, nodes: string, elapsed: string): string {
  const name = printable(nodes).replaceAll(/\s/g, ' ');
  const parts = [elapsed.padStart(8), name, iteration === null ? '' : `iteration ${iteration}`];
  return [...parts, score === null ? '' : `score ${score}`].filter((part) => part !== '').join('  ');
}

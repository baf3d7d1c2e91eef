/** What each command does with the records it is given; resolves with its exit code. */
import { exportLine, readExport } from '../../audit/export.js';
import { printableJson } from '../printable.js';
import { eventLine } from './event-line.js';
import { EXIT, exitOfFinding } from './exit-codes.js';
import { writeWhole } from './files.js';
import type { Finding } from './finding.js';
import { findingJson, findingText } from './finding-text.js';
import { forkRun } from './fork-run.js';
import { linesIn } from './lines.js';
import { ReaderGone } from './printer.js';
import type { RunRecords } from './record.js';
import { isTerminal } from './record.js';
import { diffText, stateDiff } from './state-diff.js';
import { stateText } from './state-text.js';
import type { Surroundings } from './surroundings.js';
import type { Wish } from './usage.js';
import { verifyExport } from './verify-export.js';

/** Characters of lines that are gathered before they are written. */
const PAGE_CHARS = 64 * 1024;

export async function perform(wish: Wish, around: Surroundings): Promise<number> {
  if (wish.command === 'verify' && wish.isFile) return await verifyFile(wish, around);
  if (wish.command === 'fork') return await forkRun(wish, around);
  const records = around.records();
  try {
    return await performOn(records, wish, around);
  } finally {
    records.close();
  }
}

type RecordWish = Exclude<Wish, { readonly command: 'fork' }>;

async function performOn(records: RunRecords, wish: RecordWish, around: Surroundings): Promise<number> {
  switch (wish.command) {
    case 'events':
      return await listEvents(records, wish, around);
    case 'tail':
      return await tail(records, wish, around);
    case 'state': {
      const run = await records.state(wish.run, wish.at);
      return await show(wish.isJson ? run : stateText(run, around.paint), around);
    }
    case 'diff': {
      const from = await records.state(wish.run, wish.from);
      const diff = stateDiff(from, await records.state(wish.other, wish.to));
      return await show(wish.isJson ? diff : diffText(diff, around.paint), around);
    }
    case 'verify':
      return await showFinding(await records.verify(wish.subject, wish.head), wish, around);
    case 'export':
      return await exportRun(records, wish, around);
    default:
      return wish satisfies never;
  }
}

/** Text as it is made for readers, or a value as JSON. */
async function show(content: string | object, { print, isTerminal: isOnTerminal }: Surroundings): Promise<number> {
  if (typeof content === 'string') await print(content);
  else {
    const json = JSON.stringify(content);
    await print(`${isOnTerminal ? printableJson(json) : json}\n`);
  }
  return EXIT.done;
}

async function showFinding(
  finding: Finding,
  { isJson }: { readonly isJson: boolean },
  around: Surroundings,
): Promise<number> {
  try {
    await show(isJson ? findingJson(finding) : findingText(finding, around.paint), around);
  } catch (error) {
    // The exit code tells it all the same.
    if (!(error instanceof ReaderGone)) throw error;
  }
  return exitOfFinding(finding);
}

type EventsWish = Extract<Wish, { readonly command: 'events' | 'tail' }>;

async function listEvents(records: RunRecords, { run, isJson }: EventsWish, around: Surroundings): Promise<number> {
  if (isJson) return await printExport(records, run, around);
  const { paint, columns, print } = around;
  let page = '';
  for await (const event of readExport(run, linesIn(records.export(run), run))) {
    page += `${eventLine(event, paint, columns)}\n`;
    if (page.length < PAGE_CHARS) continue;
    await print(page);
    page = '';
  }
  await print(page);
  return EXIT.done;
}

async function tail(records: RunRecords, { run, isJson }: EventsWish, around: Surroundings): Promise<number> {
  const { paint, columns, print, tell } = around;
  let isOver = false;
  for await (const event of records.follow(run)) {
    isOver = isTerminal(event);
    if (isJson) await print(jsonLine(exportLine(event), around));
    else await print(`${eventLine(event, paint, columns)}\n`);
  }
  if (!isOver && !around.signal.aborted) tell('The run has not ended: nobody runs it here');
  return EXIT.done;
}

function jsonLine(line: string, { isTerminal: isOnTerminal }: Surroundings): string {
  return `${isOnTerminal ? printableJson(line) : line}\n`;
}

/** Byte for byte; a terminal is given the same values in characters that it can be trusted with. */
async function printExport(records: RunRecords, run: string, around: Surroundings): Promise<number> {
  if (around.isTerminal) {
    for await (const line of linesIn(records.export(run), run)) await around.print(jsonLine(line, around));
  } else for await (const piece of records.export(run)) await around.print(piece);
  return EXIT.done;
}

async function exportRun(
  records: RunRecords,
  { run, out }: Extract<Wish, { readonly command: 'export' }>,
  around: Surroundings,
): Promise<number> {
  if (out === null) return await printExport(records, run, around);
  await writeWhole(out, records.export(run), around);
  return EXIT.done;
}

async function verifyFile(
  { subject, head, url, isJson }: Extract<Wish, { readonly command: 'verify' }>,
  around: Surroundings,
): Promise<number> {
  const { means, bytesOf, service } = around;
  const recorded = url === null ? null : service(url).lines;
  const finding = await verifyExport(bytesOf(subject), { ...means, head, recorded });
  return await showFinding(finding, { isJson }, around);
}

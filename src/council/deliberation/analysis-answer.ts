/** Reads a judge's analysis. */
import type { Analysis } from '../../generated/schemas.js';
import { jsonBytes } from '../../graph/limits.js';
import { isList, isRecord } from '../../system/untrusted.js';
import { cutAtSentence } from '../cut.js';
import { answerWith, fieldIn } from '../json-answer.js';
import { letterIn } from './letters.js';

/**
 * Reads the object with exactly the five lists of an analysis in an answer (contract, section 6.4; `answerWith`), or null
 * if there is none: if a field is missing, is no list or is another one, if an entry has other fields or another type, names
 * a response that was not shown, or names none. Entries with a blank text are left out.
 *
 * Bounded: each list keeps its first 30 entries. If the JSON is larger than 64 KiB, every text is cut at a sentence to the
 * first of 4000, 2000, 1000, … characters at which it fits.
 */
export function readAnalysis(answer: string, letters: readonly string[]): Analysis | null {
  const object = answerWith(answer, FIELDS);
  if (object === null || !hasExactly(object, FIELDS)) return null;
  const consensus = listOf(fieldIn(object, 'consensus'), textIn);
  const contradictions = listOf(fieldIn(object, 'contradictions'), (each) => contradictionIn(each, letters));
  const partial = listOf(fieldIn(object, 'partial_coverage'), (each) => partialCoverageIn(each, letters));
  const unique = listOf(fieldIn(object, 'unique_insights'), (each) => uniqueInsightIn(each, letters));
  const blindSpots = listOf(fieldIn(object, 'blind_spots'), textIn);
  if (consensus === null || contradictions === null || partial === null || unique === null || blindSpots === null) {
    return null;
  }
  return bounded({
    consensus: firstOf(consensus, (text) => text),
    contradictions: firstOf(contradictions, ({ topic }) => topic),
    partial_coverage: firstOf(partial, ({ point }) => point),
    unique_insights: firstOf(unique, ({ insight }) => insight),
    blind_spots: firstOf(blindSpots, (text) => text),
  });
}

const FIELDS = ['consensus', 'contradictions', 'partial_coverage', 'unique_insights', 'blind_spots'];

/** The first entries that are not blank. */
function firstOf<Entry>(entries: readonly Entry[], textOf: (entry: Entry) => string): Entry[] {
  return entries.filter((entry) => textOf(entry) !== '').slice(0, MAX_ENTRIES);
}

/** The entries of a list, or null if it is no list or one of them cannot be read. */
function listOf<Entry>(given: unknown, entryIn: (entry: unknown) => Entry | null): readonly Entry[] | null {
  if (!isList(given)) return null;
  const entries = given.flatMap((each) => entryIn(each) ?? []);
  return entries.length === given.length ? entries : null;
}

/** As listOf, with at least one entry. */
function someOf<Entry>(given: unknown, entryIn: (entry: unknown) => Entry | null): readonly Entry[] | null {
  const entries = listOf(given, entryIn);
  return entries?.length === 0 ? null : entries;
}

function contradictionIn(given: unknown, letters: readonly string[]): Analysis['contradictions'][number] | null {
  if (!isRecord(given) || !hasExactly(given, ['topic', 'stances'])) return null;
  const topic = textIn(fieldIn(given, 'topic'));
  const stances = someOf(fieldIn(given, 'stances'), (each) => stanceIn(each, letters));
  return topic === null || stances === null ? null : { topic, stances: stances.slice(0, letters.length) };
}

function stanceIn(
  given: unknown,
  letters: readonly string[],
): Analysis['contradictions'][number]['stances'][number] | null {
  if (!isRecord(given) || !hasExactly(given, ['response', 'stance'])) return null;
  const response = letterIn(fieldIn(given, 'response'), letters);
  const stance = textIn(fieldIn(given, 'stance'));
  return response === null || stance === null ? null : { response, stance };
}

function partialCoverageIn(given: unknown, letters: readonly string[]): Analysis['partial_coverage'][number] | null {
  if (!isRecord(given) || !hasExactly(given, ['responses', 'point'])) return null;
  const responses = someOf(fieldIn(given, 'responses'), (each) => letterIn(each, letters));
  const point = textIn(fieldIn(given, 'point'));
  return responses === null || point === null ? null : { responses: [...new Set(responses)], point };
}

function uniqueInsightIn(given: unknown, letters: readonly string[]): Analysis['unique_insights'][number] | null {
  if (!isRecord(given) || !hasExactly(given, ['response', 'insight'])) return null;
  const response = letterIn(fieldIn(given, 'response'), letters);
  const insight = textIn(fieldIn(given, 'insight'));
  return response === null || insight === null ? null : { response, insight };
}

/** Whether an object has these fields, in any case, and no other. */
function hasExactly(object: object, names: readonly string[]): boolean {
  return Object.keys(object).length === names.length && names.every((name) => fieldIn(object, name) !== undefined);
}

/** A text without the space around it, or null for anything else. */
function textIn(given: unknown): string | null {
  return typeof given === 'string' ? given.trim().toWellFormed() : null;
}

function bounded(analysis: Analysis): Analysis {
  let fitting = analysis;
  for (let chars = MAX_TEXT_CHARS; jsonBytes(fitting) > MAX_ANALYSIS_BYTES; chars = Math.ceil(chars / 2)) {
    fitting = withTexts(analysis, (text) => cutAtSentence(text, chars));
  }
  return fitting;
}

/** An analysis with each text changed; the letters stay. */
function withTexts(analysis: Analysis, change: (text: string) => string): Analysis {
  return {
    consensus: analysis.consensus.map(change),
    contradictions: analysis.contradictions.map(({ topic, stances }) => ({
      topic: change(topic),
      stances: stances.map(({ response, stance }) => ({ response, stance: change(stance) })),
    })),
    partial_coverage: analysis.partial_coverage.map(({ responses, point }) => ({ responses, point: change(point) })),
    unique_insights: analysis.unique_insights.map(({ response, insight }) => ({ response, insight: change(insight) })),
    blind_spots: analysis.blind_spots.map(change),
  };
}

/** Largest analysis in bytes of its JSON text. */
export const MAX_ANALYSIS_BYTES = 64 * 1024;

/** Most entries of a list: with eight responses, 390 texts in all, so that cut texts always fit. */
const MAX_ENTRIES = 30;

/** Longest text of an analysis that is too large, in code points. */
const MAX_TEXT_CHARS = 4000;

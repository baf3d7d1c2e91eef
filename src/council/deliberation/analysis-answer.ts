/** Reads a judge's analysis. It informs later nodes and decides no route, so an unusable entry of a list is left out. */
import type { Analysis } from '../../generated/schemas.js';
import { jsonBytes } from '../../graph/limits.js';
import { isList, isRecord, listOf } from '../../system/untrusted.js';
import { cutAtSentence } from '../cut.js';
import { answerWith, fieldIn, textOf } from '../json-answer.js';
import { letterIn, namesOfResponses } from './letters.js';

/**
 * Reads the object with the five fields of an analysis in an answer (`answerWith`). An entry without text, or about no
 * response that was shown, is left out, and so are other fields. Null if there is no such object, if it lacks one of the
 * fields, or if a field is neither a list nor, for lists of texts, a text.
 *
 * Bounded: each list keeps its first 30 entries. If the JSON is larger than 64 KiB, every text is cut at a sentence to the
 * first of 4000, 2000, 1000, … characters at which it fits.
 */
export function readAnalysis(answer: string, letters: readonly string[]): Analysis | null {
  const object = answerWith(answer, FIELDS);
  if (object === null) return null;
  const consensus = textsIn(fieldIn(object, 'consensus'));
  const contradictions = entriesIn(fieldIn(object, 'contradictions'), (each) => contradictionIn(each, letters));
  const partial = entriesIn(fieldIn(object, 'partial_coverage'), (each) => partialCoverageIn(each, letters));
  const unique = entriesIn(fieldIn(object, 'unique_insights'), (each) => uniqueInsightIn(each, letters));
  const blindSpots = textsIn(fieldIn(object, 'blind_spots'));
  if (consensus === null || contradictions === null || partial === null || unique === null || blindSpots === null) {
    return null;
  }
  const analysis = { consensus, contradictions, partial_coverage: partial, unique_insights: unique };
  return bounded({ ...analysis, blind_spots: blindSpots });
}

const FIELDS = ['consensus', 'contradictions', 'partial_coverage', 'unique_insights', 'blind_spots'];

/** The entries of a list that can be read, or null for anything but a list. */
function entriesIn<Entry>(given: unknown, entryIn: (entry: object) => Entry | null): Entry[] | null {
  if (!isList(given)) return null;
  return given
    .filter(isRecord)
    .flatMap((each) => entryIn(each) ?? [])
    .slice(0, MAX_ENTRIES);
}

/** The texts of a list, or one text, or null for anything else. */
function textsIn(given: unknown): string[] | null {
  if (!isList(given) && typeof given !== 'string') return null;
  const texts = isList(given) ? given : [given];
  return texts.flatMap((each) => someText(each) ?? []).slice(0, MAX_ENTRIES);
}

function contradictionIn(given: object, letters: readonly string[]): Analysis['contradictions'][number] | null {
  const topic = someText(fieldIn(given, 'topic'));
  const stances = listOf(fieldIn(given, 'stances'))
    .filter(isRecord)
    .flatMap((each) => {
      const response = letterIn(fieldIn(each, 'response'), letters);
      const stance = someText(fieldIn(each, 'stance'));
      return response === null || stance === null ? [] : [{ response, stance }];
    });
  return topic === null || stances.length === 0 ? null : { topic, stances: stances.slice(0, letters.length) };
}

function partialCoverageIn(given: object, letters: readonly string[]): Analysis['partial_coverage'][number] | null {
  const point = someText(fieldIn(given, 'point'));
  const named = namesOfResponses(fieldIn(given, 'responses'));
  const responses = named.flatMap((each) => letterIn(each, letters) ?? []);
  return point === null || responses.length === 0 ? null : { responses: [...new Set(responses)], point };
}

function uniqueInsightIn(given: object, letters: readonly string[]): Analysis['unique_insights'][number] | null {
  const response = letterIn(fieldIn(given, 'response'), letters);
  const insight = someText(fieldIn(given, 'insight'));
  return response === null || insight === null ? null : { response, insight };
}

/** A text that is not blank, or null. */
function someText(given: unknown): string | null {
  const text = textOf(given)?.trim() ?? '';
  return text === '' ? null : text;
}

function bounded(analysis: Analysis): Analysis {
  let fitting = analysis;
  for (let chars = MAX_TEXT_CHARS; jsonBytes(fitting) > MAX_ANALYSIS_BYTES; chars = Math.ceil(chars / 2)) {
    fitting = withTexts(analysis, (text) => cutAtSentence(text, chars));
  }
  return fitting;
}

/** An analysis with each text changed; the letters stay. */
export function withTexts(analysis: Analysis, change: (text: string) => string): Analysis {
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

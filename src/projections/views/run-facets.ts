/**
 * The columns for filters and orders of runs, in a narrow separate table, and the full text of runs. Both contain the
 * values in the list: a corrupt run is failed and has no score and no draft. Runs inside the views worker.
 */
import type { DatabaseSyncInstance } from '@photostructure/sqlite';
import { indexTermsOf } from '../../embeddings/words.js';
import type { RunSummary } from '../run-summary.js';
import { durationOf } from '../run-summary.js';
import { outcomeOf } from './run-totals.js';
import { fieldOf } from '../../system/untrusted.js';

/**
 * `key` is the key of the run, in the order of first events. The full text indexes the terms of topic and draft,
 * split by embeddings/words.ts. It stores whether a term occurs, but neither its position (`detail = none`) nor the
 * text.
 */
export const FACETS_SCHEMA = `
  CREATE TABLE facets (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    created_at TEXT NOT NULL,
    blueprint_id TEXT,
    actor TEXT,
    parent TEXT,
    -- The run that started it for a council.
    parent_run TEXT,
    is_trial INTEGER NOT NULL,
    status TEXT NOT NULL,
    -- How a run failed: failed, rejected or cancelled.
    failure TEXT,
    score REAL,
    cost REAL,
    -- In milliseconds.
    duration INTEGER,
    iterations INTEGER,
    waiting_since TEXT,
    -- 1: the full text holds the final draft too.
    has_draft INTEGER NOT NULL
  );
  -- Most lists leave out the runs that councils have started. Ascending, so that a new run is appended to the last page.
  CREATE INDEX facets_created ON facets (created_at, id DESC) WHERE parent_run IS NULL;
  CREATE INDEX facets_status ON facets (status, created_at, parent_run);
  CREATE INDEX facets_failure ON facets (failure, created_at) WHERE parent_run IS NULL AND failure IS NOT NULL;
  CREATE INDEX facets_blueprint ON facets (blueprint_id, created_at) WHERE parent_run IS NULL AND blueprint_id IS NOT NULL;
  CREATE INDEX facets_actor ON facets (actor, created_at) WHERE parent_run IS NULL AND actor IS NOT NULL;
  CREATE INDEX facets_parent ON facets (parent, created_at) WHERE parent_run IS NULL AND parent IS NOT NULL;
  CREATE INDEX facets_built_in ON facets (created_at) WHERE parent_run IS NULL AND blueprint_id IS NULL AND is_trial = 0;
  CREATE INDEX facets_trial ON facets (created_at) WHERE parent_run IS NULL AND is_trial = 1;
  CREATE INDEX facets_score ON facets (score, created_at) WHERE parent_run IS NULL;
  CREATE INDEX facets_cost ON facets (cost, created_at) WHERE parent_run IS NULL;
  CREATE INDEX facets_duration ON facets (duration, created_at) WHERE parent_run IS NULL;
  CREATE INDEX facets_iterations ON facets (iterations, created_at) WHERE parent_run IS NULL;
  CREATE INDEX facets_waiting ON facets (waiting_since, created_at DESC) WHERE waiting_since IS NOT NULL;
  CREATE INDEX facets_parent_run ON facets (parent_run, created_at) WHERE parent_run IS NOT NULL;
  CREATE VIRTUAL TABLE words USING fts5(text, content = '', tokenize = 'ascii', detail = 'none');
  -- A term that is deleted leaves the index at once, and not with a later merge.
  INSERT INTO words (words, rank) VALUES ('secure-delete', 1);
`;

export interface FacetTable {
  /**
   * Stores the changed facets and the changed full text of a run.
   *
   * @param whole the run with its draft, also if it is shown as corrupt
   */
  save(key: number, run: RunSummary, whole: RunSummary): void;
  /** Removes the facets and the full text of a run, which are stored with these texts. */
  remove(key: number, whole: RunSummary): void;
}

export function facetTable(database: DatabaseSyncInstance): FacetTable {
  const find = database.prepare(
    'SELECT status, failure, score, cost, duration, iterations, waiting_since, has_draft FROM facets WHERE key = ?',
  );
  const insert = database.prepare('INSERT INTO facets VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)');
  const update = database.prepare(
    `UPDATE facets SET status = ?, failure = ?, score = ?, cost = ?, duration = ?, iterations = ?, waiting_since = ?,
     has_draft = ? WHERE key = ?`,
  );
  // Each term of a run is added once, because a deletion removes it from one segment of the index alone.
  const add = database.prepare('INSERT INTO words (rowid, text) VALUES (?, ?)');
  const drop = database.prepare("INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)");
  const dropFacets = database.prepare('DELETE FROM facets WHERE key = ?');
  return {
    save(key, run, whole) {
      const shown = shownOf(run);
      const values = Object.values(shown);
      const stored: unknown = find.get(key);
      if (stored === undefined) {
        const { id, createdAt, blueprintId, actor, parent, parentRun, isTrial } = run;
        const parents = [parent, parentRun?.runId ?? null];
        insert.run(key, id, createdAt, blueprintId, actor, ...parents, isTrial ? 1 : 0, ...values);
      } else if (Object.entries(shown).some(([column, value]) => fieldOf(stored, column) !== value)) {
        update.run(...values, key);
      }
      const hadDraft = fieldOf(stored, 'has_draft');
      if (hadDraft === undefined) add.run(key, termsOfTopic(run));
      if (shown.has_draft === 1 && hadDraft !== 1) add.run(key, termsOfDraft(run));
      else if (shown.has_draft === 0 && hadDraft === 1) drop.run(key, termsOfDraft(whole));
    },
    remove(key, whole) {
      const stored: unknown = find.get(key);
      if (stored === undefined) return;
      drop.run(key, termsOfTopic(whole));
      if (fieldOf(stored, 'has_draft') === 1) drop.run(key, termsOfDraft(whole));
      dropFacets.run(key);
    },
  };
}

/** The columns that change while a run goes on, in the order of the table. */
function shownOf(run: RunSummary) {
  const outcome = outcomeOf(run);
  return {
    status: run.status,
    failure: outcome === 'completed' ? null : outcome,
    score: run.criticScore,
    cost: run.usage?.costUsd ?? null,
    duration: durationOf(run),
    iterations: run.iterationCount,
    waiting_since: run.waitingSince,
    has_draft: run.finalDraft === null ? 0 : 1,
  };
}

function termsOfTopic({ inputTopic }: RunSummary): string {
  return [...indexTermsOf(inputTopic)].join(' ');
}

/** Those that the topic lacks. */
function termsOfDraft({ inputTopic, finalDraft }: RunSummary): string {
  const known = indexTermsOf(inputTopic);
  return [...indexTermsOf(finalDraft ?? '')].filter((term) => !known.has(term)).join(' ');
}

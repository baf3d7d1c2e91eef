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
  -- Ascending, so that a new run is appended to the last page.
  CREATE INDEX facets_created ON facets (created_at, id DESC);
  CREATE INDEX facets_status ON facets (status, created_at);
  CREATE INDEX facets_failure ON facets (failure, created_at) WHERE failure IS NOT NULL;
  CREATE INDEX facets_blueprint ON facets (blueprint_id, created_at) WHERE blueprint_id IS NOT NULL;
  CREATE INDEX facets_actor ON facets (actor, created_at) WHERE actor IS NOT NULL;
  CREATE INDEX facets_parent ON facets (parent, created_at) WHERE parent IS NOT NULL;
  CREATE INDEX facets_built_in ON facets (created_at) WHERE blueprint_id IS NULL AND is_trial = 0;
  CREATE INDEX facets_trial ON facets (created_at) WHERE is_trial = 1;
  CREATE INDEX facets_score ON facets (score, created_at);
  CREATE INDEX facets_cost ON facets (cost, created_at);
  CREATE INDEX facets_duration ON facets (duration, created_at);
  CREATE INDEX facets_iterations ON facets (iterations, created_at);
  CREATE INDEX facets_waiting ON facets (waiting_since, created_at DESC) WHERE waiting_since IS NOT NULL;
  CREATE VIRTUAL TABLE words USING
    fts5(text, content = '', contentless_delete = 1, tokenize = 'ascii', detail = 'none');
`;

export interface FacetTable {
  /** Stores the changed facets and the changed full text of a run. */
  save(key: number, run: RunSummary): void;
}

export function facetTable(database: DatabaseSyncInstance): FacetTable {
  const find = database.prepare(
    'SELECT status, failure, score, cost, duration, iterations, waiting_since, has_draft FROM facets WHERE key = ?',
  );
  const insert = database.prepare('INSERT INTO facets VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)');
  const update = database.prepare(
    `UPDATE facets SET status = ?, failure = ?, score = ?, cost = ?, duration = ?, iterations = ?, waiting_since = ?,
     has_draft = ? WHERE key = ?`,
  );
  const index = database.prepare('INSERT OR REPLACE INTO words (rowid, text) VALUES (?, ?)');
  return {
    save(key, run) {
      const shown = shownOf(run);
      const values = Object.values(shown);
      const stored: unknown = find.get(key);
      if (stored === undefined) {
        const { id, createdAt, blueprintId, actor, parent, isTrial } = run;
        insert.run(key, id, createdAt, blueprintId, actor, parent, isTrial ? 1 : 0, ...values);
      } else if (Object.entries(shown).some(([column, value]) => fieldOf(stored, column) !== value)) {
        update.run(...values, key);
      }
      if (fieldOf(stored, 'has_draft') !== shown.has_draft) index.run(key, termsToFind(run));
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

function termsToFind({ inputTopic, finalDraft }: RunSummary): string {
  return [...indexTermsOf(finalDraft === null ? inputTopic : `${inputTopic}\n${finalDraft}`)].join(' ');
}

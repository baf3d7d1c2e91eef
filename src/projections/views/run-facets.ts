/**
 * What runs are filtered and ordered by, in a narrow table beside the runs, with their full text. It says what a list
 * shows: of a damaged run that it failed, and nothing more. Runs inside the views worker.
 */
import type { DatabaseSyncInstance, StatementSyncInstance } from '@photostructure/sqlite';
import { indexTermsOf } from '../../embeddings/words.js';
import type { RunSummary } from '../run-summary.js';
import { fieldOf } from '../../system/untrusted.js';
import { textOf } from './stored-row.js';

/**
 * `key` is that of the run, in the order of first events. The text has words alone, as embeddings/words.ts splits them;
 * only whether a word is there counts, not where.
 */
export const FACETS_SCHEMA = `
  CREATE TABLE facets (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    created_at TEXT NOT NULL,
    status TEXT NOT NULL,
    blueprint_id TEXT,
    actor TEXT,
    parent TEXT,
    score REAL,
    waiting_since TEXT,
    -- 1: the full text holds the final draft too.
    has_draft INTEGER NOT NULL
  );
  CREATE INDEX facets_newest ON facets (created_at DESC, id);
  CREATE INDEX facets_status ON facets (status, created_at DESC);
  CREATE INDEX facets_blueprint ON facets (blueprint_id, created_at DESC) WHERE blueprint_id IS NOT NULL;
  CREATE INDEX facets_actor ON facets (actor, created_at DESC) WHERE actor IS NOT NULL;
  CREATE INDEX facets_parent ON facets (parent, created_at DESC) WHERE parent IS NOT NULL;
  CREATE INDEX facets_score ON facets (score, created_at);
  CREATE INDEX facets_waiting ON facets (waiting_since, created_at DESC) WHERE waiting_since IS NOT NULL;
  CREATE VIRTUAL TABLE words USING
    fts5(text, content = '', contentless_delete = 1, tokenize = 'ascii', detail = 'none');
`;

const COLUMNS = [
  ...(['id', 'created_at', 'status', 'blueprint_id', 'actor', 'parent'] as const),
  ...(['score', 'waiting_since', 'has_draft'] as const),
];

type Facets = Readonly<Record<(typeof COLUMNS)[number], string | number | null>>;

function facetsOf(run: RunSummary, isDamaged: boolean): Facets {
  return {
    id: run.id,
    created_at: run.createdAt,
    status: isDamaged ? 'failed' : run.status,
    blueprint_id: run.blueprintId,
    actor: run.actor,
    parent: run.parent,
    score: isDamaged ? null : run.criticScore,
    waiting_since: isDamaged ? null : run.waitingSince,
    has_draft: isDamaged || run.finalDraft === null ? 0 : 1,
  };
}

export interface FacetTable {
  /** Stores what a run is found by; touches only what has changed. */
  save(key: number, run: RunSummary, isDamaged: boolean): void;
  /**
   * By how much the order of keys is not that of the times of the start, in milliseconds: no run began more than this
   * before one with a smaller key. Clocks of instances differ, and appends overtake each other.
   */
  disorderMs(): number;
}

export function facetTable(database: DatabaseSyncInstance): FacetTable {
  const find = database.prepare(`SELECT ${COLUMNS.join(', ')} FROM facets WHERE key = ?`);
  const insert = database.prepare(`INSERT INTO facets VALUES (?${', ?'.repeat(COLUMNS.length)})`);
  const index = database.prepare('INSERT OR REPLACE INTO words (rowid, text) VALUES (?, ?)');
  const saveDisorder = database.prepare(
    `INSERT INTO meta VALUES ('disorder', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value`,
  );
  const updates = new Map<string, StatementSyncInstance>();
  const savedDisorder: unknown = database.prepare(`SELECT value FROM meta WHERE key = 'disorder'`).get();
  let disorder = Number(textOf(savedDisorder, 'value') ?? 0);
  let newest = textOf(database.prepare('SELECT max(created_at) AS newest FROM facets').get(), 'newest');

  function noteOrder(createdAt: string): void {
    if (newest === null || createdAt >= newest) {
      newest = createdAt;
      return;
    }
    const backMs = Date.parse(newest) - Date.parse(createdAt);
    if (backMs <= disorder) return;
    disorder = backMs;
    saveDisorder.run(String(disorder));
  }

  /** An index is written only for columns that a statement names. */
  function update(key: number, facets: Facets, changed: readonly (keyof Facets)[]): void {
    const columns = changed.map((column) => `${column} = ?`).join(', ');
    const statement = updates.get(columns) ?? database.prepare(`UPDATE facets SET ${columns} WHERE key = ?`);
    updates.set(columns, statement);
    statement.run(...changed.map((column) => facets[column]), key);
  }

  return {
    save(key, run, isDamaged) {
      const facets = facetsOf(run, isDamaged);
      const known: unknown = find.get(key);
      if (known === undefined) {
        insert.run(key, ...COLUMNS.map((column) => facets[column]));
        noteOrder(run.createdAt);
      } else {
        const changed = COLUMNS.filter((column) => fieldOf(known, column) !== facets[column]);
        if (changed.length > 0) update(key, facets, changed);
      }
      if (fieldOf(known, 'has_draft') !== facets.has_draft) index.run(key, textToFind(run, facets));
    },
    disorderMs: () => disorder,
  };
}

function textToFind({ inputTopic, finalDraft }: RunSummary, { has_draft: hasDraft }: Facets): string {
  const text = hasDraft === 1 && finalDraft !== null ? `${inputTopic}\n${finalDraft}` : inputTopic;
  return [...indexTermsOf(text)].join(' ');
}

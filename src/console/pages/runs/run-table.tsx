/** The list of runs as a table with only visible lines; on a phone, each line is a card. */
import type { Signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { lengthText } from '../../record/durations.js';
import { withoutMarks } from '../../record/plain-draft.js';
import { excerpt } from '../../record/counts.js';
import { outcomeOf } from '../../record/outcome.js';
import type { ExcerptPart, HistoryQuery } from '../../../generated/schemas.js';
import { pageUrl, query, setQuery } from '../../shell/router.js';
import { Badge, Status } from '../../ui/controls.js';
import { Loading } from '../../ui/states.js';
import { Ago, Since } from '../../ui/time.js';
import { usePageWindow } from '../../ui/windowed.js';
import { listIn } from './filters.js';
import type { RunList } from './run-list.js';
import type { RunRow } from './run-row.js';
import { isOver, usageTexts } from './run-row.js';
import { MOST_CHOSEN } from './export-button.js';

/** Height of a line before the first render, in pixels. */
const LINE_PX = 40;
/** Longest topic, in characters. */
const TOPIC_CHARS = 240;
/** Loads the next page at this number of lines before the end. */
const READ_ON = 40;

export interface RunTableProps {
  readonly list: RunList;
  /** Names of blueprints, by id. */
  readonly names: ReadonlyMap<string, string>;
  /** Whether the service has keys, so that runs have an actor. */
  readonly hasActors: boolean;
  /** Ids of the selected runs. */
  readonly chosen: Signal<readonly string[]>;
}

export function RunTable({ list, names, hasActors, chosen }: RunTableProps) {
  const rows = list.rows.value;
  const state = list.state.value;
  const { ref, from, to, beforePx, afterPx, isTop } = usePageWindow<HTMLTableSectionElement>(rows.length, LINE_PX);
  useEffect(() => {
    list.setVisibleRows({ from, to, isTop });
    if (to > rows.length - READ_ON) list.more();
  }, [list, from, to, isTop, rows.length, state]);
  return (
    <>
      <table
        class={query.value.has('q') ? 'table runs searched' : 'table runs'}
        role="table"
        aria-rowcount={(list.total.value ?? rows.length) + 1}
        aria-label="Runs"
      >
        <thead role="rowgroup">
          <tr role="row" aria-rowindex={1}>
            <th role="columnheader" class="choose">
              <ChooseAll rows={rows} chosen={chosen} />
            </th>
            {COLUMNS.filter(({ name }) => hasActors || name !== 'By').map((column) => (
              <Head key={column.name} column={column} />
            ))}
          </tr>
        </thead>
        <tbody ref={ref} role="rowgroup">
          <Space px={beforePx} />
          {rows.slice(from, to).map((row, at) => (
            <Line
              key={row.peek().id}
              index={from + at + 2}
              row={row}
              names={names}
              hasActors={hasActors}
              chosen={chosen}
            />
          ))}
          <Space px={afterPx} />
        </tbody>
      </table>
      {state === 'loading' && <Loading what="runs" />}
    </>
  );
}

interface Column {
  readonly name: string;
  readonly look: string;
  /** The orders of a head that sorts: the first click sorts by the first. */
  readonly sorts?: readonly [HistoryQuery['sort'], HistoryQuery['sort']];
}

const COLUMNS: readonly Column[] = [
  { name: 'Topic', look: 'topic' },
  { name: 'Status', look: 'status' },
  { name: 'Council', look: 'council' },
  { name: 'Score', look: 'score', sorts: ['-score', 'score'] },
  { name: 'Drafts', look: 'iterations', sorts: ['-iterations', 'iterations'] },
  { name: 'Tokens, cost', look: 'tokens', sorts: ['-cost', 'cost'] },
  { name: 'By', look: 'started-by' },
  { name: 'Date', look: 'started', sorts: ['-created_at', 'created_at'] },
  { name: 'Duration', look: 'duration', sorts: ['-duration', 'duration'] },
];

function Head({ column: { name, look, sorts } }: { readonly column: Column }) {
  if (sorts === undefined) {
    return (
      <th role="columnheader" class={look}>
        {name}
      </th>
    );
  }
  const [first, second] = sorts;
  const sort = query.value.get('sort') ?? '-created_at';
  const order = sort === first ? 'descending' : sort === second ? 'ascending' : 'none';
  const next = sort === first ? second : first;
  return (
    <th role="columnheader" class={look} aria-sort={order}>
      <button type="button" onClick={() => setQuery({ sort: next === '-created_at' ? null : next })}>
        {name}
        <span aria-hidden="true">{{ descending: ' ↓', ascending: ' ↑', none: '' }[order]}</span>
      </button>
    </th>
  );
}

/** Selects all loaded runs, up to the most of a selection. */
function ChooseAll({ rows, chosen }: Pick<RunTableProps, 'chosen'> & { readonly rows: RunList['rows']['value'] }) {
  const all = rows.slice(0, MOST_CHOSEN).map((row) => row.peek().id);
  const isAll = all.length > 0 && all.every((id) => chosen.value.includes(id));
  return (
    <label>
      <input
        type="checkbox"
        checked={isAll}
        aria-label="Select all shown"
        onChange={() => (chosen.value = isAll ? [] : all)}
      />
    </label>
  );
}

function Excerpt({ parts }: { readonly parts: readonly ExcerptPart[] }) {
  return (
    <span class="excerpt clip">
      {parts.map(({ text, found }, at) => (found ? <mark key={at}>{text}</mark> : text))}
    </span>
  );
}

/** Space for lines that are not rendered. */
function Space({ px }: { readonly px: number }) {
  return px === 0 ? null : <tr aria-hidden="true" class="space" style={{ height: `${px}px` }} />;
}

interface LineProps extends Pick<RunTableProps, 'names' | 'hasActors' | 'chosen'> {
  readonly row: Signal<RunRow>;
  readonly index: number;
}

function Line({ row, index, names, hasActors, chosen }: LineProps) {
  const run = row.value;
  const { id, topic, blueprintId, score, iterations } = run;
  const words = excerpt(withoutMarks(topic), TOPIC_CHARS);
  const isChosen = chosen.value.includes(id);
  const council = blueprintId === null ? 'Built-in' : (names.get(blueprintId) ?? blueprintId);
  const choose = (): void => {
    const others = chosen.value.filter((each) => each !== id);
    chosen.value = isChosen ? others : [...others, id].slice(-MOST_CHOSEN);
  };
  return (
    <tr role="row" data-line aria-rowindex={index} aria-selected={isChosen}>
      <td role="cell" class="choose">
        <label>
          <input type="checkbox" checked={isChosen} aria-label={`Select: ${words}`} onChange={choose} />
        </label>
      </td>
      <td role="cell" class="topic">
        <a class="name clip" href={pageUrl(['runs', id], { list: listIn(query.value) })} title={topic}>
          {words}
        </a>
        {run.isTrial && <Badge flat>Test</Badge>}
        {run.excerpt !== null && <Excerpt parts={run.excerpt} />}
        <Reason run={run} look="reason" />
      </td>
      <td role="cell" class="status">
        <Status status={run.status} error={run.error} />
        <Note run={run} />
      </td>
      <td role="cell" class="council">
        <span class="clip" title={council}>
          {council}
        </span>
        {run.isGodMode && <Badge flat>God Mode</Badge>}
      </td>
      <td role="cell" class="score numeric" data-label="Score">
        {score ?? '–'}
      </td>
      <td role="cell" class="iterations numeric" data-label="Drafts">
        {iterations ?? '–'}
      </td>
      <td role="cell" class="tokens numeric">
        <Usage run={run} />
      </td>
      {hasActors && (
        <td role="cell" class="started-by clip" data-label="By" title={run.actor ?? undefined}>
          {run.actor ?? '–'}
        </td>
      )}
      <td role="cell" class="started">
        {run.createdAt === null ? '–' : <Ago at={run.createdAt} />}
      </td>
      <td role="cell" class="duration numeric" data-label="Took">
        <Duration run={run} />
      </td>
    </tr>
  );
}

function Duration({ run }: { readonly run: RunRow }) {
  const { createdAt, durationMs } = run;
  if (durationMs !== null) return <>{lengthText(durationMs)}</>;
  return isOver(run) || createdAt === null ? <>–</> : <Since at={createdAt} />;
}

/** How long a run waits. On a phone also why it failed, because the topic takes two lines there. */
function Note({ run }: { readonly run: RunRow }) {
  if (run.waitingSince === null) return <Reason run={run} look="note" />;
  return (
    <span class="note">
      for <Since at={run.waitingSince} />
    </span>
  );
}

function Reason({ run: { status, error }, look }: { readonly run: RunRow; readonly look: 'reason' | 'note' }) {
  if (error === null || outcomeOf(status, error) !== 'failed') return null;
  return (
    <span class={`${look} why clip`} title={error}>
      {error}
    </span>
  );
}

function Usage({ run }: { readonly run: RunRow }) {
  const [first, cost] = usageTexts(run);
  if (cost === undefined) return <>{first}</>;
  return (
    <>
      <span>{first}</span> <span class="cost">{cost}</span>
    </>
  );
}

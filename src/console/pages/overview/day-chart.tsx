/** A bar for each day, in parts by outcome, with a table of the same numbers. */
import { useMemo } from 'preact/hooks';
import type { Overview, OverviewDay } from '../../../generated/schemas.js';
import { lengthText } from '../../record/durations.js';
import { Table } from '../../ui/table.js';

/** From the bottom of a bar to its top. */
const OUTCOMES = ['completed', 'rejected', 'cancelled', 'failed'] as const;
const DAY_MS = 86_400_000;
const [WIDTH, HEIGHT] = [1000, 160];
const WIDEST = 24;

export function DayChart({ figures: { days, from, to } }: { readonly figures: Overview }) {
  const all = useMemo(() => everyDay(days, from, to), [days]);
  const most = Math.max(1, ...all.map((day) => (day === null ? 0 : runsOf(day))));
  const step = WIDTH / all.length;
  return (
    <figure class="day-chart">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
        {all.map((day, at) => day !== null && <Bar key={day.day} {...{ day, most, step }} x={at * step} />)}
      </svg>
      <figcaption class="row spread small muted">
        <span>{dayText(from)}</span>
        <span>{dayText(to)}</span>
        <span class="row keys">
          {OUTCOMES.map((outcome) => (
            <span key={outcome} class={`key ${outcome}`}>
              {outcome}
            </span>
          ))}
          <span>highest bar: {most}</span>
        </span>
      </figcaption>
      <details class="more">
        <summary>Show as a table</summary>
        <DayTable days={days} />
      </details>
    </figure>
  );
}

interface BarProps {
  readonly day: OverviewDay;
  readonly most: number;
  readonly step: number;
  readonly x: number;
}

function Bar({ day, most, step, x }: BarProps) {
  const width = Math.min(step * 0.7, WIDEST);
  let y = HEIGHT;
  return (
    <g>
      <title>{`${day.day}: ${OUTCOMES.map((outcome) => `${day.outcomes[outcome]} ${outcome}`).join(', ')}`}</title>
      {OUTCOMES.map((outcome) => {
        const height = (day.outcomes[outcome] / most) * HEIGHT;
        y -= height;
        return <rect key={outcome} class={outcome} {...{ y, height }} x={x + (step - width) / 2} width={width} />;
      })}
    </g>
  );
}

const NUMBERS = [...OUTCOMES, 'Median duration', '95 % within'];

function DayTable({ days }: { readonly days: readonly OverviewDay[] }) {
  return (
    <div class="wide-table" role="region" aria-label="Runs by day as a table" tabIndex={0}>
      <Table heads={['Day', ...NUMBERS]} numbers={NUMBERS}>
        {days.map(({ day, outcomes, duration }) => (
          <tr key={day}>
            <th scope="row">{day}</th>
            {OUTCOMES.map((outcome) => (
              <td key={outcome} class="numeric">
                {outcomes[outcome]}
              </td>
            ))}
            {[duration.median_ms, duration.p95_ms].map((ms, at) => (
              <td key={at} class="numeric">
                {ms === null ? '–' : lengthText(ms)}
              </td>
            ))}
          </tr>
        ))}
      </Table>
    </div>
  );
}

function runsOf({ outcomes }: OverviewDay): number {
  return OUTCOMES.reduce((sum, outcome) => sum + outcomes[outcome], 0);
}

/** Days are in UTC. */
const DAY = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeZone: 'UTC' });

function dayText(day: string): string {
  return DAY.format(Date.parse(day));
}

/** Every day from the first to the last; null where no run ended. */
function everyDay(days: readonly OverviewDay[], from: string, to: string): readonly (OverviewDay | null)[] {
  const byDay = new Map(days.map((day) => [day.day, day]));
  const count = Math.round((Date.parse(to) - Date.parse(from)) / DAY_MS) + 1;
  return Array.from(
    { length: count },
    (_, at) => byDay.get(new Date(Date.parse(from) + at * DAY_MS).toISOString().slice(0, 10)) ?? null,
  );
}

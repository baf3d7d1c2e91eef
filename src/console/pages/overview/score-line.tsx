/** The mean score of a council on each day, as a line from 0 to 10, with the numbers for assistive technology. */
import type { OverviewCouncilDay } from '../../../generated/schemas.js';

const [WIDTH, HEIGHT, MARGIN] = [160, 32, 3];

interface ScoreLineProps {
  readonly days: readonly OverviewCouncilDay[];
  readonly from: string;
  readonly to: string;
}

export function ScoreLine({ days, from, to }: ScoreLineProps) {
  const scored = days.flatMap(({ day, score }) => (score === null ? [] : [{ day, score }]));
  if (scored.length === 0) return <span class="muted small">no scores</span>;
  const [first, last] = [Date.parse(from), Date.parse(to)];
  const points = scored.map(({ day, score }) => ({
    x: MARGIN + (WIDTH - 2 * MARGIN) * (last === first ? 0.5 : (Date.parse(day) - first) / (last - first)),
    y: MARGIN + (HEIGHT - 2 * MARGIN) * (1 - score / 10),
  }));
  const text = scored.map(({ day, score }) => `${day}: ${score.toFixed(1)}`).join(', ');
  return (
    <svg class="score-line" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`Scores by day: ${text}`}>
      <title>{text}</title>
      <polyline points={points.map(({ x, y }) => `${x},${y}`).join(' ')} />
      {points.map(({ x, y }) => (
        <circle key={x} cx={x} cy={y} r={2} />
      ))}
    </svg>
  );
}

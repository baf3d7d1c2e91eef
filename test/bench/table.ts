/** Figures as a Markdown table. */
import type { Figure, Target } from './figure.js';
import { isMet } from './figure.js';

export function tableOf(figures: readonly Figure[]): string {
  const rows = figures.map((each) => [each.name, measuredIn(each), rangeIn(each), targetIn(each), verdictOn(each)]);
  const head = [
    ['Figure', 'Measured', 'Lowest to highest', 'Target', 'Met'],
    [':---', '---:', '---:', '---:', ':---'],
  ];
  return [...head, ...rows].map((cells) => `| ${cells.map(escaped).join(' | ')} |`).join('\n');
}

function measuredIn(of: Figure): string {
  if (of.kind === 'unmeasured') return `not measured: ${of.reason}`;
  return withUnit(of.spread.median, of.unit);
}

function rangeIn(of: Figure): string {
  if (of.kind === 'unmeasured' || of.spread.count < 2) return '';
  return `${rounded(of.spread.lowest)} to ${withUnit(of.spread.highest, of.unit)} (${of.spread.count})`;
}

function targetIn({ target, unit }: Figure): string {
  return target === null ? '' : boundOf(target, unit);
}

function boundOf(target: Target, unit: string): string {
  if ('atMost' in target) return `≤ ${withUnit(target.atMost, unit)}`;
  return `≥ ${withUnit(target.atLeast, unit)}`;
}

function verdictOn(of: Figure): string {
  const met = isMet(of);
  if (met === null) return '';
  return met ? 'yes' : '**no**';
}

function withUnit(value: number, unit: string): string {
  return unit === '' ? rounded(value) : `${rounded(value)} ${unit}`;
}

/** Three significant digits, and no fraction from 100 on. */
function rounded(value: number): string {
  const digits = Math.abs(value) < 100 ? { maximumSignificantDigits: 3 } : { maximumFractionDigits: 0 };
  return value.toLocaleString('en-US', digits);
}

function escaped(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ');
}

/** Parses times in a query: RFC 3339, or a day in UTC. */
import { isCalendarDay } from '../system/calendar-day.js';

/** The rule that a text breaks which is no time. */
export const NO_TIMESTAMP = { msg: 'Input should be a time as RFC 3339 has it, or a day', type: 'datetime_parsing' };

const DAY = /^\d{4}-\d\d-\d\d$/;
/** A plus sign that was not encoded comes as a space. */
const MOMENT = /^(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(\.\d+)?(?:[Zz]|([+\- ])(\d\d:\d\d))$/;

/** A time as ISO 8601 in UTC with milliseconds; of a day its first or last one. Null: it is no time. */
export function timestampIn(text: string, ofDay: 'first' | 'last'): string | null {
  if (DAY.test(text)) return isoOf(text.slice(0, 10), ofDay === 'first' ? '00:00:00.000' : '23:59:59.999', 'Z');
  const [, day, time, fraction = '', sign, shift] = MOMENT.exec(text) ?? [];
  if (day === undefined || time === undefined) return null;
  const zone = shift === undefined ? 'Z' : `${sign === '-' ? '-' : '+'}${shift}`;
  return isoOf(day, time + fraction.slice(0, 4), zone);
}

/** Null for a day that no month has, or a year of more than four digits in UTC. */
function isoOf(day: string, time: string, zone: string): string | null {
  if (!isCalendarDay(day)) return null;
  const at = new Date(`${day}T${time}${zone}`);
  if (Number.isNaN(at.getTime())) return null;
  const iso = at.toISOString();
  return /^\d{4}-/.test(iso) ? iso : null;
}

/** Parses times in a query: RFC 3339, or a day in UTC. */
import { isCalendarDay } from '../system/calendar-day.js';

/** The broken rule of a text that is no time. */
export const NO_TIMESTAMP = {
  msg: 'Input should be a time in the form of RFC 3339, or a day',
  type: 'datetime_parsing',
};

const DAY = /^\d{4}-\d\d-\d\d$/;
/** An unencoded plus sign arrives as a space. */
const TIMESTAMP = /^(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(\.\d+)?(?:[Zz]|([+\- ])(\d\d:\d\d))$/;

/**
 * The time as ISO 8601 in UTC with milliseconds, or null if the text is not a time. A day gives its first or last
 * millisecond.
 */
export function timestampIn(text: string, ofDay: 'first' | 'last'): string | null {
  if (DAY.test(text)) return isoOf(text.slice(0, 10), ofDay === 'first' ? '00:00:00.000' : '23:59:59.999', 'Z');
  const [, day, time, fraction = '', sign, shift] = TIMESTAMP.exec(text) ?? [];
  if (day === undefined || time === undefined) return null;
  const zone = shift === undefined ? 'Z' : `${sign === '-' ? '-' : '+'}${shift}`;
  return isoOf(day, time + fraction.slice(0, 4), zone);
}

/** Returns null for a day that its month does not have, or a year of more than four digits in UTC. */
function isoOf(day: string, time: string, zone: string): string | null {
  if (!isCalendarDay(day)) return null;
  const at = new Date(`${day}T${time}${zone}`);
  if (Number.isNaN(at.getTime())) return null;
  const iso = at.toISOString();
  return /^\d{4}-/.test(iso) ? iso : null;
}

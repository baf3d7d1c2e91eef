/** Whether a text such as `2026-02-28` is a day of the calendar (ISO 8601). Date alone accepts the 30th of February. */
export function isCalendarDay(text: string): boolean {
  const day = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text);
}

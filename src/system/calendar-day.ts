/** Days as ISO 8601 writes them. */

/** Whether a text such as `2026-02-28` is a day that there is: Date takes the 30th of February for one of March. */
export function isCalendarDay(text: string): boolean {
  const day = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text);
}

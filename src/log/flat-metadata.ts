/** An event's metadata as it is read: flat texts. */

/** Damaged metadata, or another program's, is read as none: the event then has no hash, and the chain names it. */
export function flatMetadata(json: string): Readonly<Record<string, string>> {
  try {
    const metadata: unknown = JSON.parse(json);
    return isFlat(metadata) ? metadata : {};
  } catch {
    return {};
  }
}

function isFlat(metadata: unknown): metadata is Readonly<Record<string, string>> {
  if (typeof metadata !== 'object' || metadata === null) return false;
  for (const name in metadata) if (typeof (metadata as Record<string, unknown>)[name] !== 'string') return false;
  return true;
}

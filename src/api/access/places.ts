/** Places for open streams or sockets of one kind, shared between keys: no key takes them all. */

export interface Places {
  /**
   * Takes a place for a caller. Returns a function that frees it, whose further calls have no effect, or null if there is
   * none for this caller.
   *
   * @param actor name of the key, or null without keys
   */
  take(actor: string | null): (() => void) | null;
}

/**
 * `max` places. A key gets another one only while more are free than it holds: so one key holds at most half of them, and
 * the last one is left for a key that holds none. Callers without a key share all places.
 */
export function placesFor(max: number): Places {
  const held = new Map<string | null, number>();
  let free = max;
  return {
    take(actor) {
      const own = held.get(actor) ?? 0;
      if (free <= (actor === null ? 0 : own)) return null;
      free -= 1;
      held.set(actor, own + 1);
      let isHeld = true;
      return () => {
        if (!isHeld) return;
        isHeld = false;
        free += 1;
        const left = (held.get(actor) ?? 1) - 1;
        if (left === 0) held.delete(actor);
        else held.set(actor, left);
      };
    },
  };
}

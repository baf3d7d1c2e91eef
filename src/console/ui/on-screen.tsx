/** Says when a place of the page is first on the screen, which it is not in a hidden tab. */
import { useEffect, useRef } from 'preact/hooks';

/** @param of name of what is shown at this place; with another name, the place is watched again */
export function OnScreen({ of, onSeen }: { readonly of: string; readonly onSeen: () => void }) {
  const place = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    const { current } = place;
    if (current === null) return undefined;
    const watch = new IntersectionObserver((found) => {
      if (!found.some(({ isIntersecting }) => isIntersecting)) return;
      watch.disconnect();
      onSeen();
    });
    watch.observe(current);
    return () => watch.disconnect();
  }, [of]);
  return <span ref={place} aria-hidden="true" />;
}

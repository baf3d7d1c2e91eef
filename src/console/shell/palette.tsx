/** Ctrl K: finds runs, councils and documents, and goes to pages. */
import { useSignal } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { excerpt } from '../record/counts.js';
import { Dialog } from '../ui/dialog.js';
import type { IconName } from '../ui/icon.js';
import { Icon } from '../ui/icon.js';
import { errorText } from '../ui/states.js';
import { council } from './council.js';
import { navigate, pageUrl } from './router.js';
import { may } from './session.js';

interface Entry {
  readonly icon: IconName;
  readonly text: string;
  /** What it is, in a word or two. */
  readonly kind: string;
  readonly url: string;
}

/** Most entries of a kind. */
const MOST = 6;
const TYPING_MS = 150;

export function Palette({ onClose }: { readonly onClose: () => void }) {
  const typed = useSignal('');
  const chosen = useSignal(0);
  const words = typed.value.trim();
  const { entries, of, fault } = useFound(words);
  /** Whether the user pressed Enter before what they typed was searched. */
  const isHasty = useRef(false);
  useEffect(() => {
    chosen.value = 0;
    if (isHasty.current && of === words) go(entries[0]);
    isHasty.current = false;
  }, [entries]);
  const go = (entry: Entry | undefined): void => {
    if (entry === undefined) return;
    onClose();
    navigate(entry.url);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === 'Enter' && of !== words) isHasty.current = true;
    else if (event.key === 'Enter') go(entries[chosen.value]);
    else if (step === undefined || entries.length === 0) return;
    else chosen.value = (chosen.value + step + entries.length) % entries.length;
    event.preventDefault();
  };
  return (
    <Dialog title="Go to" onClose={onClose}>
      <input
        class="input"
        type="text"
        role="combobox"
        aria-label="Search runs, councils, documents and pages"
        aria-expanded="true"
        aria-controls="palette-entries"
        aria-activedescendant={entries.length === 0 ? undefined : `palette-${chosen.value}`}
        placeholder="Search runs, councils, documents and pages"
        value={typed.value}
        onInput={(event) => (typed.value = event.currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      {fault !== null && (
        <p class="fault" role="alert">
          {fault}
        </p>
      )}
      <ul id="palette-entries" class="palette" role="listbox" aria-label="Results">
        {entries.map((entry, at) => (
          <Option key={entry.url} {...{ entry, at }} isChosen={at === chosen.value} onChoose={() => go(entry)} />
        ))}
      </ul>
      {entries.length === 0 && words !== '' && (
        <p class="muted" role="status">
          Nothing found
        </p>
      )}
    </Dialog>
  );
}

interface Found {
  readonly entries: readonly Entry[];
  /** The words that have found them, or null before the first search. */
  readonly of: string | null;
}

/** What the words find, and the error of a search that failed. */
function useFound(words: string): Found & { readonly fault: string | null } {
  const found = useSignal<Found>({ entries: [], of: null });
  const fault = useSignal<string | null>(null);
  const named = useMemo(namedEntries, []);
  useEffect(() => {
    const abort = new AbortController();
    async function find(): Promise<void> {
      try {
        found.value = { entries: await entriesFor(words, named, abort.signal), of: words };
        fault.value = null;
      } catch (error) {
        if (!abort.signal.aborted) fault.value = errorText(error);
      }
    }
    const timer = window.setTimeout(() => void find(), words === '' ? 0 : TYPING_MS);
    return () => {
      window.clearTimeout(timer);
      abort.abort();
    };
  }, [words]);
  return { ...found.value, fault: fault.value };
}

interface OptionProps {
  readonly entry: Entry;
  readonly at: number;
  readonly isChosen: boolean;
  readonly onChoose: () => void;
}

function Option({ entry: { icon, text, kind }, at, isChosen, onChoose }: OptionProps) {
  const element = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (isChosen) element.current?.scrollIntoView({ block: 'nearest' });
  }, [isChosen]);
  return (
    <li ref={element} id={`palette-${at}`} role="option" aria-selected={isChosen} onClick={onChoose}>
      <Icon name={icon} />
      <span class="grow clip">{text}</span>
      <span class="muted small">{kind}</span>
    </li>
  );
}

function pageEntries(): readonly Entry[] {
  return [
    ...(may('run')
      ? [{ icon: 'runs', text: 'Start a run', kind: 'action', url: pageUrl([], { start: 1 }) } as const]
      : []),
    { icon: 'runs', text: 'Runs', kind: 'page', url: pageUrl([]) },
    { icon: 'inbox', text: 'Inbox', kind: 'page', url: pageUrl(['inbox']) },
    { icon: 'councils', text: 'Councils', kind: 'page', url: pageUrl(['blueprints']) },
    { icon: 'documents', text: 'Documents', kind: 'page', url: pageUrl(['documents']) },
    { icon: 'overview', text: 'Overview', kind: 'page', url: pageUrl(['overview']) },
    { icon: 'models', text: 'Models', kind: 'page', url: pageUrl(['models']) },
    { icon: 'settings', text: 'Settings', kind: 'page', url: pageUrl(['settings']) },
  ];
}

/** Councils and documents, whose names are searched here: loaded once, when the palette opens. */
async function namedEntries(): Promise<readonly Entry[]> {
  const entries: Entry[] = [];
  for await (const { id, name } of council.blueprints.list()) {
    entries.push({ icon: 'councils', text: name, kind: 'council', url: pageUrl(['blueprints', id]) });
  }
  for await (const { id, filename } of council.documents.list()) {
    entries.push({ icon: 'documents', text: filename, kind: 'document', url: pageUrl(['documents', id]) });
  }
  return entries;
}

async function entriesFor(
  words: string,
  named: Promise<readonly Entry[]>,
  signal: AbortSignal,
): Promise<readonly Entry[]> {
  const matches = ({ text }: Entry): boolean => text.toLowerCase().includes(words.toLowerCase());
  const pages = pageEntries().filter(matches);
  const [runs, others] = await Promise.all([runEntries(words, signal), words === '' ? [] : named]);
  const matching = others.filter(matches);
  const councils = matching.filter(({ icon }) => icon === 'councils').slice(0, MOST);
  const documents = matching.filter(({ icon }) => icon === 'documents').slice(0, MOST);
  return [...pages, ...councils, ...documents, ...runs];
}

/** Runs that contain the words, the last of which may be unfinished; without words the newest. */
async function runEntries(words: string, signal: AbortSignal): Promise<readonly Entry[]> {
  const filters = { ...(words !== '' && { q: words.replace(/[\p{L}\p{N}]$/u, '$&*') }), limit: MOST, signal };
  for await (const page of council.runs.list(filters).pages()) {
    return page.map(({ id, input_topic: topic }) => ({
      icon: 'runs',
      kind: 'run',
      text: excerpt(topic, 80),
      url: pageUrl(['runs', id]),
    }));
  }
  return [];
}

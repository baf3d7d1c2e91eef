/** The frame of every page: who is looking, where to go, and the page itself. */
import type { ComponentType } from 'preact';
import { useSignal } from '@preact/signals';
import { BlueprintPage } from '../pages/blueprint/page.js';
import { BlueprintsPage } from '../pages/blueprints/page.js';
import { ComparePage } from '../pages/compare/page.js';
import { DocumentsPage } from '../pages/documents/page.js';
import { InboxPage } from '../pages/inbox/page.js';
import { RunPage } from '../pages/run/page.js';
import { RunsPage } from '../pages/runs/page.js';
import { Button, TextBox } from '../ui/controls.js';
import { Away, Loading, tellError } from '../ui/states.js';
import { waiting } from './council.js';
import { isGuarded, pageUrl, path } from './router.js';
import { actor, session, signIn, signOut } from './session.js';
import { Toasts, toastError } from './toasts.js';

/** A page of the console. It has one `main` and in it one `h1`. */
interface Page {
  /** Where it stands in the navigation. */
  readonly place: string;
  readonly Shown: ComponentType;
}

const RUNS: Page = { place: 'Runs', Shown: RunsPage };
const DOCUMENTS: Page = { place: 'Documents', Shown: DocumentsPage };

/** By the shape of the path: `*` stands for an id. */
const PAGES: Readonly<Record<string, Page>> = {
  '': RUNS,
  // What is left of a run's address without its id.
  runs: RUNS,
  'runs/*': { place: 'Runs', Shown: RunPage },
  compare: { place: 'Runs', Shown: ComparePage },
  inbox: { place: 'Inbox', Shown: InboxPage },
  blueprints: { place: 'Blueprints', Shown: BlueprintsPage },
  'blueprints/*': { place: 'Blueprints', Shown: BlueprintPage },
  documents: DOCUMENTS,
  'documents/*': DOCUMENTS,
};

const NAVIGATION = [
  { place: 'Runs', parts: [] },
  { place: 'Inbox', parts: ['inbox'] },
  { place: 'Blueprints', parts: ['blueprints'] },
  { place: 'Documents', parts: ['documents'] },
] as const;

export function App() {
  const page = pageAt(path.value);
  // In its title, so that the link keeps its name.
  const count = session.value.status === 'in' ? (waiting.count.value ?? 0) : 0;
  return (
    <div class="frame">
      <a class="skip" href="#page">
        Skip to the page
      </a>
      <header>
        <div class="bar">
          <a class="brand" href={pageUrl([])}>
            <Logo />
            Council
          </a>
          <nav aria-label="Pages">
            {NAVIGATION.map(({ place, parts }) => (
              <a key={place} href={pageUrl(parts)} aria-current={page?.place === place ? 'page' : undefined}>
                {place}
                {place === 'Inbox' && count > 0 && <span class="count">{count}</span>}
              </a>
            ))}
          </nav>
          <Who />
        </div>
      </header>
      <Content page={page} />
      <Away />
      <Toasts />
    </div>
  );
}

function Content({ page }: { readonly page: Page | null }) {
  const { value: now } = session;
  if (now.status === 'asking') return <Waiting />;
  const isLocked = now.status === 'locked';
  const who = isLocked ? now.left : now.session.actor;
  // Edits that are not saved outlast a session that has ended: whoever comes back goes on with them.
  const isKept = isLocked && who !== null && isGuarded();
  return (
    <>
      {isLocked && <SignIn kept={isKept ? who : null} />}
      {(!isLocked || isKept) && (
        <div class="content" hidden={isLocked}>
          {page === null ? <NoPage /> : <page.Shown key={`${who} ${path.value.join('/')}`} />}
        </div>
      )}
    </>
  );
}

function Waiting() {
  return (
    <main id="page">
      <h1 class="unseen">Loading</h1>
      <Loading what="the page" />
    </main>
  );
}

function NoPage() {
  return (
    <main id="page">
      <h1>There is no such page</h1>
      <p>
        <a href={pageUrl([])}>To the runs</a>
      </p>
    </main>
  );
}

function Who() {
  if (session.value.status !== 'in') return null;
  if (session.value.isOpen) return <span class="who">No keys: open on this machine</span>;
  return (
    <span class="who">
      {actor.value}
      <Button tone="plain" slim onClick={() => void signOut().catch(toastError)}>
        Sign out
      </Button>
    </span>
  );
}

/** @param kept whose edits wait for them; null: nobody's */
function SignIn({ kept }: { readonly kept: string | null }) {
  const key = useSignal('');
  const fault = useSignal<string | null>(null);
  const isBusy = useSignal(false);
  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    isBusy.value = true;
    try {
      await signIn(key.value.trim());
    } catch (error) {
      fault.value = tellError(error);
    } finally {
      isBusy.value = false;
    }
  }
  return (
    <main id="page">
      <h1>Sign in</h1>
      {kept !== null && (
        <p class="notice wait">
          What {kept} has not saved is kept in this tab, until {kept} is back.
        </p>
      )}
      <form class="card narrow" onSubmit={(event) => void submit(event)}>
        <p>
          This service wants a key, made by <code>council keys add</code>. It is not kept by this page.
        </p>
        <TextBox
          label="Key"
          fault={fault.value}
          type="password"
          autocomplete="current-password"
          look="mono"
          element={(found) => found?.focus()}
          value={key.value}
          onType={(text) => (key.value = text)}
        />
        <div class="row">
          <Button type="submit" tone="primary" disabled={isBusy.value || key.value.trim() === ''}>
            Sign in
          </Button>
        </div>
      </form>
    </main>
  );
}

/** The icon of the page. */
function Logo() {
  return <img alt="" src={document.querySelector<HTMLLinkElement>('[rel="icon"]')?.href} />;
}

/** The page at a path; null: there is none. */
function pageAt(parts: readonly string[]): Page | null {
  const [first = '', ...rest] = parts;
  return PAGES[[first, ...rest.map(() => '*')].join('/')] ?? null;
}

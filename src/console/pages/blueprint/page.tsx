/** One blueprint: its editor and its versions. */
import type { Signal } from '@preact/signals';
import { useSignal, useSignalEffect } from '@preact/signals';
import { useEffect, useLayoutEffect, useMemo } from 'preact/hooks';
import { council } from '../../shell/council.js';
import type { LeaveGuard } from '../../shell/router.js';
import { guardLeaving, navigate, navigateFromHere, pageUrl, path, query, setQuery } from '../../shell/router.js';
import { may, lockIfUnauthorized } from '../../shell/session.js';
import { toast, toastError } from '../../shell/toasts.js';
import { Badge, Button } from '../../ui/controls.js';
import { Confirm, Dialog } from '../../ui/dialog.js';
import { Icon } from '../../ui/icon.js';
import { Failure, Loading } from '../../ui/states.js';
import { Tabs } from '../../ui/tabs.js';
import { Ago } from '../../ui/time.js';
import { takeImported } from '../blueprints/import-dialog.js';
import { StartDialog } from '../runs/start-form.js';
import { Canvas, Findings } from './canvas.js';
import { Changes } from './changes-view.js';
import { changesBetween } from './changes.js';
import { EMPTY, draftOf } from './draft.js';
import { NEW, newIdFault } from './new-id.js';
import { Panel } from './panel.js';
import { Editor } from './store.js';
import { TrialDialog, TrialResult } from './trial.js';
import { Versions } from './versions.js';
import { usePageTitle } from '../../shell/title.js';

export function BlueprintPage() {
  const [, id = NEW] = path.value;
  const editor = useMemo(() => new Editor(EMPTY, { council, later, mayAuthor: may('author') }), []);
  useEffect(() => {
    if (id === NEW) editor.begin(takeImported() ?? EMPTY);
    else void editor.load(id);
    return () => editor.stop();
  }, []);
  useSignalEffect(() => {
    if (editor.state.value.status === 'failed') lockIfUnauthorized(editor.state.value.error);
  });
  const state = editor.state.value;
  if (state.status === 'ready') return <Loaded {...{ editor, id }} />;
  return (
    <main id="page">
      <h1>Council</h1>
      {state.status === 'failed' ? (
        <>
          <Failure error={state.error} onRetry={() => void editor.load(id)} />
          <p>
            <a href={pageUrl(['blueprints'])}>Show the councils</a>
          </p>
        </>
      ) : (
        <Loading what="the council" />
      )}
    </main>
  );
}

function later(ms: number, act: () => void): () => void {
  const timer = window.setTimeout(act, ms);
  return () => window.clearTimeout(timer);
}

function Loaded({ editor, id }: { readonly editor: Editor; readonly id: string }) {
  const save = async (): Promise<void> => {
    const go = navigateFromHere();
    try {
      const saved = await editor.save();
      if (saved !== null) toast(`Saved as version ${saved.version}`, 'good');
      if (saved !== null && id === NEW) go(pageUrl(['blueprints', saved.id]), { replace: true });
    } catch (error) {
      lockIfUnauthorized(error);
      toastError(error);
    }
  };
  const tried = useSignal<string | null>(null);
  useKeys(editor, () => void save());
  const leaving = useLeaveGuard(editor);
  const tab = query.value.get('tab') === 'versions' && id !== NEW ? 'versions' : 'edit';
  return (
    <main id="page" class="editor">
      <BlueprintHead editor={editor} save={() => void save()} onTried={(runId) => (tried.value = runId)} />
      <Tabs
        label="Parts of the page"
        value={tab}
        options={[
          { value: 'edit', text: may('author') ? 'Edit' : 'Graph' },
          ...(id === NEW ? [] : [{ value: 'versions', text: 'Versions' } as const]),
        ]}
        onChange={(value) => setQuery({ tab: value === 'edit' ? null : value, version: null, with: null })}
      >
        {tab === 'versions' ? (
          <Versions {...{ editor, id }} />
        ) : (
          <div class="editor-parts">
            <div class="stack">
              <Canvas editor={editor} />
              {tried.value !== null && (
                <TrialResult key={tried.value} runId={tried.value} onClose={() => (tried.value = null)} />
              )}
              <Findings editor={editor} />
            </div>
            <Panel editor={editor} />
          </div>
        )}
      </Tabs>
      {editor.conflict.value !== null && <ConflictDialog editor={editor} />}
      {leaving.value !== null && <LeaveDialog leaving={leaving} />}
    </main>
  );
}

function BlueprintHead({ editor, save, onTried }: HeadProps) {
  const saved = editor.saved.value;
  const { name } = editor.draft.value;
  const title = name === '' ? 'Unnamed council' : name;
  usePageTitle(title, 'Councils');
  return (
    <div class="page-head">
      <div>
        <h1>{title}</h1>
        <div class="row small muted">
          {saved === null ? (
            <Badge tone="wait">not saved yet</Badge>
          ) : (
            <>
              <span class="mono break">{saved.id}</span>
              <span>
                version {saved.version}, <Ago at={saved.updatedAt} />
              </span>
              {editor.isChanged.value && <Badge tone="wait">unsaved changes</Badge>}
            </>
          )}
        </div>
      </div>
      <div class="row">
        {editor.mayEdit && <UndoButtons editor={editor} />}
        {may('run') && <StartButtons editor={editor} onTried={onTried} />}
        {editor.mayEdit && (
          <Button tone="primary" disabled={!canSave(editor)} onClick={save}>
            Save
          </Button>
        )}
      </div>
    </div>
  );
}

function canSave({ isSaving, isChanged, saved, newId }: Editor): boolean {
  if (isSaving.value) return false;
  return saved.value === null ? newIdFault(newId.value) === null : isChanged.value;
}

interface HeadProps {
  readonly editor: Editor;
  readonly onTried: (runId: string) => void;
  readonly save: () => void;
}

function UndoButtons({ editor }: { readonly editor: Editor }) {
  return (
    <>
      <Button label="Undo" disabled={!editor.canUndo.value} onClick={() => editor.undo()}>
        <Icon name="undo" />
      </Button>
      <Button label="Redo" disabled={!editor.canRedo.value} onClick={() => editor.redo()}>
        <Icon name="redo" />
      </Button>
    </>
  );
}

interface StartButtonsProps {
  readonly editor: Editor;
  readonly onTried: (runId: string) => void;
}

function StartButtons({ editor, onTried }: StartButtonsProps) {
  const open = useSignal<'start' | 'try' | null>(query.peek().has('try') ? 'try' : null);
  const onClose = (): void => void (open.value = null);
  const saved = editor.saved.value;
  const title =
    editor.isChanged.value && saved !== null
      ? `Starts version ${saved.version}, without your unsaved changes`
      : undefined;
  return (
    <>
      <Button onClick={() => (open.value = 'try')}>Test</Button>
      {saved !== null && (
        <Button title={title} onClick={() => (open.value = 'start')}>
          Start a run
        </Button>
      )}
      {open.value === 'start' && saved !== null && (
        <StartDialog councils={[saved]} blueprint={saved} onClose={onClose} />
      )}
      {open.value === 'try' && <TrialDialog {...{ editor, onClose }} onStarted={onTried} />}
    </>
  );
}

/** Shortcuts for undo, redo and save, except in dialogs and in the JSON field, which has its own undo. */
function useKeys(editor: Editor, save: () => void): void {
  useEffect(() => {
    if (!editor.mayEdit) return undefined;
    const onKeyDown = (event: KeyboardEvent): void => {
      const command = commandOf(event);
      if (command === 'undo') editor.undo();
      else if (command === 'redo') editor.redo();
      else if (command === 'save' && editor.isChanged.value && canSave(editor)) save();
      if (command !== null) event.preventDefault();
    };
    window.addEventListener('keydown', onKeyDown);
    return () => window.removeEventListener('keydown', onKeyDown);
  }, [editor, save]);
}

function commandOf({
  target,
  key,
  shiftKey,
  altKey,
  ctrlKey,
  metaKey,
}: KeyboardEvent): 'undo' | 'redo' | 'save' | null {
  if (!(ctrlKey || metaKey) || altKey) return null;
  const isElsewhere = target instanceof Element && target.closest('dialog, textarea.json') !== null;
  const letter = key.toLowerCase();
  if (letter === 's') return 'save';
  if (isElsewhere || (letter !== 'z' && letter !== 'y')) return null;
  return letter === 'z' && !shiftKey ? 'undo' : 'redo';
}

/** The URL that the user wanted to open despite unsaved changes, or null. */
function useLeaveGuard(editor: Editor): Signal<string | null> {
  const leaving = useSignal<string | null>(null);
  const isChanged = editor.isChanged.value;
  // A layout effect, because the user may close the tab right after a change.
  useLayoutEffect(() => {
    if (!isChanged) return undefined;
    const onLeave: LeaveGuard = (url) => {
      // The editor knows before this effect that the changes are saved.
      if (editor.isChanged.value) leaving.value = url;
      return !editor.isChanged.value;
    };
    const onUnload = (event: BeforeUnloadEvent): void => {
      if (editor.isChanged.value) event.preventDefault();
    };
    guardLeaving(onLeave);
    window.addEventListener('beforeunload', onUnload);
    return () => {
      guardLeaving(null);
      window.removeEventListener('beforeunload', onUnload);
    };
  }, [isChanged]);
  return leaving;
}

function LeaveDialog({ leaving }: { readonly leaving: Signal<string | null> }) {
  const onClose = (): void => void (leaving.value = null);
  function leave(): void {
    const url = leaving.value;
    leaving.value = null;
    guardLeaving(null);
    if (url !== null) navigate(url);
  }
  return (
    <Confirm title="Leave without saving?" verb="Leave without saving" keep="Stay" onConfirm={leave} onClose={onClose}>
      <p>Your unsaved changes will be lost.</p>
    </Confirm>
  );
}

/** Another user saved or deleted the blueprint: the user chooses which version to keep. */
function ConflictDialog({ editor }: { readonly editor: Editor }) {
  const onClose = (): void => void (editor.conflict.value = null);
  const { theirs = null } = editor.conflict.value ?? {};
  const saved = editor.saved.value;
  async function overwrite(): Promise<void> {
    try {
      const now = await editor.overwrite();
      if (now !== null) toast(`Saved as version ${now.version}`, 'good');
    } catch (error) {
      toastError(error);
    }
  }
  const foot = (
    <>
      <Button onClick={onClose}>Continue editing</Button>
      {theirs !== null && <Button onClick={() => editor.useTheirs()}>Use their version</Button>}
      <Button tone="danger" disabled={editor.isSaving.value} onClick={() => void overwrite()}>
        {theirs === null ? 'Save again' : 'Overwrite with mine'}
      </Button>
    </>
  );
  if (theirs === null || saved === null) {
    return (
      <Dialog title="Another user deleted this council" onClose={onClose} foot={foot}>
        <p>Your changes are not saved.</p>
      </Dialog>
    );
  }
  return (
    <Dialog title="Another user saved this council" broad onClose={onClose} foot={foot}>
      <p>
        The current version is {theirs.version}; you started with version {saved.version}. Your changes are not saved.
      </p>
      <h3>Their changes</h3>
      <Changes changes={changesBetween(draftOf(saved), draftOf(theirs))} />
      <h3>Your version compared with theirs</h3>
      <Changes changes={changesBetween(draftOf(theirs), editor.draft.value)} />
    </Dialog>
  );
}

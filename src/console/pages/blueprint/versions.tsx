/** The versions of a blueprint: who saved them, what changed, and how to restore one. */
import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import type { BlueprintVersion } from '../../../generated/schemas.js';
import { council } from '../../shell/council.js';
import { query, setQuery } from '../../shell/router.js';
import { toast, toastError } from '../../shell/toasts.js';
import { Badge, Button, Select } from '../../ui/controls.js';
import { useResource } from '../../ui/resource.js';
import { WhenLoaded } from '../../ui/states.js';
import { Ago } from '../../ui/time.js';
import { Changes } from './changes-view.js';
import { changesBetween } from './changes.js';
import { EMPTY, draftOf } from './draft.js';
import type { Editor } from './store.js';

export interface VersionsProps {
  readonly editor: Editor;
  readonly id: string;
}

export function Versions({ editor, id }: VersionsProps) {
  const most = useSignal(1);
  const saved = editor.saved.value;
  const versions = useResource(`${id} ${saved?.etag} ${most.value}`, async (signal) => {
    const found: BlueprintVersion[] = [];
    let pages = 0;
    for await (const page of council.blueprints.versions(id, { signal }).pages()) {
      found.push(...page);
      pages += 1;
      if (pages === most.value) return { found, isComplete: false };
    }
    return { found, isComplete: true };
  });
  return (
    <WhenLoaded of={versions} what="versions">
      {({ found, isComplete }) => (
        <div class="versions">
          <div class="stack">
            <ol class="version-list stack tight" aria-label="Versions">
              {found.map((version) => (
                <VersionLine key={version.seq} version={version} isChosen={version === chosenOf(found)} />
              ))}
            </ol>
            {!isComplete && found.at(-1)?.seq !== 0 && (
              <div class="row">
                <Button onClick={() => (most.value += 1)}>Show older versions</Button>
              </div>
            )}
          </div>
          <Chosen {...{ editor, found }} />
        </div>
      )}
    </WhenLoaded>
  );
}

function VersionLine({ version: { version, at, actor, name, deleted }, isChosen }: VersionLineProps) {
  return (
    <li>
      <button type="button" aria-pressed={isChosen} onClick={() => setQuery({ version, with: null })}>
        <strong>Version {version}</strong>
        <span class="small break">{name}</span>
        <span class="small muted">
          {actor ?? 'no key'}, <Ago at={at} />
        </span>
        {deleted !== null && <Badge tone="bad">then deleted</Badge>}
      </button>
    </li>
  );
}

interface VersionLineProps {
  readonly version: BlueprintVersion;
  readonly isChosen: boolean;
}

/** The version in the URL, or the newest. */
function chosenOf(found: readonly BlueprintVersion[]): BlueprintVersion | undefined {
  const wanted = query.value.get('version');
  return found.find(({ version }) => String(version) === wanted) ?? found[0];
}

function Chosen({ editor, found }: { readonly editor: Editor; readonly found: readonly BlueprintVersion[] }) {
  const chosen = chosenOf(found);
  if (chosen === undefined) return null;
  const before = found.slice(found.indexOf(chosen) + 1)[0];
  const wanted = query.value.get('with');
  const other = found.find(({ seq }) => String(seq) === wanted) ?? before;
  return (
    <section class="card" aria-label={`Version ${chosen.version}`}>
      <div class="row spread">
        <h2>Version {chosen.version}</h2>
        {editor.mayEdit && chosen !== found[0] && <Restore {...{ editor, chosen }} />}
      </div>
      {found.length > 1 && (
        <Select
          label="Compare with"
          value={other?.seq ?? ''}
          options={[
            ...(other === undefined ? [['', 'nothing (first version)'] as const] : []),
            ...found
              .filter((each) => each !== chosen)
              .map(({ seq, version, name }) => [seq, `Version ${version}: ${name}`] as const),
          ]}
          onChange={(seq) => setQuery({ with: seq })}
        />
      )}
      <ChangesTo {...{ chosen, other }} />
    </section>
  );
}

function ChangesTo({
  chosen,
  other,
}: {
  readonly chosen: BlueprintVersion;
  readonly other: BlueprintVersion | undefined;
}) {
  const changes = useMemo(
    () => changesBetween(other === undefined ? EMPTY : draftOf(other), draftOf(chosen)),
    [chosen, other],
  );
  return <Changes changes={changes} />;
}

/** Saves the content of an old version as a new version. */
function Restore({ editor, chosen }: { readonly editor: Editor; readonly chosen: BlueprintVersion }) {
  async function restore(): Promise<void> {
    try {
      editor.edit(draftOf(chosen));
      const saved = await editor.save();
      if (saved === null) return;
      toast(`Restored version ${chosen.version} as version ${saved.version}`, 'good');
      setQuery({ version: null, with: null });
    } catch (error) {
      toastError(error);
    }
  }
  return (
    <Button
      disabled={editor.isSaving.value || editor.isChanged.value}
      title={editor.isChanged.value ? 'Save or undo your changes first' : undefined}
      onClick={() => void restore()}
    >
      Restore this version
    </Button>
  );
}

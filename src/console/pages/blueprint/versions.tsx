/** All that was ever saved of a blueprint: who and when, what changed, and the way back. */
import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import type { BlueprintVersion } from '../../../generated/schemas.js';
import { council } from '../../shell/council.js';
import { query, setQuery } from '../../shell/router.js';
import { toast, toastError } from '../../shell/toasts.js';
import { Badge, Button, Select } from '../../ui/controls.js';
import { useResource } from '../../ui/resource.js';
import { Awaited } from '../../ui/states.js';
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
      if (pages === most.value) return { found, isWhole: false };
    }
    return { found, isWhole: true };
  });
  return (
    <Awaited of={versions} what="versions">
      {({ found, isWhole }) => (
        <div class="versions">
          <div class="stack">
            <ol class="version-list" aria-label="Versions">
              {found.map((version) => (
                <VersionLine key={version.seq} version={version} isChosen={version === chosenOf(found)} />
              ))}
            </ol>
            {!isWhole && found.at(-1)?.seq !== 0 && (
              <div class="row">
                <Button onClick={() => (most.value += 1)}>Show older ones</Button>
              </div>
            )}
          </div>
          <Chosen {...{ editor, found }} />
        </div>
      )}
    </Awaited>
  );
}

function VersionLine({ version: { version, at, actor, name, deleted }, isChosen }: VersionLineProps) {
  return (
    <li>
      <button type="button" aria-pressed={isChosen} onClick={() => setQuery({ version, with: null })}>
        <strong>Version {version}</strong>
        <span class="small break">{name}</span>
        <span class="small muted">
          {actor ?? 'without a key'}, <Ago at={at} />
        </span>
        {deleted !== null && <Badge tone="bad">deleted afterwards</Badge>}
      </button>
    </li>
  );
}

interface VersionLineProps {
  readonly version: BlueprintVersion;
  readonly isChosen: boolean;
}

/** The version that the address names, or else the newest. */
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
          label="Compared with"
          value={other?.seq ?? ''}
          options={[
            ...(other === undefined ? [['', 'nothing: it is the first'] as const] : []),
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

/** How a version differs from another; of the first all of it. */
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

/** A restored version is a new one with the content of an old one. */
function Restore({ editor, chosen }: { readonly editor: Editor; readonly chosen: BlueprintVersion }) {
  async function restore(): Promise<void> {
    try {
      editor.edit(draftOf(chosen));
      const saved = await editor.save();
      if (saved === null) return;
      toast(`Version ${chosen.version} is restored as version ${saved.version}`, 'good');
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
      Restore it
    </Button>
  );
}

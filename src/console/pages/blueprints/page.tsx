/** The list of saved blueprints. */
import { useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import type { Blueprint } from '../../../generated/schemas.js';
import { council } from '../../shell/council.js';
import { pageUrl, query, setQuery } from '../../shell/router.js';
import { may, lockIfUnauthorized } from '../../shell/session.js';
import { toast, toastError } from '../../shell/toasts.js';
import { Badge, Button, TextBox } from '../../ui/controls.js';
import { Confirm } from '../../ui/dialog.js';
import { Empty, Failure, Loading } from '../../ui/states.js';
import { Ago } from '../../ui/time.js';
import { countOf } from '../../record/counts.js';
import { StartDialog } from '../runs/start-form.js';
import { ImportButton } from './import-dialog.js';
import { BlueprintList } from './store.js';
import { Templates } from './templates.js';
import { usePageTitle } from '../../shell/title.js';

/** Rows shown at first, and added by “Show more”. */
const SHOWN = 200;

export function BlueprintsPage() {
  usePageTitle('Councils');
  const list = useMemo(() => new BlueprintList(council), []);
  useEffect(() => void list.more(), [list]);
  useEffect(() => lockIfUnauthorized(list.error.value), [list.error.value]);
  return (
    <main id="page" class="blueprints">
      <div class="page-head">
        <h1>Councils</h1>
        {may('author') && (
          <div class="row">
            <ImportButton />
            <a class="button primary" href={pageUrl(['blueprints', 'new'])}>
              New council
            </a>
          </div>
        )}
      </div>
      {list.error.value !== null && <Failure error={list.error.value} onRetry={() => void list.more()} />}
      {list.isEmpty.value && <NoBlueprints />}
      {list.records.value.length > 0 && <Records list={list} />}
      {list.isLoading.value && <Loading what="councils" />}
      <Templates />
    </main>
  );
}

function Records({ list }: { readonly list: BlueprintList }) {
  const started = useSignal<Blueprint | null>(null);
  const deleted = useSignal<Blueprint | null>(null);
  const shown = useSignal(SHOWN);
  const wanted = (query.value.get('q') ?? '').toLowerCase();
  const found = list.records.value.filter(({ id, name }) => `${name}\n${id}`.toLowerCase().includes(wanted));
  const isMore = found.length > shown.value || !list.isComplete.value;
  function showMore(): void {
    shown.value += SHOWN;
    if (found.length < shown.value) void list.more();
  }
  return (
    <>
      <Find />
      {found.length === 0 && list.isComplete.value && <p class="muted">No council has this name or id.</p>}
      <ul class="blueprint-list" aria-label="Councils">
        {found.slice(0, shown.value).map((each) => (
          <Row
            key={each.id}
            blueprint={each}
            onStart={() => (started.value = each)}
            onDelete={() => (deleted.value = each)}
          />
        ))}
      </ul>
      {isMore && !list.isLoading.value && (
        <div class="row">
          <Button onClick={showMore}>Show more</Button>
        </div>
      )}
      {started.value !== null && (
        <StartDialog councils={[started.value]} blueprint={started.value} onClose={() => (started.value = null)} />
      )}
      {deleted.value !== null && (
        <DeleteDialog list={list} blueprint={deleted.value} onClose={() => (deleted.value = null)} />
      )}
    </>
  );
}

function Find() {
  return (
    <TextBox
      label="Find by name or id"
      isLabelUnseen
      type="search"
      placeholder="Find by name or id"
      value={query.value.get('q') ?? ''}
      onType={(q) => setQuery({ q })}
    />
  );
}

function NoBlueprints() {
  return (
    <Empty title="No councils yet">
      <p>
        A council has members with their own prompts, and routes between them. Start with a template, or with an empty
        one.
      </p>
      {may('author') && <a href={pageUrl(['blueprints', 'new'])}>Create a council</a>}
    </Empty>
  );
}

interface RowProps {
  readonly blueprint: Blueprint;
  readonly onStart: () => void;
  readonly onDelete: () => void;
}

function Row({ blueprint, onStart, onDelete }: RowProps) {
  const { id, name, version, nodes, edges, updatedAt, warnings } = blueprint;
  return (
    <li>
      <div class="grow">
        <a class="name break" href={pageUrl(['blueprints', id])}>
          {name}
        </a>
        <div class="muted small break">
          <span class="mono">{id}</span>
        </div>
      </div>
      <div class="small muted numeric facts">
        <span>
          {countOf(nodes.length, 'member')}, {countOf(edges.length, 'edge')}
        </span>
        <span>
          <a href={pageUrl(['blueprints', id], { tab: 'versions' })}>Version {version}</a>, <Ago at={updatedAt} />
        </span>
      </div>
      <div class="warned">
        {warnings.length > 0 && <Badge tone="wait">{countOf(warnings.length, 'warning')}</Badge>}
      </div>
      <div class="row actions">
        <a class="button plain slim" href={pageUrl([], { blueprint_id: id })}>
          Runs<span class="unseen"> of {name}</span>
        </a>
        {may('run') && (
          <Button slim label={`Start a run of ${name}`} onClick={onStart}>
            Start a run
          </Button>
        )}
        {may('author') && (
          <Button slim tone="plain" label={`Delete ${name}`} onClick={onDelete}>
            Delete
          </Button>
        )}
      </div>
    </li>
  );
}

interface DeleteDialogProps {
  readonly list: BlueprintList;
  readonly blueprint: Blueprint;
  readonly onClose: () => void;
}

function DeleteDialog({ list, blueprint, onClose }: DeleteDialogProps) {
  const isBusy = useSignal(false);
  async function remove(): Promise<void> {
    isBusy.value = true;
    try {
      await list.remove(blueprint);
      toast(`Deleted the council “${blueprint.name}”`, 'good');
    } catch (error) {
      toastError(error);
    }
    onClose();
  }
  return (
    <Confirm
      title="Delete this council?"
      verb="Delete"
      keep="Keep it"
      isBusy={isBusy.value}
      onConfirm={() => void remove()}
      onClose={onClose}
    >
      <p class="break">“{blueprint.name}” cannot start runs any more. Its runs and versions remain.</p>
    </Confirm>
  );
}

/** The choice of the documents that a run searches. */
import { useSignal } from '@preact/signals';
import type { Document } from '../../generated/schemas.js';
import { countOf } from '../record/counts.js';
import { MAX_DOCUMENTS } from '../record/matter.js';
import { council } from '../shell/council.js';
import { may } from '../shell/session.js';
import { Button, Check, TextBox } from './controls.js';
import { allOf, useResource } from './resource.js';

interface DocumentChoiceProps {
  /** Ids of the chosen documents. */
  readonly chosen: readonly string[];
  readonly onChoose: (chosen: readonly string[]) => void;
  /** What the PDF reader searches while none is chosen. */
  readonly without: string;
  /** Why the service refuses the choice, or null. */
  readonly fault?: string | null;
  /** Whether the user may not change it. */
  readonly disabled?: boolean;
}

/** Most documents listed at a time. */
const LISTED = 50;
/** The number of documents from which a field filters them. */
const MANY = 8;

/** Shows nothing without documents. */
export function DocumentChoice({ chosen, onChoose, without, fault = null, disabled = false }: DocumentChoiceProps) {
  const words = useSignal('');
  const { value: loaded } = useResource('documents to choose', (signal) =>
    may('read') ? allOf(council.documents.list({ signal })) : Promise.resolve([]),
  ).state;
  const documents = loaded.status === 'ready' ? loaded.value : [];
  if (documents.length + chosen.length === 0) return null;
  const gone = loaded.status === 'ready' ? chosen.filter((id) => !documents.some((each) => each.id === id)) : [];
  const find = words.value.trim().toLowerCase();
  const found = documents.filter(({ filename }) => filename.toLowerCase().includes(find));
  return (
    <fieldset class="document-choice" disabled={disabled}>
      <legend>Documents</legend>
      <p class="small muted" role="status">
        {chosen.length === 0
          ? without
          : `The PDF reader searches ${countOf(chosen.length, 'chosen document')}${chosen.length >= MAX_DOCUMENTS ? ', the most possible' : ''}.`}
      </p>
      {documents.length > MANY && (
        <TextBox
          label="Find a document"
          isLabelUnseen
          type="search"
          placeholder="Find a document by its name"
          value={words.value}
          onType={(text) => (words.value = text)}
        />
      )}
      <Choices {...{ found, gone, chosen, onChoose }} />
      {chosen.length > 0 && (
        <div class="row">
          <Button slim tone="plain" onClick={() => onChoose([])}>
            Choose none
          </Button>
        </div>
      )}
      {fault !== null && (
        <p class="fault" role="alert">
          {fault}
        </p>
      )}
    </fieldset>
  );
}

interface ChoicesProps extends Pick<DocumentChoiceProps, 'chosen' | 'onChoose'> {
  readonly found: readonly Document[];
  /** Chosen documents that no longer exist. */
  readonly gone: readonly string[];
}

function Choices({ found, gone, chosen, onChoose }: ChoicesProps) {
  const toggle = (id: string, isChosen: boolean): void =>
    onChoose(isChosen ? [...chosen, id] : chosen.filter((each) => each !== id));
  if (found.length + gone.length === 0) return <p class="small muted">No document has such a name.</p>;
  return (
    <>
      <ul class="choices">
        {found.slice(0, LISTED).map(({ id, filename, pages }) => (
          <li key={id}>
            <Check
              label={filename}
              checked={chosen.includes(id)}
              disabled={!chosen.includes(id) && chosen.length >= MAX_DOCUMENTS}
              onChange={(isChosen) => toggle(id, isChosen)}
            />
            <span class="small muted">{countOf(pages, 'page')}</span>
          </li>
        ))}
        {gone.map((id) => (
          <li key={id}>
            <Check label={`Deleted document ${id.slice(0, 8)}`} checked onChange={() => toggle(id, false)} />
          </li>
        ))}
      </ul>
      {found.length > LISTED && (
        <p class="small muted">
          {countOf(found.length - LISTED, 'more document')}: enter a part of the name to find them.
        </p>
      )}
    </>
  );
}

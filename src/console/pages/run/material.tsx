/** The text that a run works on: folded with its size, and searchable when it is open. */
import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { utf8Bytes } from '../../../graph/limits.js';
import { sizeText } from '../../record/matter.js';
import { MOST_PLACES, placesOf } from '../../record/find-in-text.js';
import { CopyButton } from '../../ui/clipboard.js';
import { Button, TextBox } from '../../ui/controls.js';
import { Icon } from '../../ui/icon.js';
import { LongText } from '../../ui/long-text.js';
import { save } from './files.js';

/** @param text not empty */
export function Material({ text }: { readonly text: string }) {
  const isOpen = useSignal(false);
  const size = useMemo(() => sizeText(utf8Bytes(text)), [text]);
  return (
    <details class="material" onToggle={({ currentTarget }) => (isOpen.value = currentTarget.open)}>
      <summary>
        Material <span class="muted numeric">{size}</span>
      </summary>
      {isOpen.value && <Opened text={text} />}
    </details>
  );
}

function Opened({ text }: { readonly text: string }) {
  const words = useSignal('');
  const current = useSignal(0);
  const places = useMemo(() => placesOf(text, words.value), [text, words.value]);
  const move = (by: number): void => {
    if (places.length > 0) current.value = (current.value + by + places.length) % places.length;
  };
  return (
    <div class="card stack close">
      <div class="row find">
        <TextBox
          label="Find in the material"
          isLabelUnseen
          type="search"
          placeholder="Find in the material"
          value={words.value}
          onType={(typed) => {
            words.value = typed;
            current.value = 0;
          }}
          onKeyDown={(event) => {
            if (event.key !== 'Enter') return;
            event.preventDefault();
            move(event.shiftKey ? -1 : 1);
          }}
        />
        <span class="small muted numeric" role="status">
          {words.value.trim() !== '' && countText(places.length, current.value)}
        </span>
        <Button slim disabled={places.length < 2} onClick={() => move(-1)}>
          Previous
        </Button>
        <Button slim disabled={places.length < 2} onClick={() => move(1)}>
          Next
        </Button>
        <span class="grow" />
        <CopyButton of={() => ({ text })}>
          <Icon name="copy" /> Copy
        </CopyButton>
        <Button slim onClick={() => save('material.txt', new Blob([text], { type: 'text/plain;charset=utf-8' }))}>
          <Icon name="download" /> Download .txt
        </Button>
      </div>
      <LongText text={text} label="Material" places={places} current={current.value} />
    </div>
  );
}

function countText(found: number, current: number): string {
  if (found === 0) return 'Not found';
  const of = found === MOST_PLACES ? `more than ${MOST_PLACES - 1}` : String(found);
  return `${current + 1} of ${of}`;
}

/** A notice with a text that the service shows once: that of a new key, or the secret of a webhook. */
import { CopyButton } from '../../ui/clipboard.js';
import { Button } from '../../ui/controls.js';

export interface SecretNoticeProps {
  /** What the text is, such as `Key ann`. */
  readonly title: string;
  /** What the button copies, as its accessible name. */
  readonly name: string;
  readonly secret: string;
  readonly onClose: () => void;
}

export function SecretNotice({ title, name, secret, onClose }: SecretNoticeProps) {
  return (
    <div class="notice good" role="status">
      <div class="stack close grow">
        <strong>{title}: copy it now, it is shown only this once</strong>
        <code class="break">{secret}</code>
        <div class="row">
          <CopyButton name={name} of={() => ({ text: secret })}>
            Copy
          </CopyButton>
          <Button tone="plain" slim onClick={onClose}>
            I have copied it
          </Button>
        </div>
      </div>
    </div>
  );
}

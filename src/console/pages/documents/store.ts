/** Uploads, which continue while the user is on another page. */
import type { ReadonlySignal, Signal } from '@preact/signals';
import { signal } from '@preact/signals';
import type { CouncilClient, UploadResult } from '../../../client/client.js';

/** The service's limit for a file, in bytes: larger files are not sent. */
const MAX_BYTES = 50 * 1024 * 1024;
/** Number of parallel uploads: browsers open few connections to one host. */
const AT_A_TIME = 2;

export type UploadState =
  | { readonly status: 'waiting' }
  /** `share`: part sent, 0 to 1; at 1 the service reads the file. */
  | { readonly status: 'sending'; readonly share: number }
  | { readonly status: 'done'; readonly result: UploadResult }
  | { readonly status: 'failed'; readonly error: unknown };

export interface Upload {
  readonly id: number;
  readonly filename: string;
  readonly state: ReadonlySignal<UploadState>;
  /** Cancels the upload, or removes its result from the list. */
  remove(): void;
  /** Sends the file again, after a failure that another attempt may mend; null if none may. */
  readonly retry: (() => void) | null;
}

export class Uploads {
  /** In the order of selection. */
  readonly list = signal<readonly Upload[]>([]);
  /** Number of finished uploads. */
  readonly ended = signal(0);
  readonly #client: Pick<CouncilClient, 'documents'>;
  readonly #waiting: (() => Promise<void>)[] = [];
  #sending = 0;
  #lastId = 0;

  constructor(client: Pick<CouncilClient, 'documents'>) {
    this.#client = client;
  }

  add(files: Iterable<File>): void {
    for (const file of files) this.#addOne(file);
  }

  #addOne(file: File): void {
    const abort = new AbortController();
    const state = signal<UploadState>({ status: 'waiting' });
    const isTooLarge = file.size > MAX_BYTES;
    const send = (): void => {
      state.value = { status: 'waiting' };
      this.#waiting.push(() => this.#send(file, state, abort.signal));
      this.#sendNext();
    };
    const upload: Upload = {
      id: (this.#lastId += 1),
      filename: file.name,
      state,
      retry: isTooLarge ? null : send,
      remove: () => {
        abort.abort();
        this.list.value = this.list.value.filter((each) => each !== upload);
      },
    };
    this.list.value = [...this.list.value, upload];
    if (isTooLarge) state.value = { status: 'failed', error: new Error('The file is larger than 50 MiB') };
    else send();
  }

  async #send(file: File, state: Signal<UploadState>, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    state.value = { status: 'sending', share: 0 };
    try {
      const result = await this.#client.documents.upload(file, {
        signal,
        onProgress: ({ sent, total }) => (state.value = { status: 'sending', share: sent / total }),
      });
      state.value = { status: 'done', result };
    } catch (error) {
      state.value = { status: 'failed', error };
    }
    this.ended.value += 1;
  }

  #sendNext(): void {
    while (this.#sending < AT_A_TIME) {
      const send = this.#waiting.shift();
      if (send === undefined) return;
      this.#sending += 1;
      void send().finally(() => {
        this.#sending -= 1;
        this.#sendNext();
      });
    }
  }
}

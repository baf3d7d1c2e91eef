/** Files on their way to the service, also while another page is looked at. */
import type { ReadonlySignal } from '@preact/signals';
import { signal } from '@preact/signals';
import type { CouncilClient, UploadResult } from '../../../client/client.js';

/** Most that the service takes of one file, in bytes: what is larger need not be sent to be refused. */
const MAX_BYTES = 50 * 1024 * 1024;
/** Sent at a time: browsers keep few connections to one host. */
const AT_A_TIME = 2;

export type UploadState =
  | { readonly status: 'waiting' }
  /** `share`: of the file, 0 to 1; at 1 the service reads it. */
  | { readonly status: 'sending'; readonly share: number }
  | { readonly status: 'taken'; readonly result: UploadResult }
  | { readonly status: 'refused'; readonly error: unknown };

export interface Upload {
  readonly id: number;
  readonly filename: string;
  readonly state: ReadonlySignal<UploadState>;
  /** Stops it, or takes its outcome away. */
  remove(): void;
}

export class Uploads {
  /** In the order they were given. */
  readonly list = signal<readonly Upload[]>([]);
  /** Grows whenever a file was taken in or refused. */
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
    this.#sendNext();
  }

  #addOne(file: File): void {
    const abort = new AbortController();
    const state = signal<UploadState>({ status: 'waiting' });
    const upload: Upload = {
      ...{ id: (this.#lastId += 1), filename: file.name, state },
      remove: () => {
        abort.abort();
        this.list.value = this.list.value.filter((each) => each !== upload);
      },
    };
    this.list.value = [...this.list.value, upload];
    if (file.size > MAX_BYTES) {
      state.value = { status: 'refused', error: new Error('The file is larger than 50 MiB') };
      return;
    }
    this.#waiting.push(async () => {
      if (abort.signal.aborted) return;
      state.value = { status: 'sending', share: 0 };
      try {
        const result = await this.#client.documents.upload(file, {
          signal: abort.signal,
          onProgress: ({ sent, total }) => (state.value = { status: 'sending', share: sent / total }),
        });
        state.value = { status: 'taken', result };
      } catch (error) {
        state.value = { status: 'refused', error };
      }
      this.ended.value += 1;
    });
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

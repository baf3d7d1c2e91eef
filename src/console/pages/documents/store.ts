/** Uploads, which continue while the user is on another page. */
import type { ReadonlySignal } from '@preact/signals';
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
      state.value = { status: 'failed', error: new Error('The file is larger than 50 MiB') };
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
        state.value = { status: 'done', result };
      } catch (error) {
        state.value = { status: 'failed', error };
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

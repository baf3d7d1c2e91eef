/** Texts on their way to a client that takes them one by one. */
export class Outbox implements AsyncIterable<string> {
  readonly #texts: string[] = [];
  #isClosed = false;
  #chars = 0;
  #taken = 0;
  #news: () => void = () => undefined;
  readonly #emptied: (() => void)[] = [];

  /** Characters not yet taken. */
  get chars(): number {
    return this.#chars;
  }

  /** How many texts have been taken. */
  get taken(): number {
    return this.#taken;
  }

  put(text: string): void {
    if (this.#isClosed) return;
    this.#texts.push(text);
    this.#chars += text.length;
    this.#news();
  }

  /** Ends it once what is in it has been taken. */
  close(): void {
    this.#isClosed = true;
    this.#news();
    this.#tellEmptied();
  }

  /** Resolves once everything has been taken, or nothing more is going to be. */
  emptied(): Promise<void> {
    if (this.#texts.length === 0 || this.#isClosed) return Promise.resolve();
    return new Promise((resolve) => this.#emptied.push(resolve));
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<string> {
    for (;;) {
      for (let text = this.#texts.shift(); text !== undefined; text = this.#texts.shift()) {
        this.#chars -= text.length;
        this.#taken += 1;
        yield text;
      }
      if (this.#isClosed) return;
      this.#tellEmptied();
      await new Promise<void>((resolve) => (this.#news = resolve));
    }
  }

  #tellEmptied(): void {
    for (const resolve of this.#emptied.splice(0)) resolve();
  }
}

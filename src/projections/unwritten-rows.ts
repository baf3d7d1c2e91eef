/** The changed rows of one table that are not written yet: the newest row of each id. */
export class UnwrittenRows<Row extends { readonly id: string }> {
  readonly #max: number;
  #changed = new Map<string, Row>();
  #writing: ReadonlyMap<string, Row> = new Map();

  /** @param max changed rows at which the table is full */
  constructor(max: number) {
    this.#max = max;
  }

  get isFull(): boolean {
    return this.#changed.size >= this.#max;
  }

  put(row: Row): void {
    this.#changed.set(row.id, row);
  }

  get(id: string): Row | null {
    return this.#changed.get(id) ?? this.#writing.get(id) ?? null;
  }

  /** The rows to write now. They can be read here until `end`. */
  begin(): readonly Row[] {
    this.#writing = this.#changed;
    this.#changed = new Map();
    return [...this.#writing.values()];
  }

  /** @param isWritten false keeps the rows for the next write */
  end({ isWritten }: { readonly isWritten: boolean }): void {
    if (!isWritten) this.#changed = new Map([...this.#writing, ...this.#changed]);
    this.#writing = new Map();
  }
}

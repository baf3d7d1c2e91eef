/** Takes the first rows, by the time of their start, of rows that arrive nearly but not quite in this order. */
import { fieldOf } from '../../system/untrusted.js';
import { textOf } from './stored-row.js';

interface Timed {
  readonly key: number;
  readonly createdAt: string;
  readonly id: string;
}

export interface NearlySortedOptions {
  readonly isNewestFirst: boolean;
  /** No row that comes later belongs before one by more than this, in milliseconds. */
  readonly disorderMs: number;
}

export class NearlySorted {
  readonly #count: number;
  readonly #sign: 1 | -1;
  readonly #disorderMs: number;
  readonly #first: Timed[] = [];

  /** @param count how many are wanted */
  constructor(count: number, { isNewestFirst, disorderMs }: NearlySortedOptions) {
    this.#count = count;
    this.#sign = isNewestFirst ? -1 : 1;
    this.#disorderMs = disorderMs;
  }

  /** Takes the next row; false once no later one can be among the first. */
  take(row: unknown): boolean {
    const [createdAt, id] = [textOf(row, 'created_at'), textOf(row, 'id')];
    if (createdAt === null || id === null) return true;
    const timed = { key: Number(fieldOf(row, 'key')), createdAt, id };
    const last = this.#first.at(-1);
    if (last !== undefined && this.#first.length >= this.#count) {
      const behindMs = this.#sign * (Date.parse(createdAt) - Date.parse(last.createdAt));
      if (behindMs > this.#disorderMs) return false;
      if (!this.#isBefore(timed, last)) return true;
      this.#first.pop();
    }
    const place = this.#first.findLastIndex((each) => this.#isBefore(each, timed));
    this.#first.splice(place + 1, 0, timed);
    return true;
  }

  /** Keys of the first rows, in order. */
  keys(): readonly number[] {
    return this.#first.map(({ key }) => key);
  }

  #isBefore(one: Timed, other: Timed): boolean {
    if (one.createdAt !== other.createdAt) return one.createdAt < other.createdAt === (this.#sign === 1);
    return one.id < other.id;
  }
}

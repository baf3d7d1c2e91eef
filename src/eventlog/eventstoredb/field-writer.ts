/**
 * Writes a protobuf message from its last field to its first, so that the length of each part is known when it is written:
 * google-protobuf copies each part once for each message around it.
 */
export class FieldWriter {
  readonly #buffer: Buffer;
  #at: number;

  /** @param maxBytes at least the size of the message */
  constructor(maxBytes: number) {
    this.#buffer = Buffer.allocUnsafe(maxBytes);
    this.#at = maxBytes;
  }

  /** The place before which the next field is written: a message in a field begins with it, because it ends there. */
  get end(): number {
    return this.#at;
  }

  /** Makes a field of what was written since its end: a message. */
  message(field: number, end: number): void {
    this.#number(end - this.#at);
    this.#number(field * 8 + 2);
  }

  text(field: number, text: string): void {
    const end = this.#at;
    this.#at -= Buffer.byteLength(text);
    this.#buffer.write(text, this.#at);
    this.message(field, end);
  }

  /** An unsigned integer up to 2^53. */
  number(field: number, value: number): void {
    this.#number(value);
    this.#number(field * 8);
  }

  /** The message. No field may follow. */
  bytes(): Buffer {
    return this.#buffer.subarray(this.#at);
  }

  #number(value: number): void {
    let size = 1;
    for (let rest = value; rest >= 128; rest = Math.floor(rest / 128)) size += 1;
    this.#at -= size;
    let at = this.#at;
    for (let rest = value; ; rest = Math.floor(rest / 128)) {
      if (rest < 128) {
        this.#buffer[at] = rest;
        return;
      }
      this.#buffer[at] = (rest % 128) + 128;
      at += 1;
    }
  }
}

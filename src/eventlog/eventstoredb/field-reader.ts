/** Reads the fields of a protobuf message where they are in its bytes: google-protobuf makes objects of each part. */

/** Wire types (protobuf.dev/programming-guides/encoding). */
const VARINT = 0;
const EIGHT_BYTES = 1;
const WITH_LENGTH = 2;
const FOUR_BYTES = 5;

export class FieldReader {
  readonly #bytes: Buffer;
  #at = 0;
  /** The end of the message that is being read. */
  #end: number;
  #wireType = VARINT;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
    this.#end = bytes.length;
  }

  /** Moves to the next field, whose value the caller reads or skips. Returns its number, or 0 at the end of the message. */
  next(): number {
    if (this.#at >= this.#end) return 0;
    const tag = this.number();
    this.#wireType = tag & 7;
    return tag >>> 3;
  }

  /** An unsigned integer; not exact above 2^53. */
  number(): number {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = this.#bytes[this.#at];
      if (byte === undefined) throw new Error('The message ends within a number');
      this.#at += 1;
      if (byte < 128) return value + byte * factor;
      value += (byte - 128) * factor;
    }
  }

  text(): string {
    const end = this.#endOfValue();
    const text = this.#bytes.toString('utf8', this.#at, end);
    this.#at = end;
    return text;
  }

  bytes(): Uint8Array {
    const end = this.#endOfValue();
    const bytes = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return bytes;
  }

  /** Enters the message in the field: `next` moves through its fields. Returns what `leave` needs. */
  enter(): number {
    const outer = this.#end;
    this.#end = this.#endOfValue();
    return outer;
  }

  /** Leaves the message that was entered, behind its end. */
  leave(outer: number): void {
    this.#at = this.#end;
    this.#end = outer;
  }

  skip(): void {
    switch (this.#wireType) {
      case VARINT:
        this.number();
        return;
      case EIGHT_BYTES:
        this.#at += 8;
        return;
      case WITH_LENGTH:
        this.#at = this.#endOfValue();
        return;
      case FOUR_BYTES:
        this.#at += 4;
        return;
      default:
        throw new Error(`The message has a field of the unknown type ${this.#wireType}`);
    }
  }

  /** Reads the length of a value. @throws {Error} it exceeds the message */
  #endOfValue(): number {
    const length = this.number();
    const end = this.#at + length;
    if (end > this.#end) throw new Error('The message ends within a field');
    return end;
  }
}

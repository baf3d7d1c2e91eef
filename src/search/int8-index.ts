/**
 * All vectors at a quarter of their size, a signed byte per dimension, in contiguous memory. A search scans every row;
 * the best ones are scored exactly afterwards. Sign bits would be smaller still, but of real texts and short queries
 * their best 1,000 of 50,000 held only two thirds of the ten nearest, against all of them by bytes.
 */
import type { Scored } from './top-k.js';
import { topK } from './top-k.js';

const PAGE_BYTES = 65_536;
/** Rows per call of the kernel. */
const BLOCK = 4_096;
/** Largest number of a scaled query: 768 products with 127 stay within 32 bits. */
const QUERY_MAX = 16_383;

export interface Int8Index {
  add(key: number, code: Uint8Array): void;
  remove(keys: ReadonlySet<number>): void;
  /** The rows that look nearest, at most `limit`, in no order. */
  nearest(query: Float32Array, limit: number): readonly Scored[];
  count(): number;
}

/** A vector as a row: its scale as little-endian Float32, then a signed byte per dimension. */
export function codeOf(vector: Float32Array): Uint8Array {
  const code = new Uint8Array(4 + vector.length);
  const scale = Math.fround(largestOf(vector) / 127);
  new DataView(code.buffer).setFloat32(0, scale, true);
  if (scale > 0) vector.forEach((value, at) => (code[4 + at] = Math.round(value / scale)));
  return code;
}

/** @param dimensions a multiple of 8, at most 1,024 */
export function int8Index(dimensions: number): Int8Index {
  const sumsAt = dimensions * 2;
  const rowsAt = sumsAt + BLOCK * 4;
  const memory = new WebAssembly.Memory({ initial: Math.ceil(rowsAt / PAGE_BYTES) });
  const dots = scanKernel(memory);
  let keys = new Float64Array(BLOCK);
  let scales = new Float32Array(BLOCK);
  let count = 0;

  const makeRoom = (): void => {
    const missing = rowsAt + (count + 1) * dimensions - memory.buffer.byteLength;
    // Growing copies nothing: the address range is reserved.
    if (missing > 0) memory.grow(Math.ceil(Math.max(missing, BLOCK * dimensions) / PAGE_BYTES));
    if (count < keys.length) return;
    keys = withRoom(keys, new Float64Array(keys.length * 2));
    scales = withRoom(scales, new Float32Array(scales.length * 2));
  };
  const scoresOf = (query: Float32Array): Float32Array => {
    new Int16Array(memory.buffer, 0, dimensions).set(whole(query));
    const scores = new Float32Array(count);
    for (let from = 0; from < count; from += BLOCK) {
      const rows = Math.min(BLOCK, count - from);
      dots(rowsAt + from * dimensions, rows, 0, sumsAt, dimensions);
      const sums = new Int32Array(memory.buffer, sumsAt, rows);
      for (let row = 0; row < rows; row += 1) scores[from + row] = (sums[row] ?? 0) * (scales[from + row] ?? 0);
    }
    return scores;
  };
  return {
    add(key, code) {
      if (code.length !== dimensions + 4) throw new RangeError(`Cannot add a row of ${code.length} bytes`);
      makeRoom();
      keys[count] = key;
      scales[count] = new DataView(code.buffer, code.byteOffset).getFloat32(0, true);
      new Uint8Array(memory.buffer).set(code.subarray(4), rowsAt + count * dimensions);
      count += 1;
    },
    remove(gone) {
      if (gone.size === 0) return;
      const rows = new Uint8Array(memory.buffer, rowsAt);
      for (let at = 0; at < count; at += 1) {
        while (at < count && gone.has(keys[at] ?? 0)) {
          // The last row replaces it: the order of rows is irrelevant.
          count -= 1;
          keys[at] = keys[count] ?? 0;
          scales[at] = scales[count] ?? 0;
          rows.copyWithin(at * dimensions, count * dimensions, (count + 1) * dimensions);
        }
      }
    },
    nearest: (query, limit) => (count === 0 ? [] : topK(scoresOf(query), keys.subarray(0, count), limit)),
    count: () => count,
  };
}

/** The query scaled to integers; the scale is the same for all rows and so left out. */
function whole(query: Float32Array): Int16Array {
  const scale = QUERY_MAX / largestOf(query);
  return Int16Array.from(query, (value) => (Number.isFinite(scale) ? Math.round(value * scale) : 0));
}

function largestOf(vector: Float32Array): number {
  return vector.reduce((largest, value) => Math.max(largest, Math.abs(value)), 0);
}

function withRoom<Numbers extends Float32Array | Float64Array>(numbers: Numbers, larger: Numbers): Numbers {
  larger.set(numbers);
  return larger;
}

/**
 * Dot products of rows of signed bytes with one query of signed 16-bit numbers, all little-endian, into 32-bit sums.
 */
export type ScanKernel = (rowsAt: number, count: number, queryAt: number, sumsAt: number, width: number) => void;

/**
 * The inner loop of the scan, in WebAssembly with SIMD (in Node since version 16): eight products at once. 100,000 rows
 * of 768 take 10 ms; plain JavaScript took 67 to 90 ms unrolled and 270 as a plain loop, too long when searches queue.
 * It is assembled here: a source file of its own would need a compiler at every start from the sources.
 *
 * @returns a kernel that reads and writes this memory; `count` is at least 1, `width` a multiple of 8
 */
function scanKernel(memory: WebAssembly.Memory): ScanKernel {
  const { dots } = new WebAssembly.Instance(new WebAssembly.Module(MODULE), { a: { a: memory } }).exports;
  if (dots === undefined) throw new Error('The scan kernel has no function');
  return dots;
}

/** Instructions by their names in WebAssembly's text format. */
const get = (local: number): readonly number[] => [0x20, local];
const set = (local: number): readonly number[] => [0x21, local];
const tee = (local: number): readonly number[] => [0x22, local];
const i32Const = (value: number): readonly number[] => [0x41, value];
const lane = (at: number): readonly number[] => [0xfd, 0x1b, at];
const LOOP = [0x03, 0x40];
const BR_IF = [0x0d, 0x00];
const END = 0x0b;
const I32_ADD = 0x6a;
const I32_SUB = 0x6b;
const I32_LT_U = 0x49;
const I32_STORE = [0x36, 0x02, 0x00];
const V128_ZERO = [0xfd, 0x0c, ...new Array<number>(16).fill(0)];
const V128_LOAD = [0xfd, 0x00, 0x00, 0x00];
const V128_LOAD8X8_S = [0xfd, 0x01, 0x00, 0x00];
const I32X4_DOT_I16X8_S = [0xfd, 0xba, 0x01];
const I32X4_ADD = [0xfd, 0xae, 0x01];

/** Locals: the arguments, then the sum in four lanes, the place in the query, the end of the row. */
const [ROW, COUNT, QUERY, SUMS, WIDTH, SUM, AT, ROW_END] = [0, 1, 2, 3, 4, 5, 6, 7] as const;

/** A test compares it with plain loops. */
// prettier-ignore
const BODY = [
  0x02, 0x01, 0x7b, 0x02, 0x7f, // one v128, two i32
  ...LOOP, //                      rows
    ...V128_ZERO, ...set(SUM),
    ...get(QUERY), ...set(AT),
    ...get(ROW), ...get(WIDTH), I32_ADD, ...set(ROW_END),
    ...LOOP, //                    eight dimensions
      ...get(SUM), ...get(ROW), ...V128_LOAD8X8_S, ...get(AT), ...V128_LOAD, ...I32X4_DOT_I16X8_S, ...I32X4_ADD, ...set(SUM),
      ...get(AT), ...i32Const(16), I32_ADD, ...set(AT),
      ...get(ROW), ...i32Const(8), I32_ADD, ...tee(ROW), ...get(ROW_END), I32_LT_U, ...BR_IF,
    END,
    ...get(SUMS),
    ...get(SUM), ...lane(0), ...get(SUM), ...lane(1), I32_ADD,
    ...get(SUM), ...lane(2), I32_ADD, ...get(SUM), ...lane(3), I32_ADD,
    ...I32_STORE,
    ...get(SUMS), ...i32Const(4), I32_ADD, ...set(SUMS),
    ...get(COUNT), ...i32Const(1), I32_SUB, ...tee(COUNT), ...BR_IF,
  END,
  END,
];

// prettier-ignore
const MODULE = Uint8Array.from([
  0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00, //            magic, version
  ...section(0x01, [1, 0x60, 5, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0]), // one type: five i32, no result
  ...section(0x02, [1, 1, 0x61, 1, 0x61, 2, 0, 1]), //               imports memory a.a
  ...section(0x03, [1, 0]), //                                       one function
  ...section(0x07, [1, 4, 0x64, 0x6f, 0x74, 0x73, 0, 0]), //         exports it as "dots"
  ...section(0x0a, [1, ...sized(BODY)]),
]);

function section(id: number, content: readonly number[]): readonly number[] {
  return [id, ...sized(content)];
}

/** Content prefixed with its length, LEB128 of up to 14 bits. */
function sized(content: readonly number[]): readonly number[] {
  return [(content.length & 0x7f) | 0x80, content.length >> 7, ...content];
}

/**
 * All vectors at a quarter of their size, a signed byte a dimension, in the order in which a scan reads them. It looks at
 * every row; what comes out best is scored exactly afterwards. Sign bits would be smaller still, but of real texts and
 * short queries their best 1,000 of 50,000 held only two thirds of the ten nearest, against all of them by bytes.
 */
import { bestOf, type Scored } from './nearest.js';
import { scanKernel } from './scan-kernel.js';

const PAGE_BYTES = 65_536;
/** Rows whose sums are taken at once. */
const BLOCK = 4_096;
/** Of a query's numbers: 768 products with 127 stay within 32 bits. */
const QUERY_MAX = 16_383;

export interface CodeScan {
  add(key: number, code: Uint8Array): void;
  remove(keys: ReadonlySet<number>): void;
  /** The rows that look nearest, at most `limit`, in no order. */
  nearest(query: Float32Array, limit: number): readonly Scored[];
  count(): number;
}

/** A vector as a row: its scale as little-endian Float32, then a signed byte a dimension. */
export function codeOf(vector: Float32Array): Uint8Array {
  const code = new Uint8Array(4 + vector.length);
  const scale = Math.fround(largestOf(vector) / 127);
  new DataView(code.buffer).setFloat32(0, scale, true);
  if (scale > 0) vector.forEach((value, at) => (code[4 + at] = Math.round(value / scale)));
  return code;
}

/** @param dimensions a multiple of 8, at most 1,024 */
export function codeScan(dimensions: number): CodeScan {
  const sumsAt = dimensions * 2;
  const rowsAt = sumsAt + BLOCK * 4;
  const memory = new WebAssembly.Memory({ initial: Math.ceil(rowsAt / PAGE_BYTES) });
  const dots = scanKernel(memory);
  let keys = new Float64Array(BLOCK);
  let scales = new Float32Array(BLOCK);
  let count = 0;

  const makeRoom = (): void => {
    const missing = rowsAt + (count + 1) * dimensions - memory.buffer.byteLength;
    // The memory's address range is reserved: growing copies nothing.
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
          // The last row takes its place: the order of rows means nothing.
          count -= 1;
          keys[at] = keys[count] ?? 0;
          scales[at] = scales[count] ?? 0;
          rows.copyWithin(at * dimensions, count * dimensions, (count + 1) * dimensions);
        }
      }
    },
    nearest: (query, limit) => (count === 0 ? [] : bestOf(scoresOf(query), keys.subarray(0, count), limit)),
    count: () => count,
  };
}

/** The query's numbers as whole ones; their scale is the same for all rows and left out. */
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

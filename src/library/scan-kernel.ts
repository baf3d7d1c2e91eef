/**
 * The inner loop of the scan, in WebAssembly with SIMD, which Node has had since version 16: eight products at once. In
 * JavaScript the same scan takes ten times as long.
 */

/** Dot products of rows of signed bytes with one query of signed 16-bit numbers, all little-endian, into 32-bit sums. */
export type ScanKernel = (rowsAt: number, count: number, queryAt: number, sumsAt: number, width: number) => void;

/** @returns a kernel that reads and writes this memory; `count` is at least 1, `width` a multiple of 8 */
export function scanKernel(memory: WebAssembly.Memory): ScanKernel {
  const { dots } = new WebAssembly.Instance(new WebAssembly.Module(MODULE), { a: { a: memory } }).exports;
  if (dots === undefined) throw new Error('The scan kernel has no function');
  return dots;
}

/** Written by hand; a test holds it against plain loops. Locals: 0 row, 1 count, 2 query, 3 sums, 4 width, 5 sum, 6 at, 7 end. */
// prettier-ignore
const BODY = [
  0x02, 0x01, 0x7b, 0x02, 0x7f, //                             sum: v128, at and end: i32
  0x03, 0x40, //                                               loop rows
  0xfd, 0x0c, ...new Array<number>(16).fill(0), 0x21, 0x05, //   sum = 0
  0x20, 0x02, 0x21, 0x06, //                                     at = query
  0x20, 0x00, 0x20, 0x04, 0x6a, 0x21, 0x07, //                   end = row + width
  0x03, 0x40, //                                                 loop dimensions
  0x20, 0x05, //                                                   sum
  0x20, 0x00, 0xfd, 0x01, 0x00, 0x00, //                           v128.load8x8_s row
  0x20, 0x06, 0xfd, 0x00, 0x00, 0x00, //                           v128.load at
  0xfd, 0xba, 0x01, 0xfd, 0xae, 0x01, 0x21, 0x05, //               sum = i32x4.add(sum, i32x4.dot_i16x8_s)
  0x20, 0x06, 0x41, 0x10, 0x6a, 0x21, 0x06, //                     at += 16
  0x20, 0x00, 0x41, 0x08, 0x6a, 0x22, 0x00, //                     row += 8
  0x20, 0x07, 0x49, 0x0d, 0x00, 0x0b, //                         while row < end
  0x20, 0x03, 0x20, 0x05, 0xfd, 0x1b, 0x00, //                   the four lanes of sum, added up
  0x20, 0x05, 0xfd, 0x1b, 0x01, 0x6a, 0x20, 0x05, 0xfd, 0x1b, 0x02, 0x6a, 0x20, 0x05, 0xfd, 0x1b, 0x03, 0x6a,
  0x36, 0x02, 0x00, //                                           i32.store sums
  0x20, 0x03, 0x41, 0x04, 0x6a, 0x21, 0x03, //                   sums += 4
  0x20, 0x01, 0x41, 0x01, 0x6b, 0x22, 0x01, 0x0d, 0x00, 0x0b, // while count -= 1
  0x0b,
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

/** With its length in front, LEB128 of up to 14 bits. */
function sized(content: readonly number[]): readonly number[] {
  return [(content.length & 0x7f) | 0x80, content.length >> 7, ...content];
}

/** The part of WebAssembly that int8-index.ts uses; the types of Node 20 lack it. */
declare namespace WebAssembly {
  class Memory {
    constructor(descriptor: { readonly initial: number });
    /** Another one after each growth. */
    readonly buffer: ArrayBuffer;
    grow(pages: number): number;
  }
  interface Module {
    readonly [Symbol.toStringTag]: string;
  }
  const Module: new (bytes: Uint8Array) => Module;
  class Instance {
    constructor(module: Module, imports: object);
    readonly exports: Readonly<Record<string, (...places: readonly number[]) => void>>;
  }
}

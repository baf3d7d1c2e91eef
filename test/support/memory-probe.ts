/**
 * Loaded into the service's process (`--import`, with `--expose-gc`). It answers each message of the parent with the size
 * of the main thread's heap after a collection, in bytes; the message `memory` adds the buffers.
 */
process.on('message', (asked) => {
  globalThis.gc?.();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  process.send?.(asked === 'memory' ? heapUsed + arrayBuffers : heapUsed);
});
// Listening must not keep the service alive.
process.channel?.unref();

/**
 * Loaded into the service's process (`--import`, with `--expose-gc`): answers each message of the parent with what the
 * heap of the main thread holds after a collection, in bytes; asked for `memory`, with the buffers beside it. Costs
 * nothing until it is asked.
 */
process.on('message', (asked) => {
  globalThis.gc?.();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  process.send?.(asked === 'memory' ? heapUsed + arrayBuffers : heapUsed);
});
// Listening must not keep the service alive.
process.channel?.unref();

/**
 * Loaded into the service's process (`--import`, with `--expose-gc`): answers each message of the parent with what the
 * heap of the main thread holds after a collection, in bytes. Costs nothing until it is asked.
 */
process.on('message', () => {
  globalThis.gc?.();
  process.send?.(process.memoryUsage().heapUsed);
});
// Listening must not keep the service alive.
process.channel?.unref();

/** The contract of the EventLog port, run over every adapter unchanged. */
import { appendContract } from './append-contract.js';
import type { OpenedLog, OpenLog } from './contract-bench.js';
import { closeContract, readAllContract, readStreamContract } from './read-contract.js';
import { removeContract } from './remove-contract.js';
import { subscribeContract } from './subscribe-contract.js';

/**
 * Describes the contract of a log. `open` may return a log that is not empty and that other processes write to. One log
 * stays open for the suite; a few tests open another.
 */
export function eventLogContract(name: string, open: OpenLog): void {
  describe(`Event log: ${name}`, () => {
    let opened: OpenedLog | null = null;

    before(async () => {
      opened = await open();
    });

    after(async () => {
      await opened?.close();
    });

    const current = (): OpenedLog => {
      if (opened === null) throw new Error('No log is open');
      return opened;
    };

    appendContract(current);
    readStreamContract(current);
    readAllContract(current);
    subscribeContract(current, open);
    removeContract(current);
    closeContract(open);
  });
}

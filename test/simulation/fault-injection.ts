/** Injects the faults of a plan into the instances of a history and their model, and repairs them at the end. */
import type { Fault, FaultKind, Plan } from './faults.js';
import { appendFaultOf, TAKEOVER_FAULTS } from './faults.js';
import type { Instance } from './instance.js';
import type { Scheduler } from './scheduler.js';

export interface FaultInjectionDeps {
  readonly plan: Plan;
  readonly scheduler: Scheduler;
  readonly instances: readonly Instance[];
  /** Called when something fails that no fault explains. */
  readonly onFault: (what: string, error: unknown) => void;
}

export class FaultInjection {
  /** Whether everything was repaired: then no more faults are injected. */
  isMended = false;
  /** How often each fault was injected. */
  readonly injected: Partial<Record<FaultKind, number>> = {};
  readonly #deps: FaultInjectionDeps;
  #modelFaults: readonly { readonly kind: FaultKind; readonly untilMs: number; readonly mind: string | undefined }[] =
    [];
  /** Instances with a fault after which others may suspect them. */
  readonly #deadly = new Set<number>();

  constructor(deps: FaultInjectionDeps) {
    this.#deps = deps;
  }

  /** Injects each fault at its time. */
  begin(): void {
    const { plan, scheduler } = this.#deps;
    for (const fault of plan.faults) scheduler.at(fault.atMs, null, () => this.#inject(fault));
  }

  /** Whether all faults were injected and are over. */
  get areOver(): boolean {
    const { plan, scheduler } = this.#deps;
    return plan.faults.every(({ atMs, forMs }) => atMs + forMs <= scheduler.nowMs);
  }

  /** The current fault of a model, or null if it has none: the last of those that meet it. */
  ofModel(model: string): FaultKind | null {
    const { nowMs } = this.#deps.scheduler;
    const met = this.#modelFaults.filter(({ untilMs, mind = model }) => untilMs > nowMs && mind === model);
    return met.at(-1)?.kind ?? null;
  }

  /** Whether other instances may suspect an instance. */
  mayBeDead(slot: number): boolean {
    return this.#deadly.has(slot);
  }

  /** Whether an injected fault explains that a run failed because of its council or its instances. */
  explains(kind: 'node_failed' | 'takeover_limit'): boolean {
    const had = (...kinds: readonly FaultKind[]): boolean => kinds.some((each) => this.injected[each] !== undefined);
    switch (kind) {
      case 'node_failed':
        return had(
          ...(['model-unavailable', 'model-hangs', 'model-nonsense', 'model-refuses', 'freeze'] as const),
          ...(['connection-lost', 'stream-broken'] as const),
        );
      case 'takeover_limit':
        return had(...TAKEOVER_FAULTS);
    }
  }

  /** Repairs all faults and injects no more. */
  mend(): void {
    const { instances } = this.#deps;
    this.isMended = true;
    this.#modelFaults = [];
    for (const each of instances) {
      each.armed.length = 0;
      each.isMended = true;
      each.cutUntilMs = each.slowUntilMs = each.deafUntilMs = 0;
      each.start();
    }
  }

  #inject({ kind, slot, forMs, mind }: Fault): void {
    if (this.isMended) return;
    const { plan, scheduler, instances, onFault } = this.#deps;
    const instance = instances[slot];
    if (instance === undefined) return;
    this.injected[kind] = (this.injected[kind] ?? 0) + 1;
    if (TAKEOVER_FAULTS.has(kind)) this.#deadly.add(slot);
    const untilMs = Math.min(scheduler.nowMs + forMs, plan.pace.repairedMs);
    const again = (): void => void scheduler.at(untilMs, null, () => instance.start());
    const append = appendFaultOf(kind);
    if (append !== null) return void instance.armed.push(append);
    switch (kind) {
      case 'crash':
        instance.die();
        return again();
      case 'crash-without-folder':
        instance.die();
        instance.loseFolder();
        return again();
      case 'stop':
        return void instance.stop().then(again, (error: unknown) => onFault('stop', error));
      case 'freeze':
        if (instance.process !== null) instance.process.frozenUntilMs = untilMs;
        return;
      case 'partition':
        instance.cutUntilMs = untilMs;
        return;
      case 'slow-log':
        instance.slowUntilMs = untilMs;
        return;
      case 'deaf':
        instance.deafUntilMs = untilMs;
        return;
      case 'crash-at-rows':
        instance.deathsAtRows += 1;
        return void scheduler.at(untilMs, null, () => {
          instance.deathsAtRows = 0;
          instance.start();
        });
      case 'subscription-dropped':
        instance.drop();
        return;
      case 'events-repeated':
        instance.repeats += 3;
        return;
      case 'clock-ahead':
      case 'clock-back':
        if (instance.process !== null) instance.process.wallOffsetMs += (kind === 'clock-ahead' ? 1 : -1) * forMs * 100;
        return;
      default:
        this.#modelFaults = [...this.#modelFaults, { kind, untilMs, mind }];
    }
  }
}

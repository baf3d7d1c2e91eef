/** `council run`: runs a council in this process, or at a running service. */
import { Readable } from 'node:stream';
import { nodeSystem } from '../../system/system.js';
import { readCouncilKey } from '../../config.js';
import type { RunResult, RunUsage } from '../../generated/schemas.js';
import { openSchemas } from '../../api/schemas.js';
import type { ApprovalPrompt } from '../terminal/approval-prompt.js';
import { openApprovalPrompt, editText } from '../terminal/approval-prompt.js';
import type { DriverOptions, RunDriver, RunOptions } from './driver.js';
import { warnOnce } from './driver.js';
import type { RunArguments } from './run-request.js';
import { readRunRequest } from './run-request.js';
import { UnreachableError } from '../../client/errors.js';
import type { CouncilOutcome } from './run-council.js';
import { writeResult, runCouncil } from './run-council.js';
import { BUDGET_ENDS } from '../../run/budget/end.js';
import { unpricedModels } from '../../run/cost-text.js';
import { printable } from '../terminal/printer.js';
import type { Used } from '../terminal/usage-text.js';
import { NOTHING_REPORTED, usageText } from '../terminal/usage-text.js';
import { BUDGET_OPTIONS, budgetIn } from './budget-options.js';
import type { Progress } from '../terminal/progress.js';
import { openProgress } from '../terminal/progress.js';
import type { MatterWords } from './matter-options.js';
import { MATTER_OPTIONS, matterIn, readsInput } from './matter-options.js';
import type { CommandProcess } from './command.js';
import { HELP, parseWords, serviceUrl } from './command.js';
import { ArgumentInvalid, EXIT, UsageFault, exitOfError, messageOf } from './exit-codes.js';

const USAGE = `Usage: council run "<topic>" [options]

Runs a council on a topic. Progress goes to standard error, the final draft alone to standard output: with an output
schema the final output as JSON.

  --blueprint FILE  run your own council, a blueprint as JSON; it is not saved
  --god             pause before each step and ask for a decision; needs --blueprint. Answers: approve, reject or edit
                    (opens the draft in $EDITOR), or a, r, e; the rest of the line is a comment
  --material FILE   text that the council works on, at most 600,000 bytes; - reads standard input. May be repeated: each
                    file then stands under its name
  --documents ID,ID search only these documents, instead of the blueprint's
  --output-schema FILE
                    a JSON Schema of the final output, which is then the JSON on standard output
  --budget-usd N    the most that the run may cost, in US dollars, instead of the blueprint's budget
  --budget-tokens N
                    the same in tokens, beside --budget-usd or alone
  --on-exceeded X   what happens at the budget: pause (the default; asks for a larger budget), fail, or finish with the
                    current draft
  --json            print the result of the run as one JSON object instead of the draft
  --url URL         run at a running service, for example http://127.0.0.1:8000, instead of in this process
  --help            show this text

Without --url the run uses DATA_DIR and the settings of the service from the environment.
Exit code: 0 completed, 1 failed, cancelled, left undecided or without its output, 2 wrong usage, 3 no service at URL, 5
another process holds DATA_DIR.`;

const OPTIONS = {
  ...HELP,
  blueprint: { type: 'string' },
  god: { type: 'boolean', default: false },
  ...MATTER_OPTIONS,
  ...BUDGET_OPTIONS,
  json: { type: 'boolean', default: false },
  url: { type: 'string' },
} as const;

interface RunWords extends Omit<RunArguments, 'matter'> {
  readonly isJson: boolean;
  readonly matterWords: MatterWords;
  /** Without trailing slash, or null to run in this process. */
  readonly url: string | null;
}

/** Runs the council that the words name; resolves with the exit code. */
export async function run([, ...words]: readonly string[], here: CommandProcess): Promise<number> {
  try {
    const args = readWords(words);
    if (args === null) {
      here.stdout.write(`${USAGE}\n`, () => undefined);
      return EXIT.done;
    }
    const { result, hasOutput, lacksOutput } = await resultOf(args, here);
    const { isJson } = args;
    if (isJson || !lacksOutput) await writeResult(result, { stream: here.stdout, isJson, hasOutput });
    return result.status === 'completed' && !lacksOutput ? EXIT.done : EXIT.failed;
  } catch (error) {
    return refuse(error, here);
  }
}

/** The meaning of the words, or null for `--help`. @throws {UsageFault} */
function readWords(words: readonly string[]): RunWords | null {
  const { values, positionals } = parseWords(words, OPTIONS);
  if (values.help === true) return null;
  const [topic, ...more] = positionals;
  if (topic === undefined) throw new UsageFault('A topic is missing');
  if (more.length > 0) throw new UsageFault(`Put the topic in quotes: ${positionals.length} words were given`);
  const blueprintFile = values.blueprint ?? null;
  if (values.god && blueprintFile === null) {
    throw new UsageFault('--god needs --blueprint: the built-in council does not pause');
  }
  if (values.god && readsInput(values)) {
    throw new UsageFault('--god reads its answers from standard input: give --material a file');
  }
  const url = values.url === undefined ? null : serviceUrl(values.url);
  const budget = budgetIn(values);
  return { topic, blueprintFile, isGodMode: values.god, budget, isJson: values.json, matterWords: values, url };
}

interface Ended {
  readonly result: RunResult;
  /** Whether the run was to give an output by a schema. */
  readonly hasOutput: boolean;
  /** Whether its budget ended it before the node of the output. */
  readonly lacksOutput: boolean;
}

async function resultOf({ matterWords, ...args }: RunWords, here: CommandProcess): Promise<Ended> {
  const system = nodeSystem();
  const { signal: cancelled } = here;
  const schemas = openSchemas();
  const matter = await matterIn(matterWords, here.stdin);
  // As from a pipe whose first command has failed: the council would work without it.
  if (matter.material?.trim() === '') throw new ArgumentInvalid({ subject: 'the material', reason: 'it is empty' });
  const { request, warnings } = readRunRequest({ ...args, matter }, schemas);
  const progress = openProgress(here.stderr, system);
  const notify = (text: string): void => progress.say(text);
  const warn = warnOnce(notify);
  const options = { system, notify, warn };
  const driver = args.url === null ? await driverHere(here, options) : await driverAt(args.url, here, options);
  // Standard input that was the material has no answers left.
  const stdin = readsInput(matterWords) ? Readable.from([]) : here.stdin;
  const prompt = mayPause(request) ? promptOn(progress, { ...here, stdin }) : null;
  try {
    warn(warnings);
    const outcome = await runCouncil(driver, request, { progress, prompt, cancelled, system });
    const hasOutput = (matter.output_schema ?? request.blueprint?.output_schema) !== undefined;
    const lacksOutput = hasOutput && outcome.budgetEnd === 'finished';
    notify(`${outcomeText(outcome, progress.elapsed())}${lacksOutput ? NO_OUTPUT : ''}`);
    return { result: outcome.result, hasOutput, lacksOutput };
  } finally {
    prompt?.close();
    progress.close();
    await driver.close();
  }
}

/** Whether the run may pause: before its nodes, or at its budget. */
function mayPause({ isGodMode, blueprint, budget }: RunOptions): boolean {
  const limits = budget ?? blueprint?.budget;
  return isGodMode || (limits !== undefined && (limits.on_exceeded ?? 'pause') === 'pause');
}

// Each driver is loaded only when it is used: --url needs no context, and wrong arguments need neither.

async function driverHere(here: CommandProcess, options: DriverOptions): Promise<RunDriver> {
  const { embeddedDriver } = await import('./embedded-driver.js');
  return await embeddedDriver(here, options);
}

async function driverAt(url: string, { env, signal }: CommandProcess, options: DriverOptions): Promise<RunDriver> {
  const { remoteDriver } = await import('./remote-driver.js');
  return remoteDriver(url, { ...options, key: readCouncilKey(env), cancelled: signal });
}

function promptOn(progress: Progress, { env, stdin, stderr }: CommandProcess): ApprovalPrompt {
  const isTerminal = stdin.isTTY === true && stderr.isTTY;
  const command = env['EDITOR'] || null;
  return openApprovalPrompt({
    input: stdin,
    say: (text) => progress.say(text),
    edit: (text) => editText(text, { command, isTerminal }),
  });
}

const NO_OUTPUT = '. There is no output, because its node did not run. `council draft` shows the draft';

function outcomeText({ result, budgetEnd }: CouncilOutcome, elapsed: string): string {
  const { status, run_id: runId, error, critic_score: score, iteration_count: iterations, usage = null } = result;
  const cost = usage === null ? NOTHING_REPORTED : usageText(usedIn(usage));
  const said = budgetEnd === null ? null : BUDGET_ENDS[budgetEnd];
  if (status === 'failed') {
    return `Failed after ${elapsed}, ${cost}: ${said ?? error ?? 'the run has no recorded reason'}`;
  }
  if (status !== 'completed') return `Run ${runId} is ${status}: the answers have ended`;
  const head = said === null ? `Completed in ${elapsed}` : `${said}. Completed in ${elapsed}`;
  return `${head}: score ${score ?? 'none'}, iterations ${iterations ?? 0}, ${cost}`;
}

function usedIn(usage: RunUsage): Used {
  const { calls, unmetered_calls: unmeteredCalls, by_model: models } = usage;
  const unpriced = unpricedModels(models.map((each) => ({ model: each.model, ...amountsOf(each) })));
  return { ...amountsOf(usage), calls, unmeteredCalls, unpriced };
}

type Amounts = Pick<RunUsage, 'input_tokens' | 'output_tokens' | 'cost_usd'>;

function amountsOf({ input_tokens: inputTokens, output_tokens: outputTokens, cost_usd: costUsd }: Amounts) {
  return { inputTokens, outputTokens, costUsd };
}

/** Reports an error and returns the exit code. */
function refuse(error: unknown, { stderr }: CommandProcess): number {
  const text = messageOf(error, { usage: USAGE, takesUrl: true });
  const hint = error instanceof UnreachableError ? ' Start it with council serve, or leave out --url to run here' : '';
  stderr.write(`${printable(text)}${hint}\n`);
  return exitOfError(error);
}

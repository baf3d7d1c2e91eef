/** `council next`: shows what a paused run sends to its models if it is approved unchanged. */
import { dollarText } from '../../run/cost-text.js';
import type { NextCall, NextCalls, NextNode, WorstCase } from '../../generated/schemas.js';
import { budgetPauseText } from '../terminal/budget-prompt.js';
import type { Styler } from '../terminal/printer.js';
import { inOneLine, printable } from '../terminal/printer.js';
import { usageText, usedIn } from '../terminal/usage-text.js';
import { RUN_AT_SERVICE, SERVICE_OPTIONS, runRead } from './service-read.js';

const USAGE = `Usage: council next RUN --url URL [--json]

Shows what a paused run sends to its models if it is approved unchanged: the nodes, their models and tools, the exact
prompts, and the most that these calls may cost.

${RUN_AT_SERVICE}`;

export const next = runRead({
  usage: USAGE,
  options: SERVICE_OPTIONS,
  read: (run, { signal }) => run.next({ signal }),
  textOf,
});

function textOf({ paused, seq, nodes, reserved, usage, ...pause }: NextCalls, style: Styler): string {
  if (!paused) return 'The run does not wait for a decision.\n';
  const labels = nodes.map(({ label }) => inOneLine(label));
  const { pause_reason: reason, budget } = pause;
  const isForBudget = reason === 'budget' && budget !== undefined;
  const head = isForBudget ? budgetPauseText(labels, budget) : `Paused before ${labels.join(', ')}`;
  return [
    `${style('yellow', head)}; decide with expected_seq ${seq}`,
    ...(usage === null ? [] : [`Used so far: ${inOneLine(usageText(usedIn(usage)))}`]),
    `At most for the next calls: ${reservedText(reserved)}`,
    ...nodes.flatMap((node) => nodeLines(node, style)),
  ]
    .map((line) => `${line}\n`)
    .join('');
}

function nodeLines({ node, label, role, calls }: NextNode, style: Styler): readonly string[] {
  const head = inOneLine(label === node ? node : `${label} (${node})`);
  return ['', `${style('bold', head)}, ${role}`, ...calls.flatMap((call) => callLines(call, style))];
}

function callLines({ step, attempt, model, tools, reserved, ...call }: NextCall, style: Styler): readonly string[] {
  const { member, member_label: label, system, prompt } = call;
  const name = member === undefined ? '' : `${inOneLine(label ?? member)}: `;
  const granted = tools.length === 0 ? 'no tools' : tools.join(', ');
  return [
    `  ${name}step ${step}, attempt ${attempt}, ${inOneLine(`${model}, ${granted}`)}, at most ${reservedText(reserved)}`,
    ...[style('dim', '  system'), indented(system), style('dim', '  prompt'), indented(prompt)],
  ];
}

function reservedText({ tokens, usd }: WorstCase): string {
  return `${tokens} tokens, ${usd === null ? 'no price for a model' : dollarText(usd)}`;
}

function indented(text: string): string {
  return printable(text).replaceAll(/^(?=.)/gm, '    ');
}

/** Rules of this project that oxlint does not have. */
const rule = (create) => ({ create: (context) => create((node, message) => context.report({ node, message })) });

const noForcedType = rule((report) => ({
  TSAsExpression({ expression }) {
    // `x as unknown as T`
    if (expression.type === 'TSAsExpression' && expression.typeAnnotation.type === 'TSUnknownKeyword')
      report(expression, 'Narrow with a check or a schema: "as unknown as" hides type errors.');
  },
}));

const noClock = rule((report) => {
  const message = 'Use system.now: this reads the clock.';
  return {
    NewExpression(node) {
      if (node.callee.name === 'Date' && node.arguments.length === 0) report(node, message);
    },
    CallExpression(node) {
      if (node.callee.name === 'Date') report(node, message);
    },
  };
});

const noHeldBackTest = rule((report) => ({
  MemberExpression(node) {
    const { object, property } = node;
    const isHeldBack = /^(describe|context|it|specify)$/.test(object.name) && /^(only|skip)$/.test(property.name);
    if (isHeldBack || (object.type === 'ThisExpression' && property.name === 'skip'))
      report(node, 'Every test runs: delete it or mend it.');
  },
}));

export default {
  meta: { name: 'house' },
  rules: { 'no-forced-type': noForcedType, 'no-clock': noClock, 'no-held-back-test': noHeldBackTest },
};

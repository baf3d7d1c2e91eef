import { expect } from 'chai';
import { callsInText } from '../../src/models/calls-in-text.js';

const NAMES = new Set(['web_search', 'pdf_reader']);
const OAKS = '{"name": "web_search", "arguments": {"query": "oaks"}}';
const ELMS = '{"name": "web_search", "arguments": {"query": "elms"}}';
const fenced = (text: string): string => `\`\`\`json\n${text}\n\`\`\``;

const executed: readonly (readonly [title: string, text: string, queries?: readonly string[]])[] = [
  ['a tag', `<tool_call>\n${OAKS}\n</tool_call>`],
  ['a tag after prose', `I will search. <tool_call>${OAKS}</tool_call>`],
  ['a tag in a list of tags', `<tool_calls><tool_call>${OAKS}</tool_call></tool_calls>`],
  ['a tag around a raw line break', '<tool_call>{"name":"web_search","arguments":{"query":"oaks\n"}}', ['oaks\n']],
  ['a tag before a made-up result', `<tool_call>${OAKS}</tool_call><tool_response>{"hits": 1}</tool_response>`],
  ['a closing tag alone', `${OAKS}\n</tool_call>`],
  ['thoughts', `<think>I need to search.</think>\n${OAKS}`],
  [
    'thoughts of gpt-oss',
    `<|channel|>analysis<|message|>Hm {<|end|><|channel|>commentary to=web_search<|message|>{"query":"oaks"}`,
  ],
  ['two objects on two lines', `${OAKS}\n${ELMS}`, ['oaks', 'elms']],
  ['two objects and a semicolon', `${OAKS}; ${ELMS}`, ['oaks', 'elms']],
  ['two code blocks', `${fenced(OAKS)}\n${fenced(ELMS)}`, ['oaks', 'elms']],
  ['a list', `[${OAKS}, ${ELMS}]`, ['oaks', 'elms']],
  ['prose and an object', `I look this up first.\n\n${OAKS}`],
  ['prose and a code block', `I look this up first.\n${fenced(OAKS)}`],
  [
    'a list of tool_calls',
    '{"tool_calls": [{"function": {"name": "web_search", "arguments": "{\\"query\\":\\"oaks\\"}"}}]}',
  ],
  ['other names of the keys', '{"tool": "web_search", "input": {"query": "oaks"}}'],
  ['<function=…>', '<function=web_search>{"query": "oaks"}</function>'],
  ['<function_call>', `<function_call>${OAKS}</function_call>`],
  ['the mark of Llama', `<|python_tag|>${OAKS}`],
  ['the mark of Mistral', `[TOOL_CALLS][${OAKS}]`],
  ['the new mark of Mistral', '[TOOL_CALLS]web_search[ARGS]{"query": "oaks"}'],
  [
    'the marks of DeepSeek',
    `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>web_search\n${fenced('{"query": "oaks"}')}<｜tool▁call▁end｜><｜tool▁calls▁end｜>`,
  ],
  [
    'the marks of Kimi',
    '<|tool_calls_section_begin|><|tool_call_begin|>functions.web_search:0<|tool_call_argument_begin|>{"query": "oaks"}<|tool_call_end|><|tool_calls_section_end|>',
  ],
  [
    'the marks of gpt-oss',
    '<|channel|>commentary to=functions.web_search <|constrain|>json<|message|>{"query": "oaks"}<|call|>',
  ],
  [
    'the marks of gpt-oss without special tokens',
    'analysisWe need {facts}.assistantcommentary to=functions.web_search json{"query": "oaks"}',
  ],
  [
    'the tags of Qwen',
    '<tool_call>\n<function=web_search>\n<parameter=query>\noaks\n</parameter>\n</function>\n</tool_call>',
  ],
  ['the tags of Qwen alone', '<function=web_search><parameter=query>oaks</parameter></function>'],
  [
    'the tags of Qwen around a brace',
    '<function=web_search><parameter=query>{"a": 1}</parameter></function>',
    ['{"a": 1}'],
  ],
  ['the tags of Claude', '<invoke name="web_search"><parameter name="query">oaks</parameter></invoke>'],
  ['the tags of GLM', '<tool_call>web_search\n<arg_key>query</arg_key>\n<arg_value>oaks</arg_value>\n</tool_call>'],
  [
    'the tags of two calls',
    '<function=web_search><parameter=query>oaks</parameter></function><function=web_search><parameter=query>elms</parameter></function>',
    ['oaks', 'elms'],
  ],
];

const askedAgain: readonly (readonly [title: string, text: string])[] = [
  ['names a tool that was not offered', '{"name": "search", "arguments": {"query": "oaks"}}'],
  ['names such a tool in a tag', '<tool_call>{"name": "search", "arguments": {"query": "oaks"}}</tool_call>'],
  ['names such a tool beside another', `${OAKS}\n{"name": "search", "arguments": {"query": "elms"}}`],
  ['breaks off', '{"name": "web_search", "arguments": {"query": "oaks"}'],
  ['breaks off after prose', 'I search.\n\n{"name": "web_search", "arguments": {"query": "oa'],
  ['has single quotes', "{'name': 'web_search', 'arguments': {'query': 'oaks'}}"],
  ['has single quotes in a tag', "<tool_call>{'name': 'web_search', 'arguments': {'query': 'oaks'}}</tool_call>"],
  ['is a tag alone', 'I search. <tool_call>'],
  ['names such a tool in tags', '<tool_call><function=search><parameter=query>oaks</parameter></function></tool_call>'],
  ['breaks off in tags', '<tool_call><function=web_search><parameter=query>oaks'],
  ['is code', '<|python_tag|>brave_search.call(query="oaks")'],
];

const drafts: readonly (readonly [title: string, text: string])[] = [
  ['mentions a tag in its thoughts', '<think>I could use <tool_call> here but need not.</think>A draft.'],
  ['writes a call in its thoughts', `<think>Should I write <tool_call>${OAKS}</tool_call>? No.</think>A draft.`],
  ['mentions a tag', 'Models write <tool_call> tags, or `<tool_call>{}</tool_call>`, and <function=…>.'],
  ['shows a call in a code block', `A call:\n${fenced(`<tool_call>${OAKS}</tool_call>`)}\nThat is all.`],
  ['shows an object in its middle', `A call:\n${OAKS}\nis an object.`],
  ['shows a broken object in its middle', `A call:\n\n{"name": "f", "arguments": {...}}\n\nThat is all.`],
  ['shows two objects in code blocks', `A call:\n${fenced(OAKS)}\nAnother:\n${fenced(ELMS)}\nThat is all.`],
  ['ends in an object of another form', `A tree:\n${fenced('{"name": "Oak", "age": 300}')}`],
  ['ends in an object with more keys', '{"name": "Oak", "input": {"water": 1}, "age": 300}'],
  ['ends in a list of objects', '[{"name": "Oak"}, {"name": "Elm", "input": 3}]'],
  ['is an object with a mark in a string', '{"score": 8, "feedback": "Explain <tool_call>{} and [TOOL_CALLS]."}'],
];

describe('Calls in the text of an answer', () => {
  for (const [title, text, queries = ['oaks']] of executed) {
    it(`are executed behind ${title}, never a draft`, () => {
      const calls = callsInText(text, NAMES);
      expect(calls).to.deep.equal(
        queries.map((query) => ({ name: 'web_search', argumentsJson: JSON.stringify({ query }) })),
      );
    });
  }

  for (const [title, text] of askedAgain) {
    it(`are asked for again if the call ${title}, never a draft`, () => {
      expect(callsInText(text, NAMES)).to.equal('malformed');
    });
  }

  for (const [title, text] of drafts) {
    it(`are none in a draft that ${title}`, () => {
      expect(callsInText(text, NAMES)).to.deep.equal([]);
    });
  }

  it('are looked for in linear time', () => {
    for (const piece of [
      '`',
      '```',
      '{"',
      '{"a":{}}',
      '<tool_call>',
      '[{"name":"a","arguments":',
      '\n \n',
      '<think>',
      '<function=a><parameter=b>',
      '<tool_call><parameter=b> ',
      '<tool_call><parameter=b>     ',
      'analysisa',
    ]) {
      expect(() => callsInText(piece.repeat(200_000), NAMES)).not.to.throw();
    }
  }).timeout(10_000);
});

/** What a critic is asked for (schemas/critic-answer.json), in the words that every provider's dialect takes. */

/**
 * The scores it chooses from. As texts: servers that enforce a schema by a grammar (llama.cpp) ignore the bounds of a
 * number, and Gemini takes an enum of texts only.
 */
export const SCORES: readonly string[] = Array.from({ length: 21 }, (_, halves) => String(halves / 2));

export const SCORE_MEANS = 'From 0 to 10; 8 or more approves the draft.';
export const FEEDBACK_SAYS = 'What would raise the score.';

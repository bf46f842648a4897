// Decides whether an answer is sure enough for a headline, and shows its confidence.

import { make } from "./dom.js";
import { likelihood, number } from "./numbers.js";

/** Smallest confidence of a headline, if the request has no minimum confidence. */
const SURE = 0.2;
const SPAN = "ANSWER_SIZE_SPAN";

/** Returns the confidence of the part that is shown; undefined if the bundle estimates none. */
export function shownConfidence({ size = SPAN, confidence, sentenceConfidence }) {
  if (size === SPAN || sentenceConfidence == null) return confidence ?? undefined;
  return Math.max(number(sentenceConfidence), number(confidence));
}

/** Whether the best answer of a reply is shown as an answer. Some bundles estimate no confidence. */
export function isSure(reply, request) {
  const [best] = reply.answers ?? [];
  if (!best || !reply.hasAnswer) return false;
  const confidence = shownConfidence(best);
  return request.minConfidence !== undefined || !(number(confidence ?? 1) < SURE);
}

/** Returns a paragraph with the confidence of an answer; null if it has none. */
export function confidenceOf(answer) {
  const shown = shownConfidence(answer);
  if (shown === undefined) return null;
  const { confidence, size = SPAN } = answer;
  const isLarger = size !== SPAN && confidence != null;
  const span = isLarger && answer.sentenceConfidence != null ? `, ${likelihood(confidence)} for the marked words` : "";
  return make("p", { className: "quiet confidence" }, `confidence ${likelihood(shown)}${span}`);
}

// Shows the best answer in large type with its passage, and the other candidates below. An answer
// that is not sure enough is shown in small type, as the best candidate.

import { citation, citationText } from "./citation.js";
import { confidenceOf, shownConfidence } from "./confidence.js";
import { make } from "./dom.js";
import { figure, likelihood, milliseconds, number } from "./numbers.js";
import { markedPassage, passageOf, titleOf } from "./passage.js";
import { scoresOf } from "./scores.js";

const PASSAGE = "ANSWER_SIZE_PASSAGE";
/** Maximum number of characters of a headline in the largest type. */
const SHORT = 80;

/** Returns the sections of the answers of a reply. `sure`: whether the best one is an answer. */
export function answersOf(reply, sure) {
  const answers = reply.answers ?? [];
  if (answers.length === 0) return [nothing()];
  const times = readTimes(reply);
  const [best, ...others] = answers;
  return [first(best, answers, times, sure), ...rest(others, answers, times)];
}

/** Returns the part of the passage to show. Older servers send only the text. */
export const shownText = (answer) => answer.shownText || answer.text || "";

function nothing() {
  return make(
    "section",
    { className: "answer unsure", "aria-label": "Answer" },
    make("h2", { className: "doubt" }, "No answer was found."),
    make("p", {}, "No passage that was read holds an answer."),
  );
}

function first(answer, answers, times, sure) {
  return make(
    "section",
    { className: sure ? "answer" : "answer unsure", "aria-label": "Answer" },
    sure ? headline(answer) : doubt(answer),
    make("div", { className: "facts" }, confidenceOf(answer), citation(answer)),
    answer.size === PASSAGE ? null : passageOf(answer),
    make("details", {}, make("summary", {}, "Why this answer"), reasons(answer, answers, times)),
  );
}

function headline(answer) {
  if (answer.size === PASSAGE) {
    return [
      make("h2", { className: "words title", tabIndex: -1 }, titleOf(answer)),
      make("blockquote", {}, markedPassage(answer)),
    ];
  }
  const text = shownText(answer);
  const className = text.length > SHORT ? "words long" : "words";
  return make("h2", { className, tabIndex: -1 }, text);
}

function doubt(answer) {
  return [
    make("h2", { className: "doubt" }, "No sure answer was found."),
    make("p", { className: "quiet" }, "The best candidate:"),
    answer.size === PASSAGE
      ? make("blockquote", { className: "words", tabIndex: -1 }, markedPassage(answer))
      : make("p", { className: "words", tabIndex: -1 }, shownText(answer)),
  ];
}

function rest(others, answers, times) {
  if (others.length === 0) return [];
  return [
    make(
      "section",
      { className: "candidates", "aria-labelledby": "candidates-name" },
      make("h2", { id: "candidates-name" }, "Other candidates"),
      make("ol", { start: 2 }, others.map((each) => candidate(each, answers, times))),
    ),
  ];
}

function candidate(answer, answers, times) {
  const confidence = shownConfidence(answer);
  const figures =
    confidence == null ? [figure(answer.score), "score"] : [likelihood(confidence), "confidence"];
  const text = answer.size === PASSAGE ? answer.text : shownText(answer);
  const origin = answer.source ? citationText(answer.source) : titleOf(answer);
  const summary = make(
    "summary",
    {},
    make("span", { className: "text" }, text),
    make("span", { className: "quiet title" }, origin),
    make("span", { className: "quiet figure", title: figures[1] }, figures[0]),
  );
  return make(
    "li",
    {},
    make(
      "details",
      {},
      summary,
      passageOf(answer, citation(answer)),
      reasons(answer, answers, times),
    ),
  );
}

function reasons(answer, answers, times) {
  const id = answer.passage?.id ?? "";
  const shard = `shard ${number(answer.shard)}`;
  const read = times.has(id) ? `read on ${shard} in ${milliseconds(times.get(id))}` : `on ${shard}`;
  return [
    make("p", { className: "quiet" }, "Passage ", make("code", {}, id), `, ${read}.`),
    scoresOf(answer, answers),
  ];
}

/** Returns how long each passage was read in milliseconds, by passage id. */
function readTimes(reply) {
  const reads = (reply.timings?.calls ?? []).flatMap((call) => call.reads ?? []);
  return new Map(reads.map((each) => [each.passageId, number(each.ms)]));
}

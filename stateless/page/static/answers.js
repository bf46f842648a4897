// The answer in large type, marked in its passage, and the other candidates below it.

import { make } from "./dom.js";
import { marked } from "./highlight.js";
import { figure, milliseconds, number } from "./numbers.js";
import { why } from "./scores.js";

/** What a reply answers. */
export function answersOf(reply) {
  const answers = reply.answers ?? [];
  if (answers.length === 0) return [nothing()];
  const times = readTimes(reply);
  const [best, ...others] = answers;
  return [first(best, answers, times, reply.hasAnswer), ...rest(others, answers, times)];
}

function nothing() {
  return make(
    "section",
    { className: "answer", "aria-label": "Answer" },
    make("p", { className: "none" }, "No passage that was read holds an answer."),
  );
}

function first(answer, answers, times, sure) {
  const doubt = make(
    "p",
    { className: "doubt" },
    "No answer is sure enough. This is the best candidate:",
  );
  return make(
    "section",
    { className: sure ? "answer" : "answer unsure", "aria-label": "Answer" },
    sure ? null : doubt,
    make("h2", { className: "words", tabIndex: -1 }, answer.text),
    passage(answer),
    make("details", {}, make("summary", {}, "Why this answer"), reasons(answer, answers, times)),
  );
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
  const summary = make(
    "summary",
    {},
    make("span", { className: "text" }, answer.text),
    make("span", { className: "quiet title" }, titleOf(answer)),
    make("span", { className: "quiet figure" }, figure(answer.score)),
  );
  return make(
    "li",
    {},
    make("details", {}, summary, passage(answer), reasons(answer, answers, times)),
  );
}

function passage(answer) {
  const { text = "" } = answer.passage ?? {};
  return make(
    "figure",
    { className: "passage" },
    make("blockquote", {}, marked(text, [{ start: answer.start ?? 0, end: answer.end ?? 0 }])),
    make("figcaption", { className: "quiet" }, titleOf(answer), metadata(answer.passage?.metadata)),
  );
}

const titleOf = (answer) => answer.passage?.title || answer.passage?.id || "";

function metadata(values) {
  const known = Object.entries(values ?? {});
  return known.length === 0
    ? null
    : make(
        "dl",
        { className: "metadata" },
        known.map(([name, value]) =>
          make("div", {}, make("dt", {}, name), make("dd", {}, shown(value))),
        ),
      );
}

const shown = (value) => (typeof value === "string" ? value : JSON.stringify(value));

function reasons(answer, answers, times) {
  const id = answer.passage?.id ?? "";
  const shard = `shard ${number(answer.shard)}`;
  const read = times.has(id) ? `read on ${shard} in ${milliseconds(times.get(id))}` : `on ${shard}`;
  return [
    make("p", { className: "quiet" }, "Passage ", make("code", {}, id), `, ${read}.`),
    why(answer, answers),
  ];
}

/** How long each passage was read, by its id. */
function readTimes(reply) {
  const reads = (reply.timings?.calls ?? []).flatMap((call) => call.reads ?? []);
  return new Map(reads.map((each) => [each.passageId, number(each.ms)]));
}

// Shows the best answer in large type with its passage, and the other candidates below. An answer
// that is not sure enough is shown in small type, as the best candidate.

import { make } from "./dom.js";
import { marked } from "./highlight.js";
import { figure, likelihood, milliseconds, number } from "./numbers.js";
import { scoresOf } from "./scores.js";

/** Smallest confidence with which the best answer is shown as an answer. */
const SURE = 0.2;

/** Whether the best answer is shown as an answer. Some bundles estimate no confidence. */
export function isSure(reply) {
  const confidence = reply.answers?.[0]?.confidence;
  return Boolean(reply.hasAnswer) && !(number(confidence ?? 1) < SURE);
}

/** Returns the sections of the answers of a reply. */
export function answersOf(reply) {
  const answers = reply.answers ?? [];
  if (answers.length === 0) return [nothing()];
  const times = readTimes(reply);
  const [best, ...others] = answers;
  return [first(best, answers, times, isSure(reply)), ...rest(others, answers, times)];
}

function nothing() {
  return make(
    "section",
    { className: "answer", "aria-label": "Answer" },
    make("p", { className: "none" }, "No passage that was read holds an answer."),
  );
}

function first(answer, answers, times, sure) {
  const words = { className: "words", tabIndex: -1 };
  return make(
    "section",
    { className: sure ? "answer" : "answer unsure", "aria-label": "Answer" },
    ...(sure
      ? [make("h2", words, shownText(answer))]
      : [
          make("h2", { className: "doubt" }, "No sure answer was found."),
          make("p", { className: "quiet" }, "The best candidate:"),
          make("p", words, shownText(answer)),
        ]),
    confidence(answer),
    source(answer.source),
    passage(answer),
    make("details", {}, make("summary", {}, "Why this answer"), reasons(answer, answers, times)),
  );
}

/** Returns a paragraph with the confidence of an answer; nothing if it has none. */
function confidence(answer) {
  const { confidence } = answer;
  return confidence == null
    ? null
    : make("p", { className: "quiet confidence" }, `confidence ${likelihood(confidence)}`);
}

/** Returns a paragraph that cites the document of an answer; null without a document. */
function source(cited) {
  if (!cited) return null;
  const page = cited.page == null ? "" : `page ${cited.page}`;
  const parts = [cited.document, page, cited.headings?.at(-1)];
  return make("p", { className: "quiet source" }, parts.filter(Boolean).join(", "));
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
  const { confidence } = answer;
  const figures =
    confidence == null ? [figure(answer.score), "score"] : [likelihood(confidence), "confidence"];
  const summary = make(
    "summary",
    {},
    make("span", { className: "text" }, shownText(answer)),
    make("span", { className: "quiet title" }, titleOf(answer)),
    make("span", { className: "quiet figure", title: figures[1] }, figures[0]),
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

/** Returns the part of the passage to show. Older servers send only the text. */
const shownText = (answer) => answer.shownText || answer.text;

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
    scoresOf(answer, answers),
  ];
}

/** Returns how long each passage was read in milliseconds, by passage id. */
function readTimes(reply) {
  const reads = (reply.timings?.calls ?? []).flatMap((call) => call.reads ?? []);
  return new Map(reads.map((each) => [each.passageId, number(each.ms)]));
}

// Shows the predictions of heads for the question.

import { make } from "./dom.js";
import { marked } from "./highlight.js";
import { percent } from "./numbers.js";

/** Maximum number of labels that are shown for a head. */
const MOST = 3;

/** Returns the predictions of a reply; nothing if the reply has none. */
export function headsOf(reply, question) {
  const heads = reply.heads ?? [];
  if (heads.length === 0) return [];
  return [
    make(
      "section",
      { className: "heads", "aria-labelledby": "heads-name" },
      make("h2", { id: "heads-name" }, "The question itself"),
      make("dl", {}, heads.map((each) => prediction(each, question))),
    ),
  ];
}

function prediction(head, question) {
  return make(
    "div",
    {},
    make("dt", {}, head.headId),
    head.failure
      ? make("dd", { className: "failed" }, head.failure)
      : make("dd", {}, head.labels?.length ? labels(head) : entities(head, question)),
  );
}

function labels(head) {
  const best = head.labels.slice(0, MOST).map((each) =>
    make(
      "li",
      { className: each.assigned ? "assigned" : "quiet" },
      `${each.label} ${percent(each.score ?? 0)}`,
    ),
  );
  const outside = head.outOfScope
    ? make("li", { className: "outside" }, "no label fits")
    : null;
  return make("ul", { className: "labels" }, outside, best);
}

function entities(head, question) {
  const found = head.entities ?? [];
  if (found.length === 0) return make("span", { className: "quiet" }, "nothing found");
  return marked(
    question,
    found.map((each) => ({ ...each, start: each.start ?? 0 })),
    (each) => make("span", { className: "entity" }, ` ${each.label} ${percent(each.score ?? 0)}`),
  );
}

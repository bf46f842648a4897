// Shows how much of the index the answers come from, if it is not the whole index.

import { make } from "./dom.js";
import { count, counted, number, percent } from "./numbers.js";

const SEARCHED = "STATUS_SEARCHED";
/** Maximum number of failed shards that are listed. */
const MOST = 8;
const WORDS = {
  STATUS_TIMEOUT: "late",
  STATUS_UNAVAILABLE: "not reached",
  STATUS_OVERLOADED: "too busy",
  STATUS_FAILED: "failed",
  STATUS_NOT_LOADED: "not loaded",
  STATUS_ADAPTIVE: "not waited for",
};

/** Returns a bar and a list of the failed shards; nothing if all shards were searched. */
export function coverageOf(reply) {
  const coverage = reply.coverage ?? {};
  if (coverage.complete ?? true) return [];
  const searched = number(coverage.passagesSearched);
  const known = number(coverage.passagesKnown);
  const failed = (coverage.shards ?? []).filter((each) => each.status !== SEARCHED);
  const text = `The answer comes from ${percent(known ? searched / known : 0)} of the index: ` +
    `${count(searched)} of ${counted(known, "passage")}.`;
  return [
    make(
      "section",
      { className: "coverage", "aria-label": "Coverage" },
      make("p", {}, text),
      bar(coverage.shards ?? []),
      make("ul", {}, failed.slice(0, MOST).map(line)),
      failed.length > MOST ? make("p", {}, `And ${counted(failed.length - MOST, "more shard")}.`) : null,
    ),
  ];
}

function bar(shards) {
  const parts = shards.map((each) => {
    const part = make("span", { className: each.status === SEARCHED ? "searched" : "failed" });
    part.style.flexGrow = String(Math.max(number(each.passages), 1));
    return part;
  });
  return make("div", { className: "parts", "aria-hidden": "true" }, parts);
}

function line(part) {
  const word = WORDS[part.status] ?? "failed";
  return make(
    "li",
    {},
    make("strong", {}, `Shard ${number(part.shard)} (${counted(part.passages, "passage")}): ${word}`),
    part.reason ? `, ${part.reason}` : "",
  );
}

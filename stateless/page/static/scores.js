// Shows the figures behind the score of an answer, compared with those of the other answers.

import { make } from "./dom.js";
import { figure, number } from "./numbers.js";

const PARTS = [
  ["score", "Score", "Weighted sum of the next three figures. Answers are ranked by score.", 1],
  ["relevance", "Relevance", "How sure the reader is that the passage answers the question.", 1],
  ["spanScore", "Words chosen", "How sure the reader is that these words are the answer.", 1],
  ["distance", "Distance", "Distance between the vectors of passage and question; lower is better.", -1],
  ["words", "Words in common", "BM25 score of the question's words in the passage.", 1],
  ["hybridDistance", "Reading order", "The distance, reduced by the words in common. Passages are read in this order.", -1],
];

/** Returns the figures of an answer. The bar of a figure shows its standing among `answers`. */
export function scoresOf(answer, answers) {
  return make(
    "dl",
    { className: "why" },
    PARTS.map(([name, label, about, sign]) => {
      const share = standing(answer, answers, name, sign);
      const bar = make("span", { className: "bar", "aria-hidden": "true" }, make("span"));
      bar.firstChild.style.inlineSize = `${share * 100}%`;
      return make(
        "div",
        {},
        make("dt", {}, label),
        make("dd", { className: "figure" }, figure(answer[name])),
        make("dd", { className: "graph" }, bar),
        make("dd", { className: "about" }, about),
      );
    }),
  );
}

/** Returns where a figure of an answer is between the worst (0) and the best (1) of all answers. */
export function standing(answer, answers, name, sign) {
  const all = answers.map((each) => sign * number(each[name])).filter(Number.isFinite);
  const worst = Math.min(...all);
  const best = Math.max(...all);
  const own = sign * number(answer[name]);
  if (!Number.isFinite(own)) return 0;
  return best === worst ? 1 : (own - worst) / (best - worst);
}

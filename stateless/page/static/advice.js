// Says what to try if there is no sure answer, from what the request and the reply say.

import { shownConfidence } from "./confidence.js";
import { make } from "./dom.js";
import { counted, languageName, likelihood, number } from "./numbers.js";

const MORE = 3;
const MAX_PASSAGES = 100;
/** Maximum number of lines of advice. */
const MOST = 5;

/** Returns a section with advice. `retry(changes)` changes fields of the form and asks again. */
export function adviceOf(reply, request, retry) {
  const lines = [language, late, busy, cut, filtered, refused, words, oneWay, few, browse].flatMap(
    (rule) => rule(reply, request) ?? [],
  );
  return make(
    "section",
    { className: "advice", "aria-labelledby": "advice-name" },
    make("h2", { id: "advice-name" }, "What to try"),
    make("ul", {}, lines.slice(0, MOST).map((each) => line(each, retry))),
  );
}

function line({ text, label, changes, address }, retry) {
  if (address) return make("li", {}, text, " ", make("a", { href: address }, label));
  if (!label) return make("li", {}, text);
  const button = make("button", { type: "button" }, label);
  button.addEventListener("click", () => retry(changes));
  return make("li", {}, make("span", {}, text), " ", button);
}

function language({ unreadLanguage }) {
  if (!unreadLanguage) return null;
  return { text: `Ask in another language: the models probably do not read ${languageName(unreadLanguage)}.` };
}

function late({ coverage }) {
  if (coverage?.complete ?? true) return null;
  return { text: "A part of the index was not searched.", label: "Ask again", changes: {} };
}

function busy({ passagesGranted, passagesAsked }) {
  if (number(passagesGranted) >= number(passagesAsked)) return null;
  return { text: "The server is busy and read fewer passages: ask again later." };
}

function cut({ questionTruncated }) {
  return questionTruncated ? { text: "Shorten the question: its end was not read." } : null;
}

function filtered(_reply, { filter }) {
  if (!filter) return null;
  const text = `Only passages where ${filter} were searched.`;
  return { text, label: "Ask without the filter", changes: { filter: "" } };
}

function refused({ answers = [], hasAnswer }, { minConfidence }) {
  const confidence = answers.length ? shownConfidence(answers[0]) : undefined;
  if (hasAnswer || minConfidence === undefined || !(confidence < minConfidence)) return null;
  const text =
    `The best candidate has a confidence of ${likelihood(confidence)}. ` +
    `The minimum under Options is ${likelihood(minConfidence)}.`;
  return { text, label: "Ask without a minimum", changes: { minConfidence: "" } };
}

const words = () => ({ text: "Use other words, such as words that the documents themselves use." });

function oneWay(_reply, { retriever }) {
  const ways = { RETRIEVER_DENSE: "meaning", RETRIEVER_SPARSE: "words" };
  if (!(retriever in ways)) return null;
  return {
    text: `Passages were found only by ${ways[retriever]}.`,
    label: "Find by meaning and words",
    changes: { retriever: "RETRIEVER_HYBRID" },
  };
}

function few({ passagesAsked, readScope }) {
  const asked = number(passagesAsked);
  if (readScope !== "READ_SCOPE_GLOBAL" || asked === 0 || asked >= MAX_PASSAGES) return null;
  const passagesToRead = Math.min(MORE * asked, MAX_PASSAGES);
  return {
    text: `At most ${counted(asked, "passage")} were read.`,
    label: `Read up to ${passagesToRead}`,
    changes: { passagesToRead },
  };
}

function browse({ answers = [] }) {
  if (answers.length && !answers.some((each) => each.source)) return null;
  return { text: "Look into the documents of this index.", label: "Documents", address: "#documents" };
}

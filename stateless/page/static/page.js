// Runs the page: sends questions, and shows their replies.

import { adviceOf } from "./advice.js";
import { answersOf, shownText } from "./answers.js";
import { ask, Problem } from "./api.js";
import { watch, refresh } from "./cluster.js";
import { isSure } from "./confidence.js";
import { coverageOf } from "./coverage.js";
import * as documents from "./documents.js";
import { byId, make } from "./dom.js";
import { showExamples } from "./examples.js";
import { headsOf } from "./heads.js";
import { openPlace } from "./navigation.js";
import { counted, languageName, milliseconds, number } from "./numbers.js";
import * as options from "./options.js";
import * as shortcuts from "./shortcuts.js";
import { goToView, namedPlace, shownView, showView } from "./views.js";
import { waterfallOf } from "./waterfall.js";

/** The AbortController of the question in progress; null if there is none. */
let asking = null;
/** The question whose reply is shown, and its answers. */
let shown = { question: "", answers: [] };

/** Sends the question in the form. Gives up the question in progress, if there is one. */
async function submit() {
  stop();
  const request = options.request();
  const violations = request.question
    ? options.violations()
    : [{ field: "question", description: "Write a question first." }];
  options.showViolations(violations);
  if (violations.length) return;
  const own = (asking = new AbortController());
  nameQuestion(request.question);
  setBusy(true);
  performance.mark("winnow-asked");
  try {
    const reply = await ask(request, own.signal);
    if (asking === own) showReply(reply, request);
  } catch (error) {
    if (asking === own) showError(error);
  } finally {
    if (asking === own) {
      asking = null;
      setBusy(false);
    }
  }
}

/** Puts the question into the address. Going back leads to the document that was open. */
function nameQuestion(question) {
  const address = `#q=${encodeURIComponent(question)}`;
  if (shownView() === "answer") history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  showView("answer");
}

/** Gives up the question in progress, if there is one. */
function stop() {
  if (asking === null) return;
  asking.abort();
  asking = null;
  setBusy(false);
  byId("status").textContent = "Stopped.";
}

function setBusy(isBusy) {
  if (!isBusy && document.activeElement === byId("stop")) byId("question").focus();
  byId("stop").hidden = !isBusy;
  byId("result").setAttribute("aria-busy", String(isBusy));
  if (isBusy) byId("status").textContent = "Reading…";
}

/** Shows a reply: the answer immediately, and the rest after the answer was painted. */
function showReply(reply, request) {
  const sure = isSure(reply, request);
  shown = { question: request.question, answers: reply.answers ?? [] };
  options.closeKeyField();
  byId("status").replaceChildren(...summary(reply, sure));
  document.title = `${request.question} · Winnow`;
  const [best, ...others] = answersOf(reply, sure);
  if (!sure) others.unshift(adviceOf(reply, request, retry));
  byId("examples").replaceChildren();
  byId("examples").hidden = true;
  byId("result").replaceChildren(...coverageOf(reply), best, ...others);
  requestAnimationFrame(() =>
    setTimeout(() => {
      if (!best.isConnected) return; // a later reply has replaced this one
      performance.measure("winnow-answer", "winnow-asked");
      (sure ? best : others[0]).after(...headsOf(reply, request.question));
      byId("result").append(...waterfallOf(reply));
      refresh();
    }),
  );
}

/** The status line of a reply. */
function summary(reply, sure) {
  const [best] = reply.answers ?? [];
  const kind = sure ? "Answer" : "No sure answer. Best candidate";
  const heard = best ? `${kind}: ${shownText(best)}.` : "No answer.";
  const how = reply.cached
    ? "It came from the cache"
    : `${counted(reply.passagesRead, "passage")} read`;
  const parts = [`${how} in ${milliseconds(reply.timings?.totalMs)}.`];
  if (reply.questionTruncated) parts.push("The end of the question was cut off.");
  if (reply.unreadLanguage) {
    const language = languageName(reply.unreadLanguage);
    parts.push(`The question seems to be in ${language}, which the models do not read.`);
  }
  const enough = reply.maxLoss > 0 && reply.passagesNeeded < reply.passagesGranted;
  if (number(reply.passagesGranted) < number(reply.passagesAsked) && !enough) {
    parts.push(`The server is busy: ${counted(reply.passagesGranted, "passage")} of ${reply.passagesAsked} were granted.`);
  }
  // the answer is shown below in large type; screen readers read it here first
  return [make("span", { className: "unseen" }, `${heard} `), parts.join(" ")];
}

/** Changes fields of the form, and asks again. */
function retry(changes) {
  options.change(changes);
  byId("question").focus();
  submit();
}

function showError(error) {
  if (error.name === "AbortError") return;
  if (!(error instanceof Problem)) {
    byId("status").textContent = "This page could not show the reply: the error is in the console.";
    throw error;
  }
  const left = options.showViolations(error.violations);
  if ([401, 403].includes(error.status)) options.askForKey(error.message);
  byId("status").textContent = "";
  const all = error.violations.length && left.length === 0;
  const message = all ? "The question could not be asked: see the field that is marked." : error.message;
  byId("result").replaceChildren(problemSection(message, error.requestId));
}

function problemSection(message, requestId) {
  return make(
    "section",
    { className: "problem", role: "alert" },
    make("p", {}, message),
    requestId ? make("p", { className: "quiet" }, "Request ", make("code", {}, requestId)) : null,
  );
}

/** Opens what the address names: a document, the list of documents, or the answer of a question. */
function follow() {
  const place = namedPlace();
  if (place.view !== "answer") return openPlace(place, shown);
  showView("answer");
  if (location.hash === "#cluster") byId("cluster").scrollIntoView();
  const question = winnow.namedQuestion();
  if (!question || (question === shown.question && asking === null)) return;
  byId("question").value = question;
  submit();
}

options.restoreKey();
shortcuts.listen(stop);
documents.listen();
byId("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  submit();
});
byId("stop").addEventListener("click", stop);
byId("key").addEventListener("change", () => {
  if (shownView() !== "answer") follow();
});
byId("skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address keeps the question
  goToView();
});
window.addEventListener("hashchange", follow);
byId("question").focus();
follow();
watch();
if (!location.hash) showExamples();

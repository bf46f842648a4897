// Puts the page together: a question goes out, its reply is shown.

import { answersOf, isSure } from "./answers.js";
import { ask, Problem } from "./api.js";
import { watch, refresh } from "./cluster.js";
import { coverageOf } from "./coverage.js";
import { byId, make } from "./dom.js";
import { headsOf } from "./heads.js";
import { counted, milliseconds, number } from "./numbers.js";
import * as options from "./options.js";
import * as shortcuts from "./shortcuts.js";
import { waterfallOf } from "./waterfall.js";

let asking = null;

/** Asks what the form says. A question that is still being answered is given up. */
async function submit() {
  stop();
  const request = options.request();
  const wrong = request.question ? options.violations() : [{ field: "question", description: "Write a question first." }];
  options.show(wrong);
  if (wrong.length) return;
  const own = (asking = new AbortController());
  history.replaceState(null, "", `#q=${encodeURIComponent(request.question)}`);
  busy(true);
  performance.mark("winnow-asked");
  try {
    const reply = await ask(request, own.signal);
    if (asking === own) show(reply, request.question);
  } catch (error) {
    if (asking === own) fail(error);
  } finally {
    if (asking === own) {
      asking = null;
      busy(false);
    }
  }
}

/** Gives up the question in progress, if there is one. */
function stop() {
  if (asking === null) return;
  asking.abort();
  asking = null;
  busy(false);
  byId("status").textContent = "Stopped.";
}

function busy(whether) {
  if (!whether && document.activeElement === byId("stop")) byId("question").focus();
  byId("stop").hidden = !whether;
  byId("result").setAttribute("aria-busy", String(whether));
  if (whether) byId("status").textContent = "Reading…";
}

/** Shows a reply: the answer at once, the rest after it was painted. */
function show(reply, question) {
  options.keyTaken();
  byId("status").replaceChildren(...summary(reply));
  document.title = `${question} · Winnow`;
  const answers = answersOf(reply);
  byId("result").replaceChildren(...coverageOf(reply), ...answers);
  requestAnimationFrame(() =>
    setTimeout(() => {
      if (!answers[0].isConnected) return; // a later reply was faster than the paint
      performance.measure("winnow-answer", "winnow-asked");
      answers[0].after(...headsOf(reply, question));
      byId("result").append(...waterfallOf(reply));
      refresh();
    }),
  );
}

function summary(reply) {
  const [best] = reply.answers ?? [];
  const said = best ? `${isSure(reply) ? "Answer" : "No sure answer. Best candidate"}: ${best.text}.` : "No answer.";
  const how = reply.cached
    ? "It came from the cache"
    : `${counted(reply.passagesRead, "passage")} read`;
  const parts = [`${how} in ${milliseconds(reply.timings?.totalMs)}.`];
  if (reply.questionTruncated) parts.push("The end of the question was cut off.");
  const enough = reply.maxLoss > 0 && reply.passagesNeeded < reply.passagesGranted;
  if (number(reply.passagesGranted) < number(reply.passagesAsked) && !enough) {
    parts.push(`The server is busy: ${counted(reply.passagesGranted, "passage")} of ${reply.passagesAsked} were granted.`);
  }
  // the answer stands below in large type; who only listens hears it first
  return [make("span", { className: "unseen" }, `${said} `), parts.join(" ")];
}

function fail(error) {
  if (error.name === "AbortError") return;
  if (!(error instanceof Problem)) {
    byId("status").textContent = "This page could not show the reply: the error is in the console.";
    throw error;
  }
  const left = options.show(error.violations);
  if ([401, 403].includes(error.status)) options.askForKey(error.message);
  byId("status").textContent = "";
  const all = error.violations.length && left.length === 0;
  const message = all ? "The question could not be asked: see the field that is marked." : error.message;
  byId("result").replaceChildren(problem(message, error.requestId));
}

function problem(message, requestId) {
  return make(
    "section",
    { className: "problem", role: "alert" },
    make("p", {}, message),
    requestId ? make("p", { className: "quiet" }, "Request ", make("code", {}, requestId)) : null,
  );
}

function askNamed() {
  if (!winnow.named()) return;
  byId("question").value = winnow.named();
  submit();
}

options.begin();
shortcuts.begin(stop);
byId("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  submit();
});
byId("stop").addEventListener("click", stop);
window.addEventListener("hashchange", askNamed);
byId("question").focus();
askNamed();
watch();

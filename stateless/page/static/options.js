// The form: converts its fields to a request, and shows violations at its fields.

import { byId, make, showText } from "./dom.js";

const CHOICES = ["answerSize", "retriever", "readScope", "partialResults"];
const NUMBERS = ["minConfidence", "passagesToRead", "answers", "maxLoss"];
/** Numbers that the form shows in percent, and requests have as a share from 0 to 1. */
const PERCENTS = new Set(["minConfidence"]);
const FIELDS = ["question", ...CHOICES, ...NUMBERS, "filter", "heads"];

/** Whether the options were opened to ask for a key. */
let openedForKey = false;

/** Fills in the key of this tab, and stores it when it changes. */
export function restoreKey() {
  byId("key").value = winnow.key();
  byId("key").addEventListener("change", (event) => winnow.setKey(event.target.value.trim()));
}

/** Returns the request that the form describes. Empty fields are left out: the server has defaults. */
export function request() {
  const made = { question: value("question") };
  for (const name of CHOICES) if (value(name)) made[name] = value(name);
  for (const name of NUMBERS) {
    if (value(name)) made[name] = Number(value(name)) / (PERCENTS.has(name) ? 100 : 1);
  }
  if (value("filter")) made.filter = value("filter");
  const heads = value("heads").split(/[\s,]+/).filter(Boolean);
  if (heads.length) made.heads = heads;
  if (byId("fresh").checked) made.fresh = true;
  return made;
}

/** Changes fields of the form: values by name. */
export function change(values) {
  for (const [name, changed] of Object.entries(values)) byId(name).value = changed;
}

/** Returns the violations that the browser finds in number fields, whose values cannot be sent. */
export function violations() {
  return NUMBERS.map(byId)
    .filter((field) => !field.validity.valid)
    .map((field) => ({ field: field.name, description: field.validationMessage }));
}

/** Shows each violation at its field; returns the violations whose field is not in the form. */
export function showViolations(found) {
  const left = [];
  const descriptions = new Map();
  for (const each of found) {
    const name = fieldOf(each.field);
    if (FIELDS.includes(name)) descriptions.set(name, [...(descriptions.get(name) ?? []), each.description]);
    else left.push(each);
  }
  for (const name of FIELDS) markField(name, (descriptions.get(name) ?? []).join("; "));
  const first = FIELDS.find((name) => descriptions.has(name));
  if (first) goTo(first);
  return left;
}

/** Moves the focus to a field. Opens the options first if the field is one of them. */
export function goTo(name) {
  if (name !== "question") byId("options").open = true;
  byId(name).focus();
}

/** Asks for a key after the server refused a call; `message` is the error of a wrong key. */
export function askForKey(message) {
  openedForKey ||= !byId("options").open;
  markField("key", winnow.key() ? message : "This server asks for a key.");
  goTo("key");
}

/** Closes the options after a reply if `askForKey` opened them: they would hide the answer. */
export function closeKeyField() {
  markField("key", "");
  if (!openedForKey) return;
  openedForKey = false;
  byId("options").open = false;
  byId("question").focus();
}

/** Lists the heads that are in memory at the field of heads. */
export function suggestHeads(names) {
  const known = names.map((name) => make("code", {}, name)).flatMap((each) => [each, " "]);
  byId("heads-known").replaceChildren(...(known.length ? ["In memory now: ", ...known] : []));
}

/** Shows an error message at a field; an empty message removes the error. */
function markField(name, message) {
  showText(byId(`${name}-wrong`), message);
  if (message) byId(name).setAttribute("aria-invalid", "true");
  else byId(name).removeAttribute("aria-invalid");
}

/** Returns the form field of a violation, such as heads for heads[1]. */
const fieldOf = (path) => path.replace(/[.[].*$/, "");

const value = (name) => byId(name).value.trim();

// The form: from its fields to a request, and from violations to its fields.

import { byId, make, tell } from "./dom.js";

const CHOICES = ["retriever", "readScope", "partialResults"];
const NUMBERS = ["passagesToRead", "answers", "maxLoss"];
const FIELDS = ["question", ...CHOICES, ...NUMBERS, "filter", "heads"];

let openedForKey = false;

/** Brings back the key of this tab, and keeps it when it changes. */
export function begin() {
  byId("key").value = winnow.key();
  byId("key").addEventListener("change", (event) => winnow.setKey(event.target.value.trim()));
}

/** The request that the form says. What is left empty is left to the server. */
export function request() {
  const made = { question: value("question") };
  for (const name of CHOICES) if (value(name)) made[name] = value(name);
  for (const name of NUMBERS) if (value(name)) made[name] = Number(value(name));
  if (value("filter")) made.filter = value("filter");
  const heads = value("heads").split(/[\s,]+/).filter(Boolean);
  if (heads.length) made.heads = heads;
  if (byId("fresh").checked) made.fresh = true;
  return made;
}

/** What the browser finds wrong with the numbers: the server would not understand them. */
export function violations() {
  return NUMBERS.map(byId)
    .filter((field) => !field.validity.valid)
    .map((field) => ({ field: field.name, description: field.validationMessage }));
}

/** Shows each violation at its field; gives those that have no field here. */
export function show(found) {
  const left = [];
  const said = new Map();
  for (const each of found) {
    const name = fieldOf(each.field);
    if (FIELDS.includes(name)) said.set(name, [...(said.get(name) ?? []), each.description]);
    else left.push(each);
  }
  for (const name of FIELDS) mark(name, (said.get(name) ?? []).join("; "));
  const first = FIELDS.find((name) => said.has(name));
  if (first) goTo(first);
  return left;
}

/** Opens the options where a field is one of them, and goes to it. */
export function goTo(name) {
  if (name !== "question") byId("options").open = true;
  byId(name).focus();
}

/** The server takes no call without a key, or without another one: goes to its field. */
export function askForKey(wrong) {
  openedForKey ||= !byId("options").open;
  mark("key", winnow.key() ? wrong : "This server asks for a key.");
  goTo("key");
}

/** The server answered: what was opened for the key alone would hide the answer. */
export function keyTaken() {
  mark("key", "");
  if (!openedForKey) return;
  openedForKey = false;
  byId("options").open = false;
  byId("question").focus();
}

/** Offers the heads that are in memory. */
export function suggestHeads(names) {
  const known = names.map((name) => make("code", {}, name)).flatMap((each) => [each, " "]);
  byId("heads-known").replaceChildren(...(known.length ? ["In memory now: ", ...known] : []));
}

function mark(name, wrong) {
  tell(byId(`${name}-wrong`), wrong);
  if (wrong) byId(name).setAttribute("aria-invalid", "true");
  else byId(name).removeAttribute("aria-invalid");
}

/** passages_to_read and heads[1] are the fields passagesToRead and heads. */
function fieldOf(path) {
  const name = path.replace(/[.[].*$/, "");
  return name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase());
}

const value = (name) => byId(name).value.trim();

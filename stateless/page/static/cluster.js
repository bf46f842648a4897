// The cluster as it is now: looked at every two seconds while somebody can see it.

import { cluster, Problem } from "./api.js";
import { byId, make, tell } from "./dom.js";
import { count, counted, milliseconds, number, seconds } from "./numbers.js";
import { suggestHeads } from "./options.js";

const EVERY = 2000;
const MOST = 24;
const SERVING = "STATE_SERVING";
const WORDS = {
  STATE_SERVING: "serving",
  STATE_OUT: "out",
  STATE_LEAVING: "leaving",
  STATE_UNREACHABLE: "unreachable",
  STATE_NOT_LOADED: "not loaded",
  STATE_REFUSED: "refused",
  STATE_LOADING: "loading",
};

/** Looks again and again, but not while the page is hidden. */
export function watch() {
  let timer = null;
  const look = async () => {
    clearTimeout(timer);
    timer = null;
    try {
      await refresh();
    } finally {
      const seen = document.visibilityState === "visible";
      if (seen && timer === null) timer = setTimeout(look, EVERY);
    }
  };
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible" && timer === null) look();
  });
  look();
}

/** Looks once. */
export async function refresh() {
  try {
    show(await cluster());
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    byId("summary").textContent = "";
    byId("cluster-state").textContent = error.message;
    list([], "");
  }
}

/** Shows what a front knows. */
export function show(said) {
  const shards = said.shards ?? [];
  byId("summary").textContent = summary(said, shards);
  byId("cluster-state").textContent = front(said.front ?? {});
  listAll(said.strangers ?? [], shards);
  suggestHeads((said.rings ?? []).flatMap((ring) => (ring.warm ?? []).map((head) => head.headId)));
}

function summary(said, shards) {
  const passages = shards.reduce((sum, shard) => sum + number(shard.passages), 0);
  if (!said.front?.answers) return "not enough shards were found yet";
  return `${counted(passages, "passage")} in ${counted(shards.length, "shard")}`;
}

function front(state) {
  const parts = [
    `Winnow ${state.version ?? ""}, bundle ${state.bundleName ?? ""}, up for ${seconds(state.upSeconds)}`,
    `${counted(state.questionsAnswered, "question")} answered, ${count(state.questionsRefused)} refused`,
    `${count(state.questionsInHand)} in progress, with ${counted(state.readsInHand, "passage")} to read`,
  ];
  if (number(state.secondsPerRead)) parts.push(`${milliseconds(1000 * state.secondsPerRead)} per passage`);
  if (number(state.textsInHand)) parts.push(`${counted(state.textsInHand, "text")} being predicted`);
  if (number(state.passagesInHand)) parts.push(`${counted(state.passagesInHand, "passage")} being stored`);
  return `${parts.join(" · ")}`;
}

/** Lists those in trouble first, if they are too many to list them all. */
function listAll(strangers, shards) {
  const troubled = (shard) =>
    !shard.replicas?.length || shard.replicas.some((each) => each.state !== SERVING);
  const ordered = [...shards.filter(troubled), ...shards.filter((each) => !troubled(each))];
  const shown = ordered.slice(0, MOST).sort((a, b) => number(a.shard) - number(b.shard));
  const left = ordered.slice(MOST);
  const others = strangers.map((each) => rowOf(each, make("th", { scope: "row" }, "no shard")));
  list([...shown.flatMap(rowsOf), ...others], left.length ? more(left, troubled) : "");
}

/** Shows rows; the table stays, or whoever scrolls it would lose their place. */
function list(rows, said) {
  byId("cluster-rows").replaceChildren(...rows);
  byId("cluster-table").hidden = rows.length === 0;
  tell(byId("cluster-more"), said);
}

function more(left, troubled) {
  const bad = left.filter(troubled).length;
  return `And ${counted(left.length, "more shard")}, ${bad ? `${count(bad)} of them with problems` : "all serving"}.`;
}

function rowsOf(shard) {
  const replicas = shard.replicas ?? [];
  const name = `${number(shard.shard)}`;
  const about = make("span", { className: "quiet" }, counted(shard.passages, "passage"));
  const header = make("th", { scope: "rowgroup", rowSpan: Math.max(replicas.length, 1) }, name, about);
  if (replicas.length === 0) {
    return [make("tr", {}, header, make("td", { colspan: 7, className: "bad" }, "no replica was found"))];
  }
  return replicas.map((replica, place) => rowOf(replica, place === 0 ? header : null));
}

function rowOf(replica, header) {
  const well = replica.state === SERVING;
  const state = make(
    "td",
    { className: well ? "good" : "bad" },
    make(
      "span",
      { className: "state" },
      make("span", { className: "dot", "aria-hidden": "true" }),
      WORDS[replica.state] ?? "unknown",
    ),
    replica.reason ? make("span", { className: "reason" }, replica.reason) : null,
  );
  const pace = number(replica.secondsPerRead);
  const figures = [
    count(replica.callsInHand),
    count(replica.readsInHand),
    pace ? milliseconds(1000 * pace) : "?",
    count(replica.lag),
    replica.heardSeconds === undefined ? "never" : `${seconds(replica.heardSeconds)} ago`,
  ];
  return make(
    "tr",
    {},
    header,
    make("td", { className: "address" }, replica.address),
    state,
    figures.map((each) => make("td", { className: "figure" }, each)),
  );
}

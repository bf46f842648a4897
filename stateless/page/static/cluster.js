// Shows the state of the cluster, which is fetched every two seconds while the page is visible.

import { cluster, Problem } from "./api.js";
import { byId, make, showText } from "./dom.js";
import { count, counted, milliseconds, number, seconds } from "./numbers.js";
import { suggestHeads } from "./options.js";

/** Milliseconds between two refreshes. */
const EVERY = 2000;
/** Maximum number of shards that are listed. */
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

/** Refreshes the state periodically, but not while the page is hidden. */
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

/** Fetches the state once and shows it. */
export async function refresh() {
  try {
    show(await cluster());
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    byId("summary").textContent = "";
    byId("cluster-state").textContent = error.message;
    showRows([], "");
  }
}

/** Shows the state that the front reported. */
export function show(state) {
  const shards = state.shards ?? [];
  byId("summary").textContent = summary(state, shards);
  byId("cluster-state").textContent = front(state.front ?? {});
  listAll(state.strangers ?? [], shards);
  suggestHeads((state.rings ?? []).flatMap((ring) => (ring.warm ?? []).map((head) => head.headId)));
}

function summary(state, shards) {
  const passages = shards.reduce((sum, shard) => sum + number(shard.passages), 0);
  if (state.front?.answers === undefined) return "this server has no index";
  if (!state.front.answers) return "not enough shards were found yet";
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

/** Lists shards by number. If there are too many, shards with problems are listed first. */
function listAll(strangers, shards) {
  const troubled = (shard) =>
    !shard.replicas?.length || shard.replicas.some((each) => each.state !== SERVING);
  const ordered = [...shards.filter(troubled), ...shards.filter((each) => !troubled(each))];
  const shown = ordered.slice(0, MOST).sort((a, b) => number(a.shard) - number(b.shard));
  const left = ordered.slice(MOST);
  const others = strangers.map((each) => rowOf(each, make("th", { scope: "row" }, "no shard")));
  showRows([...shown.flatMap(rowsOf), ...others], left.length ? moreText(left, troubled) : "");
}

/** Replaces the rows of the table. The table itself stays, so that it keeps its scroll position. */
function showRows(rows, more) {
  byId("cluster-rows").replaceChildren(...rows);
  byId("cluster-table").hidden = rows.length === 0;
  showText(byId("cluster-more"), more);
}

function moreText(left, troubled) {
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

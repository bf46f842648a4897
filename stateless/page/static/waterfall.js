// Draws the timeline of a question as a waterfall.

import { make } from "./dom.js";
import { counted, milliseconds, number } from "./numbers.js";
import { shards, stages, ticks, tooltip, totalTime } from "./timeline.js";

/** Height of a lane, in rem. */
const LANE = 0.75;
/** Maximum number of shards that are drawn. */
const MOST_SHARDS = 12;

/** Returns the waterfall of a reply, and a table of the same times. */
export function waterfallOf(reply) {
  const timings = reply.timings ?? {};
  if (reply.cached) return [section(make("p", {}, cachedText(timings)))];
  const total = totalTime(timings);
  const lanes = shards(timings);
  const shown = slowest(lanes);
  const left = lanes.length - shown.length;
  return [
    section(
      make(
        "div",
        { className: "waterfall", role: "img", "aria-label": summary(timings, lanes) },
        axis(total),
        stages(timings).map((stage) => row(stage.label, milliseconds(stage.ms), [stage], total, 1)),
        shown.map((shard) => shardRow(shard, total)),
      ),
      left ? make("p", { className: "quiet" }, `And ${counted(left, "faster shard")}.`) : null,
      legend(),
      make("details", {}, make("summary", {}, "The same as a table"), table(timings, lanes)),
    ),
  ];
}

const cachedText = (timings) =>
  `The answer came from the cache: nothing was read. It took ${milliseconds(timings.totalMs)}.`;

function section(...children) {
  return make(
    "section",
    { className: "times", "aria-labelledby": "times-name" },
    make("h2", { id: "times-name" }, "Where the milliseconds went"),
    ...children,
  );
}

function summary(timings, lanes) {
  const parts = stages(timings).map((stage) => `${stage.label} ${milliseconds(stage.ms)}`);
  return `${milliseconds(timings.totalMs)} in all: ${parts.join(", ")}; ${counted(lanes.length, "shard")}. ` +
    "A table follows.";
}

/** Returns the shards whose calls ended last, ordered by number. */
function slowest(lanes) {
  const end = (shard) => Math.max(...shard.calls.map((call) => call.start + call.ms));
  const chosen = [...lanes].sort((a, b) => end(b) - end(a)).slice(0, MOST_SHARDS);
  return chosen.sort((a, b) => a.shard - b.shard);
}

function axis(total) {
  const marks = ticks(total).map((tick) => {
    const mark = make("span", { className: "tick" }, make("span", {}, String(tick)));
    mark.style.insetInlineStart = `${(tick / total) * 100}%`;
    return mark;
  });
  return [make("span", { className: "unit" }, "ms"), make("span"), make("div", { className: "axis" }, marks)];
}

function row(label, figure, pieces, total, lanes) {
  const track = make("div", { className: "track" }, pieces.map((piece) => barOf(piece, total)));
  track.style.blockSize = `${lanes * LANE}rem`;
  return [make("span", { className: "label" }, label), make("span", { className: "figure" }, figure), track];
}

function shardRow(shard, total) {
  const reads = shard.calls.reduce((sum, call) => sum + call.work.filter((w) => w.kind === "read").length, 0);
  const pieces = shard.calls.flatMap((call) => [
    { ...call, className: `call ${call.outcome}` },
    ...call.work.map((work) => ({ ...work, lane: call.lane + work.lane, height: 1 })),
  ]);
  return row(`shard ${shard.shard}`, counted(reads, "read"), pieces, total, shard.lanes);
}

function barOf(piece, total) {
  const bar = make("span", { className: piece.className ?? `piece ${piece.kind}`, title: tooltip(piece) });
  bar.style.insetInlineStart = `${(piece.start / total) * 100}%`;
  bar.style.inlineSize = `${(piece.ms / total) * 100}%`;
  bar.style.insetBlockStart = `${(piece.lane ?? 0) * LANE}rem`;
  bar.style.blockSize = `${(piece.height ?? 1) * LANE}rem`;
  return bar;
}

function legend() {
  const entry = (className, text) =>
    make("li", {}, make("span", { className, "aria-hidden": "true" }), text);
  return make(
    "ul",
    { className: "legend" },
    entry("piece retrieve", "retrieve"),
    entry("piece read", "read"),
    entry("call answered", "call: waiting or network delay"),
    entry("call abandoned", "not waited for"),
    entry("call failed", "failed"),
  );
}

function table(timings, lanes) {
  const front = stages(timings).map((stage) => line("front", stage.label, stage));
  const calls = lanes.flatMap((shard) =>
    shard.calls.flatMap((call) => [call, ...call.work].map((each) => line(`shard ${shard.shard}`, each.label, each))),
  );
  const heads = ["where", "what", "from", "took"].map((name, place) =>
    make("th", { scope: "col", className: place > 1 ? "figure" : "" }, name),
  );
  return make(
    "div",
    { className: "scroll", tabIndex: 0, role: "region", "aria-label": "Times as a table" },
    make("table", {}, make("thead", {}, make("tr", {}, heads)), make("tbody", {}, front, calls)),
  );
}

const line = (where, what, piece) =>
  make(
    "tr",
    {},
    [where, what].map((text) => make("td", {}, text)),
    [piece.start, piece.ms].map((ms) => make("td", { className: "figure" }, milliseconds(number(ms)))),
  );

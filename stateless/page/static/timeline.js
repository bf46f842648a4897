// Computes the timeline of a question from its reply: rows of pieces.
//
// A piece is {start, ms, kind, label}. Times are milliseconds since the front started the question.

import { milliseconds, number } from "./numbers.js";

const KINDS = { KIND_RETRIEVE: "retrieve", KIND_READ: "read", KIND_SEARCH: "search" };
const OUTCOMES = { OUTCOME_FAILED: "failed", OUTCOME_ABANDONED: "abandoned" };

/** Returns the stages of the front in order. Stages that took no time are left out. */
export function stages(timings) {
  const at = (name) => number(timings[name]);
  const encoding = at("tokeniseMs") + at("queueMs");
  return [
    { label: "tokenise", kind: "encode", start: 0, ms: at("tokeniseMs") },
    { label: "wait to encode", kind: "wait", start: at("tokeniseMs"), ms: at("queueMs") },
    { label: "encode", kind: "encode", start: encoding, ms: at("encodeMs") },
    { label: "retrieve", kind: "retrieve", start: at("retrieveStartMs"), ms: at("retrieveMs") },
    { label: "read", kind: "read", start: at("readStartMs"), ms: at("readMs") },
    { label: "merge", kind: "merge", start: at("mergeStartMs"), ms: at("mergeMs") },
  ].filter((stage) => stage.ms > 0);
}

/** Returns the calls of each shard, in lanes so that calls do not overlap: [{shard, lanes, calls}]. */
export function shards(timings) {
  const byShard = new Map();
  for (const call of (timings.calls ?? []).map(callOf)) {
    byShard.set(call.shard, [...(byShard.get(call.shard) ?? []), call]);
  }
  return [...byShard]
    .sort(([a], [b]) => a - b)
    .map(([shard, calls]) => ({ shard, calls, lanes: pack(calls) }));
}

/** Returns the duration of the question, or the end of its last call if that is later. */
export function totalTime(timings) {
  const ends = (timings.calls ?? []).map((call) => number(call.startMs) + number(call.ms));
  return Math.max(number(timings.totalMs), ...ends, 0.001);
}

/** Returns at most seven round numbers for the ticks of an axis from 0 to `total`. */
export function ticks(total) {
  const raw = total / 6;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= raw);
  return Array.from({ length: Math.floor(total / step) + 1 }, (_, place) => place * step);
}

/** Converts a call of the reply to a piece with its work: retrieval and reads, in lanes of the call. */
function callOf(call) {
  const start = number(call.startMs);
  const kind = KINDS[call.kind] ?? "read";
  const outcome = OUTCOMES[call.outcome] ?? "answered";
  const reads = (call.reads ?? []).map((each) => ({
    start: number(each.startMs),
    ms: number(each.ms),
    kind: "read",
    label: `read ${each.passageId}`,
  }));
  const retrieval = number(call.retrieveMs)
    ? [{ start: number(call.retrieveStartMs), ms: number(call.retrieveMs), kind: "retrieve", label: "retrieve" }]
    : [];
  const work = [...retrieval, ...reads];
  const label = outcome === "answered" ? `call to ${kind}` : `call to ${kind}, ${outcome}`;
  return { shard: number(call.shard), start, ms: number(call.ms), kind, outcome, label, work, height: pack(work) || 1 };
}

/** Assigns blocks to lanes so that they do not overlap: sets `lane` of each, returns the number of lanes.
 *
 * A block occupies `height` lanes, by default one. */
export function pack(blocks) {
  const ends = [];
  for (const block of [...blocks].sort((a, b) => a.start - b.start)) {
    const height = block.height ?? 1;
    let lane = 0;
    while (ends.slice(lane, lane + height).some((end) => end > block.start + 1e-6)) lane += 1;
    for (let each = lane; each < lane + height; each += 1) ends[each] = block.start + block.ms;
    block.lane = lane;
  }
  return ends.length;
}

/** Returns the tooltip of a piece. */
export const tooltip = (piece) =>
  `${piece.label}: ${milliseconds(piece.ms)}, from ${milliseconds(piece.start)}`;

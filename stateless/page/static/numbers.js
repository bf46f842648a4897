// Formats numbers of JSON replies. Replies have large integers and infinities as strings.

const grouped = new Intl.NumberFormat("en");

/** Converts a value of a reply to a number; 0 if it is absent. */
export const number = (value) => Number(value ?? 0);

/** A whole number, such as 21,015,324. */
export const count = (value) => grouped.format(number(value));

/** A whole number with its noun, such as "1 shard" and "2 shards". */
export const counted = (value, noun) => `${count(value)} ${noun}${number(value) === 1 ? "" : "s"}`;

/** Milliseconds, with one decimal below 10 ms. */
export function milliseconds(value) {
  const ms = number(value);
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
}

/** A duration, rounded to seconds, minutes or hours. */
export function seconds(value) {
  const whole = number(value);
  if (whole < 10) return `${whole.toFixed(1)} s`;
  if (whole < 120) return `${Math.round(whole)} s`;
  if (whole < 7200) return `${Math.round(whole / 60)} min`;
  return `${Math.round(whole / 3600)} h`;
}

/** A share from 0 to 1 as a percentage; 100 % only if the share is 1. */
export function percent(share) {
  const whole = Math.round(share * 100);
  return `${share < 1 ? Math.min(whole, 99) : whole} %`;
}

/** A probability as a percentage, never 0 % or 100 %. */
export function likelihood(probability) {
  const share = number(probability);
  if (share > 0.99) return "> 99 %";
  return share < 0.01 ? "< 1 %" : `${Math.round(share * 100)} %`;
}

/** A figure with two decimals. */
export const figure = (value) => number(value).toFixed(2);

/** The English name of a language, given its ISO 639-1 code. */
export function languageName(code) {
  try {
    return new Intl.DisplayNames("en", { type: "language" }).of(code) ?? code;
  } catch {
    return code;
  }
}

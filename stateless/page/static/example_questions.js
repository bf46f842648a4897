// Makes questions of passages: from headings that are questions, and from definitions of headings. Other
// passages give no question, so that no question is nonsense.

const SEPARATOR = " › ";
/** A number before a heading, such as "3.2." or "Q1:". */
const NUMBERING = /^(?:[\d.]+\s*[.):]?|[A-Z]?\.?\d[\d.]*[.):]?|[QF]\d*[.:])\s+/;
/** Questions that a few words of a text can answer: not why, and not whether. */
const QUESTION = /^(?:Who|When|Where|Which|What|How (?:many|much|long|often|old|large|far)) [^?]{6,90}\?$/;
const VAGUE = /^(?:What (?:about|happen)|Where to )/;
/** Words that refer to a text around the heading. */
const UNCLEAR = /\b(?:this|that|these|those|it|its|they|them|he|she|his|her|above|below|here|there|following|i|my|we|our|us)\b/i;
const TERM = /^[\p{L}\d][\p{L}\d .+-]{1,40}$/u;
/** Headings that are terms of every text. */
const GENERAL = /^(?:an? )?(?:example|note|exception|alternative|problem|solution|advantage|way|option|introduction)s?$/i;
/** Two or more words that may be the name of a person. Its question would begin with "Who". */
const NAME = /^\p{Lu}\S*(?: \p{Lu}\S*)+$/u;
const PERSON = /\b\w+(?:er|or|ist|ian|man|woman)\b/;

/** Returns the questions that passages answer, as far as that is certain. */
export function questionsOf(passages) {
  return passages.flatMap((passage) => {
    const heading = headingOf(passage);
    return askedBy(heading) ?? definedBy(heading, passage.text ?? "") ?? [];
  });
}

/** Returns the innermost heading above a passage, without its number; "" without a heading. */
function headingOf({ metadata = {} }) {
  const path = typeof metadata.heading === "string" ? metadata.heading : "";
  return path.split(SEPARATOR).at(-1).trim().replace(NUMBERING, "");
}

/** Returns a heading that is a question by itself; null if it is none. */
function askedBy(heading) {
  const clear = QUESTION.test(heading) && !VAGUE.test(heading) && !UNCLEAR.test(heading);
  return clear ? heading : null;
}

/** Returns "What is …?" if the text begins with a definition of its heading; null otherwise. */
function definedBy(heading, text) {
  if (!TERM.test(heading) || UNCLEAR.test(heading) || GENERAL.test(heading)) return null;
  const term = heading.replace(/[.+]/g, "\\$&");
  const definition = new RegExp(
    `^(an? )?(${term})(?: \\([^()]{1,60}\\))? (is|are) (?:an?|the) (?!following|same|case|first|only)(.{1,60})`,
    "i",
  );
  const [, article = "", subject, verb, kind] = definition.exec(text.trimStart()) ?? [];
  if (!subject || (NAME.test(heading) && PERSON.test(kind))) return null;
  const named = subject.replace(/^(?:The|An?) /, (found) => found.toLowerCase());
  return `What ${verb} ${article.toLowerCase()}${named}?`;
}

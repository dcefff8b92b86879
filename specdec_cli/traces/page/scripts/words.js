// Numbers and decisions in words, and signs for characters that nobody could see or that would turn the page around.

const PICTURES = { "\n": "↵", "\t": "⇥", " ": "␣", "\u007f": "␡" };
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;
const UNSEEN = /[\s\u200c\u200d\ufe00-\ufe0f]/gu;

function picture(character) {
  const code = character.codePointAt(0);
  if (PICTURES[character]) return PICTURES[character];
  return code < 32 ? String.fromCharCode(0x2400 + code) : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

// Text as it stands in the answer: line ends and tabs stay, what steers a terminal or the direction becomes visible.
const tame = (text) => text.replace(HIDDEN, picture);

// Text of one token by itself: blanks can be counted.
const reveal = (text) => (text === "" ? "∅" : tame(text).replace(UNSEEN, picture));

function probability(value) {
  if (value == null) return "n/a";
  if (value === 0 || value === 1) return String(value);
  if (value < 0.001) return value.toExponential(1);
  return value > 0.9995 ? value.toFixed(6).replace(/0+$/, "") : value.toFixed(3);
}

const decimal = (value, digits = 2) => (value == null ? "n/a" : value.toFixed(digits));
const percent = (share) => `${Math.round(100 * share)} %`;
const milliseconds = (seconds) => `${(1000 * seconds).toFixed(seconds < 0.01 ? 2 : 1)} ms`;
const ratioOf = (examined) => (examined.ratio == null ? "∞" : Number(examined.ratio.toPrecision(3)).toString());
const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

const LABELS = { accepted: "✓ accepted", rejected: "✗ rejected", unexamined: "– unexamined", cut: "– cut off" };

// What decided on a drafted token.
function decisionWords(token, rule) {
  const { decision, probability: chance, draw: luck } = token;
  if (decision === "cut") return "The answer ended before it, so it counts as not drafted.";
  if (decision === "unexamined" && chance == null) return "Not examined: a token before it was rejected.";
  if (rule === "coupled") return coupledWords(decision);
  if (chance == null) {
    return decision === "accepted"
      ? "Accepted with the block: a longer beginning of the block passed as a whole."
      : "Rejected: the target gives it no chance at all.";
  }
  const kept = decision === "accepted";
  const verb = kept ? "Accepted" : decision === "rejected" ? "Rejected" : "Not kept";
  const what =
    rule === "block"
      ? `the block up to here passes with ${probability(chance)}`
      : `p/q gives it a chance of ${probability(chance)}`;
  if (chance >= 1)
    return rule === "block"
      ? "Accepted: the block up to here passes for certain."
      : "Accepted: p is at least q, so no draw is needed.";
  if (chance <= 0) return `${verb}: the target gives it no chance at all.`;
  return `${verb}: ${what}, and the draw ${probability(luck)} is ${kept ? "below" : "not below"} that.`;
}

function coupledWords(decision) {
  if (decision === "accepted") return "Accepted: the target drew the same token with the same noise.";
  return decision === "rejected" ? "Rejected: with the same noise the target drew another token." : "Not examined.";
}

// The law that the round's own token came from.
function lawWords(last, round, rule) {
  if (rule === "coupled") return "the target's own p, by the noise that the draft used";
  if (last.kind === "correction") return `the residual, max(0, ${rule === "block" ? "w·" : ""}p − q) made to sum to 1`;
  return round.drafted.length
    ? "p behind the block, all of which was kept"
    : "p, as in plain decoding: nothing was drafted";
}

const luckWords = (last) =>
  last.draw == null
    ? last.entropy === 0
      ? "The law is certain: no draw is needed."
      : ""
    : `Drawn at ${probability(last.draw)} of its cumulative distribution.`;

const nameOf = (round) => `Round ${round.index}`;

// One sentence on a round.
function roundWords(round) {
  const kept = countKept(round);
  const own = round.emitted.find((token) => token.kind !== "accepted");
  const drafted = round.drafted.length ? `Drafted ${round.drafted.length}, kept ${kept}` : "Nothing was drafted";
  const then = own
    ? `, then ${round.drafted.length ? `a ${own.kind}` : "the target's own token"}: ${reveal(own.own)}`
    : "";
  return `${drafted}${then}${round.ended ? "; the answer ends here" : ""}.`;
}

// Where it stands; rounds and places count from 0, as in the file.
function placeWords(round, total) {
  const from = round.drafted.length ? `Drafted by ${reveal(round.drafter).replaceAll("␣", " ")} at` : "At";
  return `${from} place ${round.place} of the text; rounds are 0 to ${total - 1}.`;
}

const countKept = (round) => round.drafted.filter((token) => token.decision === "accepted").length;
const isExamined = (token) => token.decision === "accepted" || token.decision === "rejected";

// The answer, token by token: a list box with one stop for the tab key.

const KINDS = {
  accepted: "accepted: a draft that was kept",
  correction: "correction: the target's token in place of a rejected draft",
  bonus: "bonus: the target's own token where nothing was rejected",
};
const LONGEST_BLOCK = 20000;

// Each emitted token with the place of its round and the part of the round that it came from.
const flatten = (rounds) =>
  rounds.flatMap((round, place) =>
    round.emitted.map((token, position) => ({
      ...token,
      place,
      part: token.kind === "accepted" ? `draft-${position}` : "own",
    })),
  );

function showLegend() {
  find("legend").replaceChildren(
    ...Object.entries(KINDS).map(([kind, words]) =>
      make("li", {}, make("span", { class: `token ${kind}` }, kind), words.slice(kind.length)),
    ),
  );
}

// Blocks end with a line, so that those far from the window need no layout. Rejected drafts stand before what replaced them.
function showAnswer(tokens, rounds, withRejected) {
  const blocks = [make("div", { role: "none" })];
  let [index, length] = [0, 0];
  const add = (emitted) => {
    blocks.at(-1).append(tokenElement(tokens[index], index));
    index += 1;
    length += emitted.text.length;
    if (!emitted.text.endsWith("\n") && length < LONGEST_BLOCK) return;
    blocks.push(make("div", { role: "none" }));
    length = 0;
  };
  rounds.forEach((round, place) => {
    const rejected = withRejected ? rejectedDrafts(round, place) : [];
    for (const emitted of round.emitted) {
      if (emitted.kind === "correction") blocks.at(-1).append(...rejected.splice(0));
      add(emitted);
    }
    blocks.at(-1).append(...rejected);
  });
  find("answer").replaceChildren(...blocks);
}

function tokenElement(token, index) {
  const text = tame(token.text);
  const hint = text === "" ? " part" : text.startsWith("\n") ? " break" : "";
  return make(
    "span",
    {
      role: "option",
      id: `token-${index}`,
      class: `token ${token.kind}${hint}`,
      "aria-selected": "false",
      "aria-label": `${tame(token.own).trim() || reveal(token.own)}, ${token.kind}`,
      "data-round": token.place,
      "data-part": token.part,
    },
    text,
  );
}

function rejectedDrafts(round, place) {
  return round.drafted
    .map((token, position) => [token, position])
    .filter(([token]) => token.decision === "rejected" || token.decision === "unexamined")
    .map(([token, position]) =>
      make(
        "span",
        {
          role: "none",
          class: "token rejected",
          title: LABELS[token.decision],
          "data-round": place,
          "data-part": `draft-${position}`,
        },
        reveal(token.text),
      ),
    );
}

function markToken(index, place) {
  const answer = find("answer");
  answer.querySelectorAll(".same-round").forEach((node) => node.classList.remove("same-round"));
  answer.querySelectorAll("[aria-selected=true]").forEach((node) => node.setAttribute("aria-selected", "false"));
  answer.removeAttribute("aria-activedescendant");
  answer.querySelectorAll(`[data-round="${place}"]`).forEach((node) => node.classList.add("same-round"));
  const node = find(`token-${index}`);
  if (!node) return;
  node.setAttribute("aria-selected", "true");
  answer.setAttribute("aria-activedescendant", node.id);
  node.scrollIntoView({ block: "nearest" });
}

// The opened round: what was proposed, what decided on it, what came out, and how long it took.

function showRound(answer, place, part) {
  const { rounds, rule } = answer;
  const round = rounds[place];
  const panel = find("round");
  panel.classList.add("open");
  panel.replaceChildren(
    heading(round, rounds),
    make("div", {}, make("p", {}, roundWords(round)), make("p", { class: "note" }, placeWords(round, rounds.length))),
    ...round.drafted.map((token, index) => positionDetails(token, index, round, rule)),
    ...(round.last ? [lastDetails(round, rule)] : []),
    ...(round.outlook ? [outlookSection(round)] : []),
    make(
      "section",
      {},
      make("h3", {}, "Time"),
      make("p", { class: "note" }, timeWords(round)),
      timeline(rounds, place),
    ),
  );
  highlight(panel, part, round);
}

function heading(round, rounds) {
  const total = rounds.length;
  const step = (id, label, text, disabled) =>
    make("button", { type: "button", id, "aria-label": label, disabled }, text);
  return make(
    "div",
    { class: "head" },
    make(
      "div",
      { class: "bar" },
      make("h2", { tabindex: "-1", id: "round-title" }, nameOf(round)),
      make(
        "div",
        { class: "steps" },
        step("previous", "Previous round", "‹", round.index === 0),
        step("next", "Next round", "›", round.index + 1 === total),
        step(
          "next-correction",
          "Next correction",
          "correction ›",
          !rounds.some((each) => each.emitted.some((token) => token.kind === "correction")),
        ),
        make("button", { type: "button", id: "close", class: "close", "aria-label": "Close the round" }, "✕"),
      ),
    ),
  );
}

function positionDetails(token, index, round, rule) {
  const values = token.examined
    ? `q ${probability(token.q)} · p ${probability(token.examined.p)} · p/q ${ratioOf(token.examined)}`
    : `q ${probability(token.q)}`;
  const own = round.last && token.decision === "rejected" ? round.emitted.at(-1)?.id : null;
  return make(
    "details",
    { class: "position", id: `part-draft-${index}` },
    make(
      "summary",
      {},
      chip(token.text, token.decision),
      make("span", { class: `verdict ${token.decision}` }, LABELS[token.decision]),
      make("span", { class: "values" }, values),
    ),
    make(
      "div",
      {},
      make("p", {}, decisionWords(token, rule)),
      token.probability != null && token.draw != null ? gauge(token.probability, token.draw) : null,
      token.examined ? candidatesTable(token, own) : null,
      make("p", { class: "note" }, measures(token)),
    ),
  );
}

function measures(token) {
  const parts = [`confidence of the draft ${probability(token.confidence)}`, `entropy of q ${decimal(token.entropy)}`];
  if (token.examined)
    parts.push(`of p ${decimal(token.examined.entropy)} nats`, `Σ min(p, q) ${probability(token.examined.overlap)}`);
  return parts.join(" · ");
}

function lastDetails(round, rule) {
  const { last } = round;
  const own = round.emitted.find((token) => token.kind !== "accepted");
  const drawn = own ? chip(own.own, last.kind) : make("span", { class: "note" }, "end of generation");
  return make(
    "details",
    { class: "position", id: "part-own" },
    make(
      "summary",
      {},
      drawn,
      make("span", { class: "verdict" }, last.kind),
      make("span", { class: "values" }, `entropy ${decimal(last.entropy)} nats`),
    ),
    make(
      "div",
      {},
      make("p", {}, `Drawn from ${lawWords(last, round, rule)}. ${luckWords(last)}`),
      lawTable(last, own?.id),
    ),
  );
}

// What the adaptive draft length expected, beside what came.
function outlookSection(round) {
  const { outlook } = round;
  const came = round.emitted.length;
  const rows = outlook.kept.map((chance, index) => [
    `first ${index + 1}`,
    weightCell(Math.min(1, chance), "kept"),
    round.drafted[index]?.decision === "accepted" ? "yes" : "no",
  ]);
  return make(
    "section",
    {},
    make("h3", {}, "Expected by --draft-tokens auto"),
    make(
      "p",
      {},
      `${decimal(outlook.tokens)} tokens for ${decimal(outlook.cost)} plain steps, `,
      `where a step is worth ${decimal(outlook.rate)} tokens; ${plural(came, "token")} came.`,
    ),
    rows.length
      ? makeTable("Chance that the beginning of the block is kept", ["drafted tokens", "chance", "kept"], rows)
      : null,
  );
}

function timeWords(round) {
  const [draft, verify, sampling] = round.seconds.map(milliseconds);
  return `draft ${draft} · verify ${verify} · sampling ${sampling}`;
}

// Open the part that the chosen token came from, for a correction what it replaced too, and bring it into the panel.
function highlight(panel, name, round) {
  const part = find(`part-${name}`) ?? panel.querySelector(".position");
  panel.scrollTop = 0;
  if (!part) return;
  if (name === "own") {
    const replaced = round.drafted.findIndex((token) => token.decision === "rejected");
    if (replaced >= 0) find(`part-draft-${replaced}`).open = true;
  }
  part.open = true;
  part.classList.add("here");
  const below = part.offsetTop + part.offsetHeight - panel.clientHeight;
  const head = panel.querySelector(".head").offsetHeight;
  if (below > 0) panel.scrollTop = Math.min(below, part.offsetTop - head) + 8;
}

// The charts over the whole answer. Where there are more rounds than columns, a column is the mean of several.

function showOverview(answer, openRound) {
  const { rounds } = answer;
  const drafted = rounds.some((round) => round.drafted.length);
  const examined = rounds.some((round) => round.drafted.some(isExamined));
  const charts =
    rounds.length === 0
      ? []
      : [
          ...(examined ? [positionsChart(rounds)] : []),
          ...(drafted ? [lengthsChart(rounds, openRound)] : []),
          timeChart(rounds, openRound),
          ...(rounds.some((round) => round.outlook) ? [expectationChart(rounds, openRound)] : []),
        ];
  find("charts").replaceChildren(...charts.map(showChart));
}

function mean(values) {
  const known = values.filter((value) => value != null);
  return known.length ? known.reduce((a, b) => a + b, 0) / known.length : null;
}

// Rounds in as many columns as can be told apart: [first, behind the last] of each.
function spans(total) {
  const count = Math.min(total, MOST_COLUMNS);
  return Array.from({ length: count }, (_, column) => [
    Math.floor((column * total) / count),
    Math.floor(((column + 1) * total) / count),
  ]);
}

// What charts over rounds have in common; `values(round)` are the parts of a column.
function overRounds(rounds, openRound, values) {
  const places = spans(rounds.length);
  const over = (number) => places.map(([from, to]) => mean(rounds.slice(from, to).map(number)));
  const parts = values(rounds[0]).length;
  const means = Array.from({ length: parts }, (_, part) => over((round) => values(round)[part]));
  const name = (column) => {
    const [from, behind] = places[column];
    return behind - from === 1 ? `${from}` : `${from}–${behind - 1}`;
  };
  return {
    over,
    name,
    columns: places.map((_, column) => means.map((each) => each[column])),
    ends: ["round 0", `round ${rounds.length - 1}`],
    open: (column) => openRound(places[column][0]),
  };
}

function positionsChart(rounds) {
  const longest = rounds.reduce((most, round) => Math.max(most, round.drafted.length), 0);
  const positions = Array.from({ length: longest }, (_, position) => {
    const examined = rounds.map((round) => round.drafted[position]).filter((token) => token && isExamined(token));
    const accepted = examined.filter((token) => token.decision === "accepted").length;
    return {
      examined: examined.length,
      accepted,
      share: examined.length ? accepted / examined.length : null,
      overlap: mean(examined.map((token) => token.examined?.overlap)),
    };
  }).filter((each) => each.examined);
  const share = (value) => (value == null ? "n/a" : percent(value));
  return {
    title: "Acceptance by position",
    note: "How often the first, second, … drafted token was accepted when it was examined.",
    parts: [{ name: "accepted of examined", kind: "kept" }],
    columns: positions.map((each) => [each.share]),
    curve: positions.map((each) => each.overlap),
    curveName: "mean of Σ min(p, q)",
    highest: 1,
    scale: () => "100 %",
    ends: positions.length > 1 ? ["position 1", `position ${positions.length}`] : ["position 1"],
    open: null,
    tell: (column) => {
      const { accepted, examined, overlap, share: kept } = positions[column];
      return `position ${column + 1}: ${accepted} of ${examined}, ${share(kept)}; Σ min(p, q) ${decimal(overlap)}`;
    },
    heads: ["position", "examined", "accepted", "share", "Σ min(p, q)"],
    row: (column) => [
      String(column + 1),
      String(positions[column].examined),
      String(positions[column].accepted),
      share(positions[column].share),
      decimal(positions[column].overlap),
    ],
  };
}

function lengthsChart(rounds, openRound) {
  const base = overRounds(rounds, openRound, (round) => [countKept(round), round.drafted.length - countKept(round)]);
  const { columns, name } = base;
  return {
    ...base,
    title: "Draft length",
    note: "Tokens drafted in each round, and how many of them were kept.",
    parts: [
      { name: "kept", kind: "kept" },
      { name: "not kept", kind: "wasted" },
    ],
    scale: (highest) => decimal(highest, highest % 1 ? 1 : 0),
    tell: (column) => {
      const [kept, wasted] = columns[column];
      return `round ${name(column)}: ${decimal(kept + wasted, 1)} drafted, ${decimal(kept, 1)} kept`;
    },
    heads: ["rounds", "drafted", "kept"],
    row: (column) => [
      name(column),
      decimal(columns[column][0] + columns[column][1], 1),
      decimal(columns[column][0], 1),
    ],
  };
}

function timeChart(rounds, openRound) {
  const base = overRounds(rounds, openRound, (round) => round.seconds);
  const { columns, name } = base;
  const sum = (column) => columns[column].reduce((a, b) => a + b, 0);
  return {
    ...base,
    title: "Time of a round",
    note: "Draft model, target, and all else.",
    parts: [
      { name: "draft", kind: "draft" },
      { name: "verify", kind: "verify" },
      { name: "sampling", kind: "sample" },
    ],
    scale: milliseconds,
    tell: (column) => {
      const [draft, verify, sampling] = columns[column].map(milliseconds);
      return `round ${name(column)}: ${milliseconds(sum(column))} = draft ${draft} + verify ${verify} + sampling ${sampling}`;
    },
    heads: ["rounds", "draft", "verify", "sampling"],
    row: (column) => [name(column), ...columns[column].map(milliseconds)],
  };
}

function expectationChart(rounds, openRound) {
  const base = overRounds(rounds, openRound, (round) => [round.emitted.length]);
  const { columns, name, over } = base;
  const expected = over((round) => round.outlook?.tokens);
  const overall = mean(rounds.map((round) => round.outlook?.tokens));
  const came = mean(rounds.filter((round) => round.outlook).map((round) => round.emitted.length));
  return {
    ...base,
    title: "Expected and real tokens",
    note: `--draft-tokens auto expected ${decimal(overall)} tokens a round; ${decimal(came)} came.`,
    parts: [{ name: "tokens that came", kind: "kept" }],
    curve: expected,
    curveName: "expected",
    scale: (highest) => decimal(highest, highest % 1 ? 1 : 0),
    tell: (column) =>
      `round ${name(column)}: ${decimal(columns[column][0], 1)} came, ${decimal(expected[column], 1)} expected`,
    heads: ["rounds", "came", "expected"],
    row: (column) => [name(column), decimal(columns[column][0], 1), decimal(expected[column], 1)],
  };
}
